"""reasonable: OWL 2 RL. It derives more than our rules do, and one thing less.

What is about classes and identity in general is left out when its answer is compared. It does not close the hierarchy
of properties (rdfs5), so that it is given it, and need not find it.
"""

from __future__ import annotations

from itertools import chain

from reasonable import PyReasoner

from squall.rdf import RDFS
from tests.bench.peers.rdflib import lines_of_data
from tests.bench.works import Answer, Evaluate, Statement, Task

SUBPROPERTY = f"<{RDFS}subPropertyOf>"


def prepare(task: Task) -> Evaluate:
    reasoner = PyReasoner()
    text = task.files.static.read_text() + task.files.plain.read_text()
    extra = [f"{' '.join(item)} ." for item in hierarchy(set(task.static()))]
    total = task.files.plain.with_suffix(".ttl")
    total.write_text(text + "\n".join(extra))
    reasoner.load_file(str(total))
    lines = set(text.splitlines())

    def evaluate() -> Answer:
        result = reasoner.reason()
        return Answer(line for line in chain(extra, lines_of_data(result)) if line not in lines)

    return evaluate


def hierarchy(static: set[Statement]) -> set[Statement]:
    """Returns the closure of the subproperties."""
    results = {item for item in static if item[1] == SUBPROPERTY}
    while result := {(a, p, d) for a, p, b in results for c, _, d in results if b == c} - results:
        results |= result
    return results
