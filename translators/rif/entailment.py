"""The rules that come with ``##`` and with the profiles of imported data; what follows from data is read, and not told.

Sources: RIF RDF and OWL Compatibility, sections 3.2, 4 and 9; RDF 1.1 Semantics, sections 7 to 9; OWL 2 Profiles, 4.3.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path

from squall.compounds import VIOLATED
from squall.rdf import OWL, RDFS, iri
from squall.system import AtomPattern, Call, Construct, Pattern, System, Test, Variable
from squall.translators.rif.equality import EQUAL
from squall.translators.rif.terms import OWN

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
    from squall.translators.rif.conditions import SUBCLASS, TYPE

    def under(left: Variable, right: Variable) -> AtomPattern:
        return AtomPattern(SUBCLASS, (left, right))

    transitive = Construct((under(_X, _Z),), internal=True)
    yield System("rif:subclass-of-subclass", joinables=(under(_X, _Y), under(_Y, _Z)), consequences=(transitive,))
    member = Construct((Pattern(_X, TYPE, _Z),))
    yield System("rif:member-of-subclass", joinables=(under(_Y, _Z), Pattern(_X, TYPE, _Y)), consequences=(member,))
    told = Construct((Pattern(_X, iri(RDFS + "subClassOf"), _Y),))
    yield System("rif:subclass", joinables=(under(_X, _Y),), consequences=(told,))


def systems(profile: str) -> Iterator[System]:
    """The rules of a profile, which is one of `SETS`."""
    for name in (*SETS[profile], *_FILES.get(profile, ())):
        yield from _of(name)
    if profile in ("D", DIRECT):
        yield _contradiction()
    if profile == DIRECT:
        yield from _equations()


@cache
def _of(name: str) -> tuple[System, ...]:
    """The rules of a set, or of a file beside this module."""
    import squall
    from squall import rulesets

    path = rulesets.path(name) if name in rulesets.names() else Path(__file__).with_name(f"{name}.jena")
    return rulesets.prepared(squall.compile(path), background=True).subsystems


def _contradiction() -> System:
    """What violates a rule ends the run: from a contradiction everything follows."""
    from squall.rulesets import VIOLATED_BY

    test = Test(Call(VIOLATED, (_X, _Y)))  # never true, so that what is concluded here is never told
    made = Construct((AtomPattern(iri(OWN + "inconsistent"), (_X, _Y)),))
    return System(
        "rif:contradiction", joinables=(Pattern(_X, VIOLATED_BY, _Y),), predicates=(test,), consequences=(made,)
    )


def _equations() -> Iterator[System]:
    """Individuals are owl:sameAs each other if and only if they are equal."""
    same, equal = Pattern(_X, iri(OWL + "sameAs"), _Y), AtomPattern(EQUAL, (_X, _Y))
    other = Test(Call("urn:x-squall:datatypes:notIdentical", (_X, _Y)))
    for name, body, head in (("rif:same", same, equal), ("rif:equal", equal, same)):
        made = Construct((head,), internal=True)
        yield System(name, joinables=(body,), predicates=(other,), consequences=(made,))
