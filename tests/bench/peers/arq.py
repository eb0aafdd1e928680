"""Apache Jena 2.10's query engine ARQ, which answers each window anew."""

from __future__ import annotations

from tests.bench.peers.jena import start
from tests.bench.works import Evaluate, Task


def prepare(task: Task) -> Evaluate:
    (rule,) = task.work.rules
    query = task.files.program.with_suffix(".rq")
    query.write_text(rule.sparql())
    return start(task, "arq", "window", query)
