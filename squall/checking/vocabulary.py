"""``unknown-term``, ``misspelt-predicate``: names that a vocabulary does not have, or that rules spell in two ways."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import cache

from squall.checking.findings import WARNING, Finding
from squall.checking.program import Program, Rule, readings
from squall.checking.spelling import is_slip, parted
from squall.errors import Origin, did_you_mean
from squall.model import Construct, Delete, FactPattern, Insert, Pattern
from squall.model.fact_shapes import derived_shapes
from squall.model.unbounded_state import pattern_text
from squall.rdf import OWL, RDF, RDFS, XSD, Term, iri, iri_text, is_iri, is_literal, parts

_VOCABULARIES = {RDF: "rdf", RDFS: "rdfs", OWL: "owl", XSD: "xsd"}


def check(program: Program) -> Iterator[Finding]:
    """A finding for each term that is none of RDF's, RDFS's, OWL's or XSD's, though it is in their namespace, be it the
    datatype of a literal; and for each predicate that one pattern only reads, which no rule makes, while other rules
    make one that is spelt nearly so."""
    for rule in program.rules:
        for pattern in _patterns(rule):
            yield from (_unknown(term, pattern.origin or rule.origin) for term in _terms(pattern) if _is_unknown(term))
    yield from _misspelt(program)


def _patterns(rule: Rule) -> Iterator[FactPattern]:
    """The patterns and the templates of a rule."""
    yield from (reading.pattern for reading in readings(rule.system))
    for one in rule.system.consequences:
        if isinstance(one, Construct | Insert | Delete):
            yield from one.template


def _terms(pattern: FactPattern) -> Iterator[Term]:
    slots = (slot for slot in pattern.slots if isinstance(slot, str))
    named = (iri(parts(slot).datatype) if is_literal(slot) else slot for slot in slots)
    return (term for term in dict.fromkeys(named) if is_iri(term))


# What vocabularies have


_ALSO = {"anyType", "anySimpleType", "anyAtomicType", "JSON", "dirLangString", "reifies"}
"""What rdflib does not know of RDF 1.2 and XSD."""


@cache
def _vocabulary(namespace: str) -> frozenset[str]:
    """The local names of the terms of a vocabulary."""
    import rdflib

    terms = {RDF: rdflib.RDF, RDFS: rdflib.RDFS, OWL: rdflib.OWL, XSD: rdflib.XSD}[namespace]
    return frozenset(terms.__annotations__) | _ALSO


def _split(term: Term) -> tuple[str, str]:
    """The namespace and the local name, of a term of one of the vocabularies."""
    text = iri_text(term)
    namespace = next((known for known in _VOCABULARIES if text.startswith(known)), "")
    return namespace, text.removeprefix(namespace)


def _is_unknown(term: Term) -> bool:
    namespace, local = _split(term)
    if not namespace or not local or (namespace == RDF and local[0] == "_" and local[1:].isdigit()):
        return False
    return local not in _vocabulary(namespace)


def _unknown(term: Term, origin: Origin | None) -> Finding:
    namespace, local = _split(term)
    prefix = _VOCABULARIES[namespace]
    hint = did_you_mean(f"{prefix}:{local}", [f"{prefix}:{known}" for known in _vocabulary(namespace)])
    return Finding("unknown-term", WARNING, f"there is no term `{prefix}:{local}`", origin, hint)


# What rules spell in two ways


def _misspelt(program: Program) -> Iterator[Finding]:
    found = [(rule, reading) for rule in program.rules for reading in readings(rule.system)]
    places = {(one.pattern.predicate, one.pattern.origin) for _, one in found if isinstance(one.pattern, Pattern)}
    reads = Counter(predicate for predicate, _ in places)
    for rule, reading in found:
        pattern = reading.pattern
        if isinstance(pattern, Pattern) and isinstance(pattern.predicate, str) and reads[pattern.predicate] == 1:
            meant = _meant(program, rule, pattern.predicate)
            if meant:
                message = f"{pattern_text(pattern)} reads {pattern.predicate}, which no rule makes or reads elsewhere"
                hint = f"did you mean {' or '.join(meant)}, which rules make?"
                yield Finding("misspelt-predicate", WARNING, message, pattern.origin or rule.origin, hint)


def _meant(program: Program, rule: Rule, predicate: Term) -> list[Term]:
    """The predicates that other rules make and that are spelt nearly like one that nothing makes."""
    counted = program.statistics is not None and program.statistics.counts(predicate).triples
    if counted or any(program.made.overlapping((None, predicate, None))):
        return []
    own = {made[1] for made in derived_shapes(rule.system)}
    return sorted(other for other in program.predicates - own if _is_like(predicate, other))


def _is_like(one: Term, other: Term) -> bool:
    """Whether two IRIs of one namespace are spelt nearly alike. A plural is another word."""
    (space, local), (there, name) = parted(one), parted(other)
    return space == there and local + "s" != name and name + "s" != local and is_slip(local, name)
