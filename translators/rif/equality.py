"""Equality that rules conclude: what is equal is the same in each relation, frame, list and function.

Rules do it, by copying: each fact that has a term which is equal to others is derived with each of these in its place
(of n arguments with k equal terms each, k to the power of n facts), and so is each term that is built of them. Only
terms that occur in facts, equations and conditions are looked at. Two data values, or lists of different lengths, that
come to be equal make a program inconsistent: that ends the run.

Source: RIF-BLD, section 3.2 (semantic structures: identity, lists), and first-order logic's axioms of congruence.
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
from squall.translators.rif.terms import ASKED_TERM, EQUAL, INCONSISTENT, PART, UNDECIDED, is_hidden

_X, _Y, _Z, _TERM, _NEW = (Variable(name) for name in ("x", "y", "z", "term", "new"))


def _equal(left: Slot, right: Slot) -> AtomPattern:
    return AtomPattern(EQUAL, (left, right))


def systems(rules: Sequence[System], is_demanded: bool) -> Iterator[System]:
    """The rules of equality for a program with these rules.

    asked: whether rules conclude equations of the terms that occur, whatever these are: then none are made that are
    nested deeper, of which there might be no end.
    """
    clash = Filter(Call(CLASH, (_X, _Y)))  # ends the run, so that what is concluded here is never told
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
        yield _rule("term is asked", [_part(_X, _TERM)], _asked(_TERM))
        yield _rule("part of asked", [_asked(_TERM)], _part(_Z, _TERM), _arguments(_TERM))
    for fact in _shapes(rules):
        yield from _copies(fact)
    for term in sorted(_compared(rules)):
        yield _rule("reflexivity", [], _equal(term, term))
    for part, compound_term in sorted(_constants(rules)):
        yield _rule("part", [], _part(part, compound_term))


def _part(part: Slot, compound_term: Slot) -> AtomPattern:
    return AtomPattern(PART, (part, compound_term))


def _asked(term: Slot) -> AtomPattern:
    return AtomPattern(ASKED_TERM, (term,))


def _arguments(term: Variable) -> TableFunction:
    return TableFunction((_Z,), ARGUMENTS, (term,))


def _rule(name: str, body: Sequence[FactPattern], head: FactPattern, *predicates: Predicate) -> System:
    is_internal = isinstance(head, AtomPattern) and is_hidden(head.relation)
    conclusion = Construct((head,), internal=is_internal)
    return System(f"rif:{name}", joinables=tuple(body), predicates=predicates, consequences=(conclusion,))


def _shapes(rules: Sequence[System]) -> list[FactPattern]:
    """A pattern for each relation of the program, and one for triples, each place a variable."""
    patterns: dict[tuple[str, int], FactPattern] = {}
    for part in _parts(rules):
        if isinstance(part, Pattern):
            patterns[("", 3)] = Pattern(Variable("v0"), Variable("v1"), Variable("v2"))
        elif isinstance(part, AtomPattern) and part.relation not in (EQUAL, ASKED_TERM, INCONSISTENT, UNDECIDED):
            names = tuple(Variable(f"v{place}") for place in range(len(part.arguments)))
            patterns[(part.relation, len(names))] = AtomPattern(part.relation, names)
    return [patterns[key] for key in sorted(patterns)]


def _copies(fact: FactPattern) -> Iterator[System]:
    for place, variable in enumerate(fact.slots):
        slots = [*fact.slots]
        slots[place] = _Y
        yield _rule("substitution", [fact, _equal(variable, _Y)], _with(fact, slots))
        assert isinstance(variable, Variable)
        yield _rule("part of fact", [fact], _part(_Z, variable), _arguments(variable))


def _with(fact: FactPattern, slots: Sequence[Slot]) -> FactPattern:
    if isinstance(fact, Pattern):
        subject, predicate, object = slots
        return Pattern(subject, predicate, object)
    return AtomPattern(fact.relation, tuple(slots))


def _parts(systems: Iterable[System]) -> Iterator[object]:
    """The patterns, templates and predicates of rules, those of parts included."""
    for system in systems:
        yield from system.joinables
        yield from system.predicates
        yield from _parts([part for part in system.joinables if isinstance(part, System)])
        for consequence in system.consequences:
            if isinstance(consequence, Construct):
                yield from consequence.template


def _compared(rules: Sequence[System]) -> set[Term]:
    """The constants of which conditions ask what is equal to them."""
    equality_atoms = (part for part in _parts(rules) if isinstance(part, AtomPattern) and part.relation == EQUAL)
    return {slot for part in equality_atoms for slot in part.arguments if isinstance(slot, str)}


def _constants(rules: Sequence[System]) -> set[tuple[Term, Term]]:
    """The compounds that are written in conditions and conclusions, each with its parts."""
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
