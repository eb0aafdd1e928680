"""reasonable: OWL 2 RL. It derives more than our rules do, and one thing less.

What is about classes and identity in general is left out when its answer is compared. It does not close the hierarchy
of properties (rdfs5), so that it is given it, and need not find it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain

from rdflib.term import Node
from reasonable import PyReasoner

from squall.rdf import OWL, RDF, RDFS, XSD, term
from tests.bench.works import Answer, Evaluate, Statement, Task

GENERAL = tuple(f"<{vocabulary}" for vocabulary in (OWL, RDF, RDFS, XSD))
SUBPROPERTY = f"<{RDFS}subPropertyOf>"
SCHEMA = frozenset((SUBPROPERTY, f"<{RDFS}subClassOf>"))


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
        return Answer(line for line in chain(extra, plain(result)) if line not in lines)

    return evaluate


def hierarchy(static: set[Statement]) -> set[Statement]:
    """Returns the closure of the subproperties."""
    results = {item for item in static if item[1] == SUBPROPERTY}
    while result := {(a, p, d) for a, p, b in results for c, _, d in results if b == c} - results:
        results |= result
    return results


def plain(triples: Iterable[tuple[Node, Node, Node]]) -> Iterator[str]:
    """Returns the facts that are about the data and their schema."""
    for triple in triples:
        subject, predicate, object = map(term, triple)
        reflexive = predicate in SCHEMA and subject == object
        general = predicate == f"<{OWL}sameAs>" or subject.startswith(GENERAL) or object.startswith(GENERAL)
        if not reflexive and not general and not subject.startswith('"'):
            yield f"{subject} {predicate} {object} ."
