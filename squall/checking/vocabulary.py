"""The checks ``unknown-term`` and ``misspelt-predicate``: names that no vocabulary has, or that rules spell in two
ways.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import cache

from squall.checking.findings import WARNING, Finding
from squall.checking.program import Program, Rule, readings
from squall.checking.spelling import is_slip
from squall.errors import Origin, did_you_mean
from squall.model import Construct, Delete, FactPattern, Insert, Pattern
from squall.model.fact_shapes import derived_shapes
from squall.model.unbounded_state import pattern_text
from squall.rdf import OWL, RDF, RDFS, XSD, Term, iri, iri_text, is_iri, is_literal, parts
from squall.rdf.similar_terms import split_iri

_VOCABULARIES = {RDF: "rdf", RDFS: "rdfs", OWL: "owl", XSD: "xsd"}


def check(program: Program) -> Iterator[Finding]:
    """Yields a finding for each unknown term of RDF, RDFS, OWL or XSD, and for each predicate that looks misspelt.

    Datatypes of literals count as well. A misspelt predicate is read by one pattern only and derived by no rule, while
    other rules derive one that is spelt almost like it.
    """
    for rule in program.rules:
        for pattern in _patterns(rule):
            yield from (_unknown(term, pattern.origin or rule.origin) for term in _terms(pattern) if _is_unknown(term))
    yield from _misspelt(program)


def _patterns(rule: Rule) -> Iterator[FactPattern]:
    """Yields the patterns and the templates of a rule."""
    yield from (reading.pattern for reading in readings(rule.system))
    for consequence in rule.system.consequences:
        if isinstance(consequence, Construct | Insert | Delete):
            yield from consequence.template


def _terms(pattern: FactPattern) -> Iterator[Term]:
    slots = (slot for slot in pattern.slots if isinstance(slot, str))
    terms = (iri(parts(slot).datatype) if is_literal(slot) else slot for slot in slots)
    return (term for term in dict.fromkeys(terms) if is_iri(term))


# What vocabularies have


_ADDITIONAL_TERMS = {"anyType", "anySimpleType", "anyAtomicType", "JSON", "dirLangString", "reifies"}
"""Terms of RDF 1.2 and XSD that rdflib does not know."""


@cache
def _vocabulary(namespace: str) -> frozenset[str]:
    """Returns the local names of the terms of a vocabulary."""
    import rdflib

    terms = {RDF: rdflib.RDF, RDFS: rdflib.RDFS, OWL: rdflib.OWL, XSD: rdflib.XSD}[namespace]
    return frozenset(terms.__annotations__) | _ADDITIONAL_TERMS


def _split(term: Term) -> tuple[str, str]:
    """Returns the namespace and the local name of a term of one of the vocabularies."""
    text = iri_text(term)
    namespace = next((candidate for candidate in _VOCABULARIES if text.startswith(candidate)), "")
    return namespace, text.removeprefix(namespace)


def _is_unknown(term: Term) -> bool:
    namespace, local = _split(term)
    if not namespace or not local or (namespace == RDF and local[0] == "_" and local[1:].isdigit()):
        return False
    return local not in _vocabulary(namespace)


def _unknown(term: Term, origin: Origin | None) -> Finding:
    namespace, local = _split(term)
    prefix = _VOCABULARIES[namespace]
    hint = did_you_mean(f"{prefix}:{local}", [f"{prefix}:{name}" for name in _vocabulary(namespace)])
    return Finding("unknown-term", WARNING, f"there is no term `{prefix}:{local}`", origin, hint)


# What rules spell in two ways


def _misspelt(program: Program) -> Iterator[Finding]:
    rule_readings = [(rule, reading) for rule in program.rules for reading in readings(rule.system)]
    places = {
        (reading.pattern.predicate, reading.pattern.origin)
        for _, reading in rule_readings
        if isinstance(reading.pattern, Pattern)
    }
    reads = Counter(predicate for predicate, _ in places)
    for rule, reading in rule_readings:
        pattern = reading.pattern
        if isinstance(pattern, Pattern) and isinstance(pattern.predicate, str) and reads[pattern.predicate] == 1:
            suggestions = _suggestions(program, rule, pattern.predicate)
            if suggestions:
                message = f"{pattern_text(pattern)} reads {pattern.predicate}, which no rule makes or reads elsewhere"
                hint = f"did you mean {' or '.join(suggestions)}, which rules make?"
                yield Finding("misspelt-predicate", WARNING, message, pattern.origin or rule.origin, hint)


def _suggestions(program: Program, rule: Rule, predicate: Term) -> list[Term]:
    """Returns predicates of other rules that are spelt almost like one that nothing derives."""
    triple_count = program.statistics is not None and program.statistics.counts(predicate).triples
    if triple_count or any(program.derived.overlapping((None, predicate, None))):
        return []
    own = {derived_shape[1] for derived_shape in derived_shapes(rule.system)}
    return sorted(other for other in program.predicates - own if _is_like(predicate, other))


def _is_like(first: Term, other: Term) -> bool:
    """Returns whether two IRIs of one namespace are spelt almost alike. A plural is another word."""
    (namespace, local), (other_namespace, other_local) = split_iri(first), split_iri(other)
    return (
        namespace == other_namespace
        and local + "s" != other_local
        and other_local + "s" != local
        and is_slip(local, other_local)
    )
