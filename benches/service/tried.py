"""Requests one by one beside what may be answered, and whether the server serves others afterwards."""

import load
from data import clustered
from fuzzing import DIM, exchange, request
from server import Server


def good(server) -> bytes:
    return request("POST", "/v1/map", load.as_json(clustered(2, DIM, 3)))


def still_serves(server: Server, problems: list[str]) -> None:
    if not server.is_alive():
        problems.append(f"the server ended with status {server.process.poll()}")
        return
    try:
        found, came, _ = exchange(server.port, good(server), 10)
    except OSError as error:
        problems.append(f"no connection afterwards: {error}")
        return
    if found != [200]:
        problems.append(f"a valid request afterwards: {found} {came[:300]!r}")


def tried(server, cases: dict[str, bytes], allowed: set[int], patience: float = 2) -> dict:
    """Statuses of requests, each of which may be refused in its own way but not fail."""
    answers, problems = {}, []
    for name, data in cases.items():
        try:
            found, came, ended = exchange(server.port, data, patience)
        except OSError as error:
            found, came, ended = [], b"", repr(error)
        # A thousand equal answers after each other are one line.
        answers[name] = [f"{len(found)} times {found[0]}"] if len(found) > 3 and len(set(found)) == 1 else [*found]
        answers[name].append(ended)
        if not set(found) <= allowed:
            problems.append(f"{name}: {found}: {came[:300]!r}")
        if found and found[0] >= 400 and b'"error"' not in came:
            answers[name].append("not in the form of errors")
    return {"answers": answers, "counts": counted(answers), "problems": problems}


def counted(answers: dict) -> dict:
    counts: dict[str, int] = {}
    for answer in answers.values():
        counts[str(answer)] = counts.get(str(answer), 0) + 1
    return counts
