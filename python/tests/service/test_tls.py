"""Encrypted connections: certificates, those of clients, an exchange while it serves, HTTP/2."""

from __future__ import annotations

import json
import shutil
import ssl
import subprocess
import time
from pathlib import Path
from typing import Any

import metra
import numpy as np
import pytest
from processes import Metra, Process


def openssl(*words: Any) -> None:
    done = subprocess.run(["openssl", *map(str, words)], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


def certificate(folder: Path, name: str, authority: str = "authority") -> None:
    """A key and a certificate for 127.0.0.1, by the authority of the folder."""
    extensions = folder / "extensions"
    extensions.write_text("subjectAltName=IP:127.0.0.1,DNS:localhost\n")
    key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
    openssl("req", *key, "-keyout", folder / f"{name}.key", "-out", folder / f"{name}.csr", "-subj", f"/CN={name}")
    by = ("-CA", folder / f"{authority}.pem", "-CAkey", folder / f"{authority}.key", "-CAcreateserial")
    openssl("x509", "-req", "-in", folder / f"{name}.csr", *by, "-extfile", extensions, "-days", 2, "-out", folder / f"{name}.pem")
    (folder / f"{name}.key").chmod(0o600)


@pytest.fixture()
def folder(tmp_path: Path, models: dict[str, metra.Model]) -> Path:
    """A model, an authority, and certificates of a server and a client."""
    models["plain"].save(tmp_path / "m.safetensors")
    key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
    root = ("-keyout", tmp_path / "authority.key", "-out", tmp_path / "authority.pem", "-subj", "/CN=authority", "-days", 2)
    openssl("req", "-x509", *key, *root)
    for name in ("server", "client"):
        certificate(tmp_path, name)
    return tmp_path


def files(folder: Path) -> tuple[Any, ...]:
    return ("--tls-cert", folder / "server.pem", "--tls-key", folder / "server.key")


def trusting(folder: Path) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=str(folder / "authority.pem"))


def shown_certificate(server: Process) -> str:
    return ssl.get_server_certificate(("127.0.0.1", server.port), timeout=10)


def test_answers_are_encrypted_and_the_certificate_is_exchanged(
    program: Metra, folder: Path, models: dict[str, metra.Model], nuisance: Any
) -> None:
    rows = np.asarray(nuisance[0][:5], dtype=np.float32)
    with program.serve(folder / "m.safetensors", *files(folder), "--reload-interval", 0.05) as server:
        assert server.address.startswith("https://")
        with metra.Client(server.address, context=trusting(folder)) as client:
            assert np.array_equal(client.map(rows), models["plain"].transform_queries(rows))
        with pytest.raises(metra.ServerError, match="certificate"):
            metra.Client(server.address, tries=1).models()
        first = shown_certificate(server)
        certificate(folder, "other")
        for ending in ("key", "pem"):
            (folder / f"other.{ending}").replace(folder / f"server.{ending}")
        until = time.monotonic() + 20
        while shown_certificate(server) == first:
            assert time.monotonic() < until, server.log()
            time.sleep(0.05)
        # One that cannot be read leaves the earlier one in its place.
        second = shown_certificate(server)
        (folder / "server.pem").write_text("nothing")
        while "stays as it was before" not in server.log():
            assert time.monotonic() < until, server.log()
            time.sleep(0.05)
        assert shown_certificate(server) == second


def test_clients_without_a_certificate_are_not_served(program: Metra, folder: Path) -> None:
    authority = ("--tls-client-ca", folder / "authority.pem")
    with program.serve(folder / "m.safetensors", *files(folder), *authority) as server:
        with pytest.raises(metra.ServerError):
            metra.Client(server.address, context=trusting(folder), tries=1).models()
        context = trusting(folder)
        context.load_cert_chain(folder / "client.pem", folder / "client.key")
        with metra.Client(server.address, context=context) as client:
            assert len(client.models()) == 1


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not there")
def test_http_2_is_spoken(program: Metra, folder: Path) -> None:
    with program.serve(folder / "m.safetensors", *files(folder)) as server:
        asked = ["curl", "--silent", "--http2", "--cacert", folder / "authority.pem", "--write-out", "\n%{http_version}"]
        answer = subprocess.run([*asked, server.address + "/v1/models"], capture_output=True, text=True, timeout=30)
        body, _, version = answer.stdout.rpartition("\n")
        assert version == "2" and json.loads(body)["object"] == "list"


def test_keys_that_others_can_read_are_refused(program: Metra, folder: Path) -> None:
    (folder / "server.key").chmod(0o644)
    with pytest.raises(RuntimeError, match="chmod 600"):
        with program.serve(folder / "m.safetensors", *files(folder)):
            pass
