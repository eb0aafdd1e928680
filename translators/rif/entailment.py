"""The rules that come with ``##`` and with the profiles of imported data.

Sources: RIF RDF and OWL Compatibility, sections 3.2 and 4; RDF 1.1 Semantics, sections 8.1.1 and 9.2.1.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from importlib.resources import files

from squall.rdf import RDFS, iri
from squall.system import AtomPattern, Construct, Pattern, System, Variable

_X, _Y, _Z = (Variable(name) for name in "xyz")


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
    """The rules of a profile (`squall.translators.rif.imports.ORDER`)."""
    if profile in ("RDF", "RDFS"):
        yield from _of("rdf")
    if profile == "RDFS":
        yield from _of("rdfs")


@cache
def _of(name: str) -> tuple[System, ...]:
    """The rules of a document that lies beside this module."""
    from squall.lexers.rif.presentation import lexer
    from squall.translators.rif import translator

    text = files("squall.translators.rif").joinpath(f"{name}.rifps").read_text(encoding="utf-8")
    return translator(lexer(text, f"{name}.rifps")).subsystems
