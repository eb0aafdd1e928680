"""One run of one workload in a process of its own: python -m tests.bench.child WORK RUN FOLDER.

Says on standard output when the work begins (all is imported, planned and built; no data have been read) and when it
ends, with the number of distinct facts derived and a digest of their set.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator
from hashlib import blake2b
from pathlib import Path

import squall
from squall.streams import Sources, open_source, open_static
from tests.bench.peers import PEERS
from tests.bench.works import WORKS, Files, Work


def derive(run: str, work: Work, files: Files) -> Iterator[str]:
    """The facts that a run derives: ``planner:builder`` or the name of a peer."""
    if run in PEERS:
        print(json.dumps({"at": "start"}), flush=True)
        yield from PEERS[run](work, files)
        return
    planner, builder = run.split(":")
    job = squall.build(squall.plan(squall.compile(files.program), planner), builder)
    stream, static = Sources([open_source(str(files.stream))]), open_static(str(files.static))
    print(json.dumps({"at": "start"}), flush=True)
    for output in job.run(stream, static):
        yield str(output.fact)


def digest(facts: Iterable[str]) -> dict[str, int | str]:
    """The size of a set of facts, and a digest that does not depend on their order."""
    distinct = set(facts)
    total = sum(int.from_bytes(blake2b(fact.encode(), digest_size=8).digest(), "big") for fact in distinct)
    return {"outputs": len(distinct), "digest": f"{total % 2**64:016x}"}


def main(name: str, run: str, folder: str) -> None:
    work = WORKS[name]
    found = digest(derive(run, work, work.files(Path(folder))))
    print(json.dumps({"at": "end", **found}), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
