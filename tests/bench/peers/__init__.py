"""Peers: other engines that do the same work, for figures side by side. A module each; this is the list of them.

A module has a function `prepare`, which loads a task and gives back what is to be measured.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib import import_module
from importlib.util import find_spec
from typing import cast

from tests.bench.works import Evaluate, Task, Work


@dataclass(frozen=True)
class Peer:
    """An engine that can run some of the workloads.

    Attributes:
        module: its module in this folder.
        needs: the package that contains it.
        kinds, fed: the workloads that it can run.
        once: whether it computes the answer of each window anew; as ``NAME-tumbling`` it does so only when a window is
            full.
        tools: the programs that have to be on the path.
        spark: whether it works in processes of Spark's.
    """

    module: str
    needs: str
    kinds: frozenset[str]
    fed: frozenset[str] = frozenset({"memory"})
    once: bool = False
    tools: tuple[str, ...] = ()
    spark: bool = False


def _peer(module: str, needs: str, kinds: str, fed: str = "memory", **more: object) -> Peer:
    return Peer(module, needs, frozenset(kinds.split()), frozenset(fed.split()), **more)  # type: ignore[arg-type]


PARSING = "parse"
"""The peer that only parses."""
TUMBLING = "-tumbling"
"""The suffix of the name of a peer that answers only when a window is full."""

_ENGINES = {
    "pyoxigraph": _peer("oxigraph", "pyoxigraph", "join many rdfs closure", "memory files", once=True),
    PARSING: _peer("parse", "pyoxigraph", "join", "files"),
    "rdflib": _peer("rdflib", "rdflib", "join many rdfs closure", once=True),
    "jena": _peer("jena", "owlready2", "join many rdfs closure", "memory events", tools=("javac", "java")),
    "jena-arq": _peer("arq", "owlready2", "join", once=True, tools=("javac", "java")),
    "bytewax": _peer("bytewax", "bytewax", "join"),
    "clingo": _peer("clingo", "clingo", "join many rdfs closure", once=True),
    "polars": _peer("polars", "polars", "join rdfs closure", once=True),
    "duckdb": _peer("duckdb", "duckdb", "join rdfs closure", once=True),
    "reasonable": _peer("reasonable", "reasonable", "rdfs"),
    "owlrl": _peer("owlrl", "owlrl", "rdfs"),
    "pyspark-batch": _peer("frames", "pyspark", "landmark rdfs entailment", "files", spark=True),
    "pyspark-stream": _peer("structured", "pyspark", "stepped", "folder", spark=True),
}

PEERS: dict[str, Peer] = _ENGINES | {f"{name}{TUMBLING}": peer for name, peer in _ENGINES.items() if peer.once}


def does(name: str, work: Work) -> bool:
    """Returns whether a peer is meant for a workload."""
    peer = PEERS[name]
    return work.kind in peer.kinds and work.fed in peer.fed and (bool(work.window) or not name.endswith(TUMBLING))


def reason(name: str, work: Work) -> str:
    """Returns why a peer cannot run a workload here, or ``""`` if it can."""
    peer = PEERS[name]
    if not does(name, work):
        return f"does not do `{work.name}`"
    if not find_spec(peer.needs):
        return f"the package `{peer.needs}` is not installed"
    missing = [tool for tool in peer.tools if not shutil.which(tool)]
    return f"there is no `{missing[0]}` on the path" if missing else ""


def prepare(name: str, task: Task) -> Evaluate:
    """Prepares a peer for a task."""
    if name.endswith(TUMBLING):
        task = replace(task, slide=task.work.window)
    make = cast(Callable[[Task], Evaluate], import_module(f"tests.bench.peers.{PEERS[name].module}").prepare)
    return make(task)
