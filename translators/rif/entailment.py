"""The rules that come with ``##`` and with the profiles of imported data. Consequences of data alone are read, not
output.

Sources: RIF RDF and OWL Compatibility, sections 3.2, 4 and 9; RDF 1.1 Semantics, sections 7 to 9; OWL 2 Profiles, 4.3.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

from squall import rulesets
from squall.lexers.owl import tree as owl
from squall.model import AtomPattern, Call, Construct, Filter, Pattern, System, Variable
from squall.rdf import OWL, RDFS, iri
from squall.rdf.compounds import UNKNOWN, VIOLATED
from squall.rdf.vocabulary import TYPE
from squall.translators.owl.axioms import Axioms, equality
from squall.translators.owl.expressions import UNDECIDED
from squall.translators.rif.terms import EQUAL, INCONSISTENT, SUBCLASS

_X, _Y, _Z = (Variable(name) for name in "xyz")

DIRECT = "OWL-Direct"
SETS = {
    "Simple": (),
    "RDF": (),
    "RDFS": ("rdfs", "rdfs-axioms"),
    "D": ("rdfs", "rdfs-axioms", "datatypes"),
    DIRECT: (),
}
"""The rule sets of `squall.rulesets` for each supported profile. Under `DIRECT` the ontology has rules of its own."""
_OWN_FILES = {"RDF": ("rdf",), "D": ("values",)}
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


def ontology_rules(ontologies: Sequence[owl.Ontology]) -> Iterator[System]:
    """Yields the rules of ontologies, without what is not in OWL 2 RL. They replace individuals by equal ones
    themselves."""
    if ontologies:
        rules = [*axioms_of(ontologies).rules(), *equality()]
        yield from rulesets.prepared(System(subsystems=tuple(rules)), background=True).subsystems
        yield _undecided()


def axioms_of(ontologies: Sequence[owl.Ontology]) -> Axioms:
    """Returns the axioms of ontologies under the direct semantics, in which a class may be in a union."""
    axioms = [axiom for ontology in ontologies for axiom in ontology.axioms]
    return Axioms(axioms, has_cases=True, keeps_apart=True)


@cache
def _rule_set(name: str) -> tuple[System, ...]:
    """Returns the rules of a set, or of a file beside this module."""
    from squall.lexers.jena import lexer
    from squall.translators.jena import translator

    path = rulesets.path(name) if name in rulesets.names() else Path(__file__).with_name(f"{name}.jena")
    return rulesets.prepared(translator(lexer(path.read_text(encoding="utf-8"), str(path))), background=True).subsystems


def _contradiction() -> System:
    """Returns the rule by which a violation ends the run: everything follows from a contradiction."""
    test = Filter(Call(VIOLATED, (_X, _Y)))  # never true, so that its conclusion is never output
    conclusion = Construct((AtomPattern(INCONSISTENT, (_X, _Y)),))
    violation = Pattern(_X, rulesets.VIOLATED_BY, _Y)
    return System("rif:contradiction", joinables=(violation,), predicates=(test,), consequences=(conclusion,))


def _equations() -> Iterator[System]:
    """Yields the rules by which individuals are owl:sameAs each other if and only if they are equal."""
    same_as, equal = Pattern(_X, iri(OWL + "sameAs"), _Y), AtomPattern(EQUAL, (_X, _Y))
    other = Filter(Call("urn:x-squall:datatypes:notIdentical", (_X, _Y)))
    for name, body, head in (("rif:same", same_as, equal), ("rif:equal", equal, same_as)):
        conclusion = Construct((head,), internal=True)
        yield System(name, joinables=(body,), predicates=(other,), consequences=(conclusion,))


def _undecided() -> System:
    """Returns the rule that ends the run if a member of a union is in none of its classes.

    If rules conclude a class for each member of a union, they have concluded all that follows: this is a model of the
    whole, and the least one except for the unions.
    """
    run_ends = Filter(Call(UNKNOWN, (_X,)))
    conclusion = Construct((AtomPattern(INCONSISTENT, (_X, _Y)),))
    undecided = AtomPattern(UNDECIDED, (_X, _Y))
    return System("rif:undecided", joinables=(undecided,), predicates=(run_ends,), consequences=(conclusion,))
