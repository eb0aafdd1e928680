"""The vocabulary of random programs and streams: terms, features, and the scope of a rule that is being drawn."""

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
"""Some have the same value in several forms. The last one is a string."""
NUMBERS = (*LITERALS[:4], literal("0.1", XSD + "decimal"), literal("0.3", XSD + "float"))
LEVELS = tuple(tuple(iri(f"http://example.org/{name}") for name in names) for names in (("p", "q"), ("r",), ("s",)))
"""Predicates by stratum: a rule reads its own level and those below it, and negates only those below."""
MEASURE = iri("http://example.org/n")
"""A predicate whose objects are numbers. No rule derives it."""
STREAMS = ("", "http://example.org/one", "http://example.org/two")
DERIVED_STREAMS = ("http://example.org/made", "http://example.org/more")
"""The derived streams of programs."""
GRAPHS = ("", "", "<http://example.org/one>", "<http://example.org/named>", "_:named")
"""The named graphs. One of them has the name of a stream."""

FEATURES = {
    "axioms": "rules without a body",
    "landmark": "sources without a window",
    "transitive": "rules that say that a predicate is transitive",
    "alike": "rules that differ in a constant",
    "negation": "NOT EXISTS",
    "optional": "left joins",
    "union": "unions",
    "subqueries": "subqueries, and more than one joinable in NOT EXISTS and OPTIONAL",
    "table_functions": "table functions",
    "now": "the time since which a solution holds",
    "grouping": "aggregates",
    "totals": "aggregates without keys, which have a row even of no input",
    "distinct": "sets of solutions",
    "slice": "order, offset and limit",
    "select": "queries beside rules",
    "delete": "rules that delete facts from streams",
    "insert": "rules that insert facts into graphs",
    "streams": "several streams, sources that name one, rules with several sources",
    "graphs": "parts that read the graphs of facts",
    "named": "events and static data in named graphs, and sources that read one of these",
    "times": "parts that read the arrival times of facts",
    "windows": "sliding and hopping windows",
    "count": "count windows, with and without a step, or bounded by time",
    "sessions": "session windows, with and without a key",
    "open sessions": "session windows that are read before their sessions close",
    "removals": "streams that carry removals",
    "reports": "report policies other than `close`, and reports of empty evaluations",
    "nullable": "joins on variables that may be unbound",
    "minus": "MINUS",
    "exists": "EXISTS",
    "exact": "literals that match by term",
    "keep_unbound": "binds whose value may be unbound",
    "ask": "ASK queries",
    "internal": "facts that are not output",
    "output specs": "rules with output specifications of their own, and derived streams",
}
"""The features that a random program may have, by name."""
ALL = frozenset(FEATURES)
CORE = frozenset({"axioms", "landmark", "negation"})
"""The features that need no time: rules over an append-only set of facts."""

WHOLE = frozenset({"negation", "minus", "exists", "optional", "now", "grouping", "totals", "slice"})
"""The features with which more facts may derive fewer. They read lower strata only."""
TOP = len(LEVELS)
"""The level of queries, which derive no facts and may read all other levels."""
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
    """The limits of a rule: the level of its head, and the features of its program."""

    level: int
    features: frozenset[str]
    sources: tuple[tuple[Source, ...], ...]

    @property
    def below(self) -> tuple[Term, ...]:
        lower = tuple(predicate for level in LEVELS[: self.level] for predicate in level)
        return (*BASE, *lower, MEASURE) if lower and self.features & {"grouping", "totals"} else lower

    @property
    def readable(self) -> tuple[Slot, ...]:
        """The predicates that the rule may read.

        A variable as predicate reads every level, so that only rules that nothing negates may have it.
        """
        own = LEVELS[self.level] if self.level < TOP else ()
        scope = (*BASE, *BASE, *self.below, *own)
        return (*scope, NAMES[-1]) if not self.features & WHOLE or self.level >= TOP - 1 else scope


@dataclass(frozen=True)
class Scope:
    """The variables of a body.

    Attributes:
        bound: The variables that are bound in each solution.
        subjects: Those of them that are never literals.
        maybe: The variables that may be unbound.
    """

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
        """Returns whether all variables of a pattern are bound."""
        return set(self.bound).issuperset(variables(pattern))

    def only(self, names: Collection[Variable]) -> Scope:
        parts = (self.bound, self.subjects, self.maybe)
        return Scope(*(tuple(name for name in part if name in names) for part in parts))


def each_once(*parts: Sequence[Variable]) -> tuple[Variable, ...]:
    return tuple(dict.fromkeys(name for part in parts for name in part))
