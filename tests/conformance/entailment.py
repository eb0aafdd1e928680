"""What the suites of entailment share: whether a graph follows from others by rule sets, or whether they contradict.

The conclusion is a query over the closure, its blank nodes variables (simple entailment, RDF 1.1 Semantics, section 5).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pyoxigraph
from pyoxigraph import RdfFormat

import squall
from squall import rulesets
from squall.contracts import Options
from squall.model import Ask, Pattern, Select, System, Variable
from squall.rdf import ALWAYS, Boolean, Event, Solution, Triple, is_blank, term
from tests.conformance import KnownBad, LeftOut, Stages


class Found(NamedTuple):
    """A result that says whether premises and rules entail a conclusion, and which rules the premises violate (their
    IRIs)."""

    entailed: bool
    violated: tuple[str, ...]


def check(
    kind: str,
    premises: Sequence[Triple],
    conclusion: Sequence[Triple] | None,
    sets: Sequence[str],
    stages: Stages,
    beyond: str = "",
    exact: bool = False,
) -> None:
    """Raises AssertionError if a test has another result than expected. Of premises that contradict each other
    everything follows.

    kind: what the manifests of the W3C call it; conclusion: of a test of entailment. beyond: why the rules do not have
    the entailment: then they must not, and LeftOut is raised. exact: as in `found`. Raises KnownBad where nothing is
    asked.
    """
    if conclusion is not None and not conclusion:
        raise KnownBad("the conclusion is an empty document")
    come = found(premises, conclusion or (), sets, stages, exact)
    follows = bool(come.violated) or (conclusion is not None and come.entailed)
    expected = kind in ("PositiveEntailmentTest", "InconsistencyTest")
    if beyond:
        assert follows is not expected, "is as it should be: it does not lie beyond the rules"
        raise LeftOut(beyond)
    assert follows is expected, f"violated: {', '.join(come.violated)}" if come.violated else f"follows: {follows}"


def document(path: Path, base: str) -> tuple[Triple, ...]:
    """Returns the triples of a document (RDF/XML, Turtle or N-Triples), with blank nodes of its own."""
    form = RdfFormat.from_extension(path.suffix[1:])
    assert form is not None, f"no format of {path.name}"
    quads = pyoxigraph.parse(path=str(path), format=form, base_iri=base, rename_blank_nodes=True)
    return tuple(Triple(term(quad.subject), term(quad.predicate), term(quad.object)) for quad in quads)


def found(
    premises: Iterable[Triple], conclusion: Sequence[Triple], sets: Sequence[str], stages: Stages, exact: bool = False
) -> Found:
    """Derives what follows from the premises by rule sets. exact: literals of the conclusion are compared as
    terms."""
    rule, who = Variable("rule"), Variable("who")
    ask = System(joinables=_patterns(conclusion, exact), consequences=(Ask(),))
    violations = Pattern(rule, rulesets.VIOLATED_BY, who)
    violated = System(joinables=(violations,), consequences=(Select((rule,)),))
    system = System(subsystems=(*(background(name) for name in sets), ask, violated))
    job = squall.build(squall.plan(system, stages.planner), stages.builder, Options())
    facts = [out.fact for out in job.run([], [Event(ALWAYS, (triple,)) for triple in premises])]
    answers = [fact.value for fact in facts if isinstance(fact, Boolean)]
    rows = {fact.values[0] for fact in facts if isinstance(fact, Solution)}
    assert len(answers) == 1, f"asked once, answered {answers}"
    return Found(answers[0], tuple(sorted(row for row in rows if row is not None)))


@cache
def background(name: str) -> System:
    """Returns a rule set whose conclusions are not emitted."""
    return rulesets.prepared(squall.compile(rulesets.path(name)), background=True)


def _patterns(graph: Iterable[Triple], exact: bool) -> tuple[Pattern, ...]:
    slots = ((Variable(cell[2:]) if is_blank(cell) else cell for cell in triple) for triple in graph)
    return tuple(Pattern(subject, predicate, object, exact=exact) for subject, predicate, object in slots)
