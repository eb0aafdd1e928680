"""The rules that come with ``##`` and with the profiles of imported data; what follows from data is read, and not told.

Sources: RIF RDF and OWL Compatibility, sections 3.2, 4 and 9; RDF 1.1 Semantics, sections 7 to 9; OWL 2 Profiles, 4.3.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path

from squall.model import AtomPattern, Call, Construct, Filter, NotExists, Pattern, System, Variable
from squall.rdf import OWL, RDFS, Term, iri
from squall.rdf.compounds import UNKNOWN, VIOLATED
from squall.translators.rif.terms import EQUAL, INCONSISTENT, SUBCLASS, TYPE, UNDECIDED

_X, _Y, _Z = (Variable(name) for name in "xyz")

DIRECT = "OWL-Direct"
SETS = {
    "Simple": (),
    "RDF": (),
    "RDFS": ("rdfs", "rdfs-axioms"),
    "D": ("rdfs", "rdfs-axioms", "datatypes"),
    DIRECT: ("owl2rl",),
}
"""The rule sets of `squall.rulesets` for each profile that can be had by rules."""
_FILES = {"RDF": ("rdf",), "D": ("values",), DIRECT: ("direct",)}
"""Rules of a profile that lie beside this module."""


def subclasses() -> Iterator[System]:
    """``##`` is transitive, what is in a class is in those above it, and a class is an rdfs:subClassOf them; what data
    say of rdfs:subClassOf, on the other hand, says nothing of ``##``."""

    def under(left: Variable, right: Variable) -> AtomPattern:
        return AtomPattern(SUBCLASS, (left, right))

    transitive = Construct((under(_X, _Z),), internal=True)
    yield System("rif:subclass-of-subclass", joinables=(under(_X, _Y), under(_Y, _Z)), consequences=(transitive,))
    member = Construct((Pattern(_X, TYPE, _Z),))
    yield System("rif:member-of-subclass", joinables=(under(_Y, _Z), Pattern(_X, TYPE, _Y)), consequences=(member,))
    conclusion = Construct((Pattern(_X, iri(RDFS + "subClassOf"), _Y),))
    yield System("rif:subclass", joinables=(under(_X, _Y),), consequences=(conclusion,))


def systems(profile: str) -> Iterator[System]:
    """The rules of a profile, which is one of `SETS`."""
    for name in (*SETS[profile], *_FILES.get(profile, ())):
        yield from _of(name)
    if profile in ("D", DIRECT):
        yield _contradiction()
    if profile == DIRECT:
        yield from _equations()
        yield from _unions()


@cache
def _of(name: str) -> tuple[System, ...]:
    """The rules of a set, or of a file beside this module."""
    from squall import rulesets
    from squall.lexers.jena import lexer
    from squall.translators.jena import translator

    path = rulesets.path(name) if name in rulesets.names() else Path(__file__).with_name(f"{name}.jena")
    return rulesets.prepared(translator(lexer(path.read_text(encoding="utf-8"), str(path))), background=True).subsystems


def _contradiction() -> System:
    """What violates a rule ends the run: from a contradiction everything follows."""
    from squall.rulesets import VIOLATED_BY

    test = Filter(Call(VIOLATED, (_X, _Y)))  # never true, so that what is concluded here is never told
    conclusion = Construct((AtomPattern(INCONSISTENT, (_X, _Y)),))
    return System(
        "rif:contradiction", joinables=(Pattern(_X, VIOLATED_BY, _Y),), predicates=(test,), consequences=(conclusion,)
    )


def _equations() -> Iterator[System]:
    """Individuals are owl:sameAs each other if and only if they are equal."""
    same, equal = Pattern(_X, iri(OWL + "sameAs"), _Y), AtomPattern(EQUAL, (_X, _Y))
    other = Filter(Call("urn:x-squall:datatypes:notIdentical", (_X, _Y)))
    for name, body, head in (("rif:same", same, equal), ("rif:equal", equal, same)):
        conclusion = Construct((head,), internal=True)
        yield System(name, joinables=(body,), predicates=(other,), consequences=(conclusion,))


def _unions() -> Iterator[System]:
    """What is in a union has to be in one of its classes by what rules conclude: then these have concluded all that
    follows, since that is a model of the whole (and the least one of all but the unions). Else the run ends."""
    from squall.rulesets import HELPER

    kind, cells, member_class, who = (Variable(name) for name in ("union", "list", "class", "who"))
    union = Pattern(kind, iri(OWL + "unionOf"), cells)
    member = AtomPattern(Term(f"{HELPER}member>"), (cells, member_class))
    none = NotExists((member, Pattern(who, TYPE, member_class)))
    open_ = AtomPattern(UNDECIDED, (who, kind))
    yield System(
        "rif:union",
        joinables=(union, Pattern(who, TYPE, kind)),
        predicates=(none,),
        consequences=(Construct((open_,), internal=True),),
    )
    ends = Filter(Call(UNKNOWN, (who,)))
    conclusion = Construct((AtomPattern(INCONSISTENT, (who, kind)),))
    yield System("rif:undecided", joinables=(open_,), predicates=(ends,), consequences=(conclusion,))
