"""A switch between network namespaces that loses and delays packets when told to.

switch.py SEED NAME=ADDRESS...   each namespace gets a device `net0` with its address (10.77.0.N).

Kernels without netem cannot do this, so packets are passed on here: a TUN device in each namespace, routed by
their destination. Lines of JSON on standard input set rules, `{"from": "driver", "to": "*", "loss": 1.0,
"delay": 0.2}`, both ways unless "one_way" is true; each is answered by a line.
"""

import ctypes
import fcntl
import heapq
import itertools
import json
import os
import random
import select
import struct
import subprocess
import sys
import time

TUNSETIFF, IFF_TUN, IFF_NO_PI, CLONE_NEWNET = 0x400454CA, 0x0001, 0x1000, 0x40000000
libc = ctypes.CDLL(None, use_errno=True)


def enter(path):
    with open(path) as place:
        if libc.setns(place.fileno(), CLONE_NEWNET) != 0:
            raise OSError(ctypes.get_errno(), f"cannot enter {path}")


def port(namespace, address):
    enter(f"/run/netns/{namespace}")
    device = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(device, TUNSETIFF, struct.pack("16sH22x", b"net0", IFF_TUN | IFF_NO_PI))
    for line in (f"addr add {address}/24 dev net0", "link set net0 mtu 1400 up", "link set lo up"):
        subprocess.run(["ip", *line.split()], check=True)
    return device


def main():
    chance = random.Random(int(sys.argv[1]))
    named = dict(word.split("=") for word in sys.argv[2:])
    ports = {name: port(name, address) for name, address in named.items()}
    by_address = {bytes(map(int, a.split("."))): name for name, a in named.items()}
    rules = {}
    waiting, order = [], itertools.count()
    print("ready", flush=True)
    while True:
        pause = max(0.0, waiting[0][0] - time.monotonic()) if waiting else None
        readable, _, _ = select.select([sys.stdin, *ports.values()], [], [], pause)
        if sys.stdin in readable:
            line = sys.stdin.readline()
            if not line:
                return
            rule = json.loads(line)
            ends = [(rule["from"], rule["to"])]
            ends += [] if rule.get("one_way") else [(rule["to"], rule["from"])]
            for source, target in itertools.product(named, named):
                for one, other in ends:
                    if one in ("*", source) and other in ("*", target):
                        rules[source, target] = rule.get("loss", 0.0), rule.get("delay", 0.0)
            print("done", flush=True)
        for source, device in ports.items():
            if device not in readable:
                continue
            packet = os.read(device, 65536)
            target = by_address.get(packet[16:20]) if packet[0] >> 4 == 4 else None
            if target is None:
                continue
            loss, delay = rules.get((source, target), (0.0, 0.0))
            if loss == 0.0 or chance.random() >= loss:
                heapq.heappush(waiting, (time.monotonic() + delay, next(order), target, packet))
        now = time.monotonic()
        while waiting and waiting[0][0] <= now:
            _, _, target, packet = heapq.heappop(waiting)
            try:
                os.write(ports[target], packet)
            except OSError:
                pass  # a full queue loses packets, as networks do


main()
