"""No engine: what it takes to parse the stream with pyoxigraph, and nothing else. It finds no facts."""

from __future__ import annotations

from collections import deque

from tests.bench.peers.oxigraph import quads
from tests.bench.works import Answer, Evaluate, Task


def prepare(task: Task) -> Evaluate:
    def evaluate() -> Answer:
        deque(quads(task.files.plain), maxlen=0)
        return Answer(())

    return evaluate
