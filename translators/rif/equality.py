"""Equality that rules conclude: equal terms are interchangeable in each relation, frame, list and function.

Rules do this by copying. Each fact that has a term is derived with each equal term in its place, so that n arguments
with k equal terms each give k to the power of n facts. The same holds for each compound term. Only terms that occur in
facts, equations and conditions are considered. If two data values, or lists of different lengths, become equal, the
program is inconsistent and the run ends.

Sources: RIF-BLD, section 3.2 (semantic structures: identity, lists), and first-order logic's axioms of congruence.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from squall.model import (
    AtomPattern,
    Bind,
    Call,
    Construct,
    FactPattern,
    Filter,
    Pattern,
    Predicate,
    Slot,
    System,
    TableFunction,
    Variable,
)
from squall.rdf import Term, literal
from squall.rdf.compounds import ARGUMENTS, CLASH, LIMIT, MEMBERS, REDUCED, REPLACED, is_compound, parse_compound
from squall.translators.rif.terms import DEMANDED_TERM, EQUAL, INCONSISTENT, PART, is_hidden

_X, _Y, _Z, _TERM, _NEW = (Variable(name) for name in ("x", "y", "z", "term", "new"))


def _equal(left: Slot, right: Slot) -> AtomPattern:
    return AtomPattern(EQUAL, (left, right))


def systems(rules: Sequence[System], is_demanded: bool) -> Iterator[System]:
    """Yields the rules of equality for a program.

    Args:
        rules: The rules of the program.
        is_demanded: Whether equations of the terms that occur are demanded (`squall.translators.rif.magic_sets`). Then
            no terms with deeper nesting are constructed, of which there might be no end.
    """
    clash = Filter(Call(CLASH, (_X, _Y)))  # ends the run, so that its conclusion is never output
    yield _rule("inconsistency", [_equal(_X, _Y)], AtomPattern(INCONSISTENT, (_X, _Y)), clash)
    yield _rule("symmetry", [_equal(_X, _Y)], _equal(_Y, _X))
    yield _rule("transitivity", [_equal(_X, _Y), _equal(_Y, _Z)], _equal(_X, _Z))
    yield _rule("members", [_equal(_X, _Y)], _equal(_Z, _TERM), TableFunction((_Z, _TERM), MEMBERS, (_X, _Y)))
    replaced = TableFunction((_NEW,), REDUCED if is_demanded else REPLACED, (_TERM, _X, _Y))
    limit = Bind(_Z, Call(LIMIT, (literal("rif:congruence"), _NEW)))
    yield _rule("congruence", [_part(_X, _TERM), _equal(_X, _Y)], _equal(_TERM, _Z), replaced, limit)
    yield _rule("part of part", [_part(_TERM, _X)], _part(_Z, _TERM), _arguments(_TERM))
    yield _rule("part of equal", [_equal(_TERM, _X)], _part(_Z, _TERM), _arguments(_TERM))
    if is_demanded:
        yield _rule("term is asked", [_part(_X, _TERM)], _demanded(_TERM))
        yield _rule("part of asked", [_demanded(_TERM)], _part(_Z, _TERM), _arguments(_TERM))
    for fact in _shapes(rules):
        yield from _substitution_rules(fact)
    for term in sorted(_compared_constants(rules)):
        yield _rule("reflexivity", [], _equal(term, term))
    for part, compound_term in sorted(_compound_parts(rules)):
        yield _rule("part", [], _part(part, compound_term))


def _part(part: Slot, compound_term: Slot) -> AtomPattern:
    return AtomPattern(PART, (part, compound_term))


def _demanded(term: Slot) -> AtomPattern:
    return AtomPattern(DEMANDED_TERM, (term,))


def _arguments(term: Variable) -> TableFunction:
    return TableFunction((_Z,), ARGUMENTS, (term,))


def _rule(name: str, body: Sequence[FactPattern], head: FactPattern, *predicates: Predicate) -> System:
    is_internal = isinstance(head, AtomPattern) and is_hidden(head.relation)
    conclusion = Construct((head,), internal=is_internal)
    return System(f"rif:{name}", joinables=tuple(body), predicates=predicates, consequences=(conclusion,))


def _shapes(rules: Sequence[System]) -> list[FactPattern]:
    """Returns a pattern for each relation of the program, and one for triples, with a variable in each position."""
    patterns: dict[tuple[str, int], FactPattern] = {}
    for part in _parts(rules):
        if isinstance(part, Pattern):
            patterns[("", 3)] = Pattern(Variable("v0"), Variable("v1"), Variable("v2"))
        elif isinstance(part, AtomPattern) and part.relation not in (EQUAL, DEMANDED_TERM, INCONSISTENT):
            names = tuple(Variable(f"v{place}") for place in range(len(part.arguments)))
            patterns[(part.relation, len(names))] = AtomPattern(part.relation, names)
    return [patterns[key] for key in sorted(patterns)]


def _substitution_rules(fact: FactPattern) -> Iterator[System]:
    for place, variable in enumerate(fact.slots):
        slots = [*fact.slots]
        slots[place] = _Y
        yield _rule("substitution", [fact, _equal(variable, _Y)], _with_slots(fact, slots))
        assert isinstance(variable, Variable)
        yield _rule("part of fact", [fact], _part(_Z, variable), _arguments(variable))


def _with_slots(fact: FactPattern, slots: Sequence[Slot]) -> FactPattern:
    if isinstance(fact, Pattern):
        subject, predicate, object = slots
        return Pattern(subject, predicate, object)
    return AtomPattern(fact.relation, tuple(slots))


def _parts(systems: Iterable[System]) -> Iterator[object]:
    """Yields the patterns, templates and predicates of rules and of their parts."""
    for system in systems:
        yield from system.joinables
        yield from system.predicates
        yield from _parts([part for part in system.joinables if isinstance(part, System)])
        for consequence in system.consequences:
            if isinstance(consequence, Construct):
                yield from consequence.template


def _compared_constants(rules: Sequence[System]) -> set[Term]:
    """Returns the constants that conditions compare with other terms."""
    equality_atoms = (part for part in _parts(rules) if isinstance(part, AtomPattern) and part.relation == EQUAL)
    return {slot for part in equality_atoms for slot in part.arguments if isinstance(slot, str)}


def _compound_parts(rules: Sequence[System]) -> set[tuple[Term, Term]]:
    """Returns the compound terms in conditions and conclusions, each with its arguments."""
    pairs: set[tuple[Term, Term]] = set()
    waiting = [term for part in _parts(rules) for term in _terms(part)]
    for term in waiting:  # which grows
        compound = parse_compound(term) if is_compound(term) else None
        for argument in compound.arguments if compound else ():
            if (argument, term) not in pairs:
                pairs.add((argument, term))
                waiting.append(argument)
    return pairs


def _terms(part: object) -> Iterator[Term]:
    match part:
        case str():
            yield Term(part)
        case Pattern() | AtomPattern():
            yield from (slot for slot in part.slots if isinstance(slot, str))
        case Filter(expression=expression) | Bind(expression=expression):
            yield from _terms(expression)
        case Call(arguments=arguments):
            for argument in arguments:
                yield from _terms(argument)
