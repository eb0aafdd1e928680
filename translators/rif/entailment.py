"""The rules that come with ``##`` and with the profiles of imported data. Consequences of data alone are read, not
output.

Sources: RIF RDF and OWL Compatibility, sections 3.2, 4 and 9; RDF 1.1 Semantics, sections 7 to 9; OWL 2 Profiles, 4.3.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path

from squall.model import AtomPattern, Call, Construct, Filter, NotExists, Pattern, System, Variable
from squall.rdf import OWL, RDFS, Term, iri
from squall.rdf.compounds import UNKNOWN, VIOLATED
from squall.rdf.vocabulary import TYPE
from squall.translators.rif.terms import EQUAL, INCONSISTENT, SUBCLASS, UNDECIDED

_X, _Y, _Z = (Variable(name) for name in "xyz")

DIRECT = "OWL-Direct"
SETS = {
    "Simple": (),
    "RDF": (),
    "RDFS": ("rdfs", "rdfs-axioms"),
    "D": ("rdfs", "rdfs-axioms", "datatypes"),
    DIRECT: ("owl2rl",),
}
"""The rule sets of `squall.rulesets` for each supported profile."""
_OWN_FILES = {"RDF": ("rdf",), "D": ("values",), DIRECT: ("direct",)}
"""The rules of a profile in files beside this module."""


def subclasses() -> Iterator[System]:
    """Yields the rules for ``##``.

    It is transitive, an instance of a class is an instance of its superclasses, and ``##`` implies rdfs:subClassOf. An
    rdfs:subClassOf of the data, on the other hand, does not imply ``##``.
    """

    def under(left: Variable, right: Variable) -> AtomPattern:
        return AtomPattern(SUBCLASS, (left, right))

    transitive = Construct((under(_X, _Z),), internal=True)
    yield System("rif:subclass-of-subclass", joinables=(under(_X, _Y), under(_Y, _Z)), consequences=(transitive,))
    member = Construct((Pattern(_X, TYPE, _Z),))
    yield System("rif:member-of-subclass", joinables=(under(_Y, _Z), Pattern(_X, TYPE, _Y)), consequences=(member,))
    conclusion = Construct((Pattern(_X, iri(RDFS + "subClassOf"), _Y),))
    yield System("rif:subclass", joinables=(under(_X, _Y),), consequences=(conclusion,))


def systems(profile: str) -> Iterator[System]:
    """Yields the rules of a profile, which is one of `SETS`."""
    for name in (*SETS[profile], *_OWN_FILES.get(profile, ())):
        yield from _rule_set(name)
    if profile in ("D", DIRECT):
        yield _contradiction()
    if profile == DIRECT:
        yield from _equations()
        yield from _unions()


@cache
def _rule_set(name: str) -> tuple[System, ...]:
    """Returns the rules of a set, or of a file beside this module."""
    from squall import rulesets
    from squall.lexers.jena import lexer
    from squall.translators.jena import translator

    path = rulesets.path(name) if name in rulesets.names() else Path(__file__).with_name(f"{name}.jena")
    return rulesets.prepared(translator(lexer(path.read_text(encoding="utf-8"), str(path))), background=True).subsystems


def _contradiction() -> System:
    """Returns the rule by which a violation ends the run: everything follows from a contradiction."""
    from squall.rulesets import VIOLATED_BY

    test = Filter(Call(VIOLATED, (_X, _Y)))  # never true, so that its conclusion is never output
    conclusion = Construct((AtomPattern(INCONSISTENT, (_X, _Y)),))
    return System(
        "rif:contradiction", joinables=(Pattern(_X, VIOLATED_BY, _Y),), predicates=(test,), consequences=(conclusion,)
    )


def _equations() -> Iterator[System]:
    """Yields the rules by which individuals are owl:sameAs each other if and only if they are equal."""
    same_as, equal = Pattern(_X, iri(OWL + "sameAs"), _Y), AtomPattern(EQUAL, (_X, _Y))
    other = Filter(Call("urn:x-squall:datatypes:notIdentical", (_X, _Y)))
    for name, body, head in (("rif:same", same_as, equal), ("rif:equal", equal, same_as)):
        conclusion = Construct((head,), internal=True)
        yield System(name, joinables=(body,), predicates=(other,), consequences=(conclusion,))


def _unions() -> Iterator[System]:
    """Yields the rules that end the run if an instance of a union is in none of its classes.

    If rules conclude a class for each instance of a union, they have concluded all that follows: this is a model of the
    whole, and the least one except for the unions.
    """
    from squall.rulesets import HELPER

    kind, cells, member_class, who = (Variable(name) for name in ("union", "list", "class", "who"))
    union = Pattern(kind, iri(OWL + "unionOf"), cells)
    member = AtomPattern(Term(f"{HELPER}member>"), (cells, member_class))
    none = NotExists((member, Pattern(who, TYPE, member_class)))
    undecided = AtomPattern(UNDECIDED, (who, kind))
    yield System(
        "rif:union",
        joinables=(union, Pattern(who, TYPE, kind)),
        predicates=(none,),
        consequences=(Construct((undecided,), internal=True),),
    )
    run_ends = Filter(Call(UNKNOWN, (who,)))
    conclusion = Construct((AtomPattern(INCONSISTENT, (who, kind)),))
    yield System("rif:undecided", joinables=(undecided,), predicates=(run_ends,), consequences=(conclusion,))
