"""What made-up programs and streams are made of: few terms, features, and what is known of a rule in the making."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import product

from squall.functions.jena import function_iri
from squall.model import Pattern, Slot, Source, Variable, variables
from squall.rdf import XSD, Term, Triple, iri, literal

NODES = tuple(iri(f"http://example.org/{name}") for name in "abc")
LITERALS = (
    literal("1", XSD + "int"),
    literal("01", XSD + "integer"),
    literal("1.0", XSD + "double"),
    literal("2", XSD + "integer"),
    literal("1"),
)
"""Some are one value in several forms; the last is a string."""
NUMBERS = (*LITERALS[:4], literal("0.1", XSD + "decimal"), literal("0.3", XSD + "float"))
LEVELS = tuple(tuple(iri(f"http://example.org/{name}") for name in names) for names in (("p", "q"), ("r",), ("s",)))
"""Predicates by stratum: a rule reads its own level and those below it, and negates only those below."""
MEASURE = iri("http://example.org/n")
"""A predicate whose objects are numbers; no rule makes it."""
STREAMS = ("", "http://example.org/one", "http://example.org/two")
DERIVED_STREAMS = ("http://example.org/made", "http://example.org/more")
"""Streams that programs make."""
GRAPHS = ("", "", "<http://example.org/one>", "<http://example.org/named>", "_:named")
"""Named graphs, of which one has the name of a stream."""

FEATURES = {
    "axioms": "rules without a body",
    "landmark": "sources without a window",
    "transitive": "rules that say that a predicate is transitive",
    "alike": "rules that differ in a constant",
    "negation": "NotExists",
    "maybe": "left joins",
    "either": "unions",
    "parts": "sub-systems that are joined, and more than one joinable in NotExists and Optional",
    "compute": "table functions",
    "now": "the time since which a solution holds",
    "grouping": "aggregates",
    "totals": "aggregates without keys, which have a row of nothing too",
    "distinct": "of solutions",
    "slice": "order, offset and limit",
    "select": "queries beside rules",
    "delete": "rules that take facts out of the streams",
    "insert": "rules that put facts into graphs",
    "streams": "several streams, sources that name one, rules with several sources",
    "graphs": "parts that read where facts come from",
    "named": "events and static data in named graphs, and sources that read one of these",
    "times": "parts that read when facts came",
    "windows": "RANGE, and RANGE STEP with every alignment",
    "count": "windows of the last so many triples, each time, or after so many further ones",
    "removals": "streams that carry removals",
    "reports": "report policies other than `close`, and evaluations told where they are empty",
    "unsure": "joins on variables that may be unbound",
    "minus": "Minus",
    "exists": "whether there is a solution for a solution",
    "exact": "literals that match by term",
    "keeps": "values that solutions may do without",
    "ask": "queries that ask whether there is any solution",
    "internal": "facts that are no part of the answer",
    "output specs": "rules that say how their answer is told, and such as make streams that others read",
}
"""What a made-up program may have, by the name under which it is switched on."""
ALL = frozenset(FEATURES)
CORE = frozenset({"axioms", "landmark", "negation"})
"""What needs no time: rules over a growing set of facts."""

WHOLE = frozenset({"negation", "minus", "exists", "maybe", "now", "grouping", "totals", "slice"})
"""Features by which more facts may make less: they read lower strata only."""
TOP = len(LEVELS)
"""The level of what makes no facts (queries): it may read all others."""
NAMES = tuple(map(Variable, "xyz"))
TRUTHS = (literal("true", XSD + "boolean"), literal("false", XSD + "boolean"))
MADE, THERE, ALSO, NAMED, TIME = map(Variable, ("made", "there", "also", "graph", "time"))
BASE, DERIVED = LEVELS[0], tuple(predicate for level in LEVELS[1:] for predicate in level)
# What is listed several times is drawn more often: nodes rather than literals, data rather than what rules make.
FACTS = tuple(
    Triple(subject, predicate, value)
    for subject, predicate, value in product(NODES, 2 * BASE + DERIVED, 3 * NODES + LITERALS)
)
MEASURES = tuple(Triple(subject, MEASURE, value) for subject, value in product(NODES, NUMBERS))
TESTS = tuple(
    (function_iri(name), (left, right))
    for name, left, right in product(("equal", "notEqual", "lessThan", "ge"), NAMES, NAMES + LITERALS[:3])
    if left != right
) + tuple((function_iri(name), (left,)) for name, left in product(("isLiteral", "notLiteral", "unbound"), NAMES))


@dataclass(frozen=True)
class Shape:
    """What a rule may say: the level that its head is on, and the features that its program has."""

    level: int
    features: frozenset[str]
    sources: tuple[tuple[Source, ...], ...]

    @property
    def below(self) -> tuple[Term, ...]:
        lower = tuple(predicate for level in LEVELS[: self.level] for predicate in level)
        return (*BASE, *lower, MEASURE) if lower and self.features & {"grouping", "totals"} else lower

    @property
    def readable(self) -> tuple[Slot, ...]:
        """A variable for a predicate reads every level: only what nothing negates may depend on it."""
        own = LEVELS[self.level] if self.level < TOP else ()
        scope = (*BASE, *BASE, *self.below, *own)
        return (*scope, NAMES[-1]) if not self.features & WHOLE or self.level >= TOP - 1 else scope


@dataclass(frozen=True)
class Scope:
    """The variables of a body: bound in each solution; of these, those that are never literals; maybe unbound."""

    bound: tuple[Variable, ...] = ()
    subjects: tuple[Variable, ...] = ()
    maybe: tuple[Variable, ...] = ()

    @property
    def all(self) -> tuple[Variable, ...]:
        return (*self.bound, *self.maybe)

    def plus(self, other: Scope) -> Scope:
        return Scope(
            each_once(self.bound, other.bound),
            each_once(self.subjects, other.subjects),
            tuple(name for name in each_once(self.maybe, other.maybe) if name not in (*self.bound, *other.bound)),
        )

    def bound_in(self, pattern: Pattern) -> bool:
        """Whether all variables of a pattern are known."""
        return set(self.bound).issuperset(variables(pattern))

    def only(self, names: Collection[Variable]) -> Scope:
        parts = (self.bound, self.subjects, self.maybe)
        return Scope(*(tuple(name for name in part if name in names) for part in parts))


def each_once(*parts: Sequence[Variable]) -> tuple[Variable, ...]:
    return tuple(dict.fromkeys(name for part in parts for name in part))
