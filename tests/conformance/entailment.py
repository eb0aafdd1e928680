"""What the suites of entailment share: whether a graph follows from others by rule sets, or whether they contradict.

The conclusion is a query over the closure, its blank nodes variables (simple entailment, RDF 1.1 Semantics, section 5).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pyoxigraph
from pyoxigraph import RdfFormat

import squall
from squall import rulesets
from squall.contracts import Options
from squall.errors import SquallError, single_errors
from squall.lexers.owl.mapping import ontology
from squall.model import Ask, Pattern, Select, System, Variable
from squall.plan.seeds import FIXED_SEED
from squall.rdf import ALWAYS, RDF, XSD, Boolean, Event, Solution, Triple, iri, is_blank, term
from squall.translators.owl.axioms import Axioms
from tests.conformance import KnownBad, LeftOut, Stages

TYPE = iri(f"{RDF}type")
VOCABULARIES = tuple(
    f"<http://www.w3.org/{name}#" for name in ("2002/07/owl", "2000/01/rdf-schema", "1999/02/22-rdf-syntax-ns")
)
"""The beginnings of the terms of OWL, RDFS and RDF."""


DATATYPES = f"<{XSD}"


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
    exact: bool = False,
) -> None:
    """Raises AssertionError if a test has another result than expected. Of premises that contradict each other
    everything follows.

    An entailment that the rules need not have, by `reason_beyond`, may be missing: then LeftOut is raised. What must
    not follow must not follow in any case.

    Args:
        kind: What the manifests of the W3C call it.
        conclusion: The conclusion of a test of entailment.
        exact: As in `found`.

    Raises:
        KnownBad: Nothing is asked.
        LeftOut: The entailment is missing, and is beyond the rules.
    """
    if conclusion is not None and not conclusion:
        raise KnownBad("the conclusion is an empty document")
    come = found(premises, conclusion or (), sets, stages, exact)
    follows = bool(come.violated) or (conclusion is not None and come.entailed)
    expected = kind in ("PositiveEntailmentTest", "InconsistencyTest")
    if expected and not follows and (reason := reason_beyond(premises, conclusion, sets)):
        raise LeftOut(reason)
    assert follows is expected, f"violated: {', '.join(come.violated)}" if come.violated else f"follows: {follows}"


def reason_beyond(premises: Sequence[Triple], conclusion: Sequence[Triple] | None, sets: Sequence[str]) -> str:
    """Returns why rules need not have an entailment, or ``""``.

    The rules of OWL 2 RL are complete for assertions about named individuals, where the premises are in the profile
    (OWL 2 Profiles, theorem PR1). No rule set says how many values a datatype has.
    """
    for fact in sorted(conclusion or ()):
        term = fact.object if fact.predicate == TYPE else fact.predicate
        if is_blank(fact.subject) or is_blank(fact.object):
            return "no rule concludes that there is something that the data do not name"
        if term.startswith(VOCABULARIES) and "owl2rl" in sets:
            return f"no rule has to conclude {term}: OWL 2 RL is complete for assertions about individuals"
    if "owl2rl" in sets and (violation := next(_violations(premises), "")):
        return f"the premises are not in OWL 2 RL: {violation}"
    return "no rule knows how many values a datatype has" if "datatypes" in sets else ""


def _violations(premises: Sequence[Triple]) -> Iterator[str]:
    """Yields why premises are not in the profile RL."""
    try:
        read = ontology(premises, "the premises")
    except SquallError as error:
        yield from (item.message for item in single_errors(error))
        return
    axioms = Axioms(read.axioms)
    axioms.rules()
    yield from map(str, axioms.issues)
    for fact in premises:
        if fact.subject.startswith((*VOCABULARIES, DATATYPES)):
            yield f"{fact.subject} is an individual"


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
    job = squall.build(squall.plan(system, stages.planner), stages.builder, Options(seed=FIXED_SEED))
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
