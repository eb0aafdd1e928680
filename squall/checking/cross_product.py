"""``cross-product``: joins of things that have nothing to do with each other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from squall.checking.findings import WARNING, Finding
from squall.checking.program import Program, Rule, mentions, systems
from squall.model import (
    AtomPattern,
    Exists,
    FactPattern,
    Joinable,
    Optional,
    Pattern,
    System,
    Union,
    Variable,
    Without,
    documents,
)
from squall.model.unbounded_state import pattern_text
from squall.planners.lowering.walk import walk

_HINT = "let them share a variable, compare their values, or say each in a rule or query of its own"


def check(program: Program) -> Iterator[Finding]:
    """A finding for each body whose patterns fall apart into groups that share no variable and that nothing compares,
    so that each solution of one is joined with each of the others.

    What has one solution or few is no such group: a pattern of constants, values that are written out, an aggregate of
    all, a setting (one pattern whose subject and predicate are constants), one pattern of a document.
    """
    named = frozenset(document.iri for document in documents(program.system))
    for rule in program.rules:
        connected = _connected(rule.system)
        for system in systems(rule):
            groups = _groups([one for one in system.joinables if not _is_small(one)], connected)
            many = [group for group in groups if len(group) > 1 or not _is_of_document(group[0], system, named)]
            if len(many) > 1:
                yield _finding(rule, system, many)


def _connected(rule: System) -> dict[Variable, Variable]:
    """Variables with something in common: for each, one that stands for all that are connected with it."""
    found: dict[Variable, Variable] = {}
    everywhere = Counter(mentions((rule.joinables, rule.predicates)))
    for part in walk(rule):
        match part:
            case Union() | System():
                continue
            case Optional(condition=condition):
                _connect(list(mentions(condition)), found)
            case Without() | Exists():
                inside = Counter(mentions(part))
                _connect([name for name in inside if everywhere[name] > inside[name]], found)
            case _:
                _connect(list(mentions(part)), found)
    return found


def _connect(names: Sequence[Variable], found: dict[Variable, Variable]) -> None:
    stands = {_stands(name, found) for name in names}
    for one in stands:
        found[one] = min(stands, key=str)


def _stands(name: Variable, found: dict[Variable, Variable]) -> Variable:
    while found.setdefault(name, name) != name:
        name = found[name]
    return name


def _groups(joinables: Sequence[Joinable], connected: dict[Variable, Variable]) -> list[list[Joinable]]:
    """The joinables in groups that are connected."""
    groups: list[tuple[set[Variable], list[Joinable]]] = []
    for joinable in joinables:
        stands, group = {_stands(name, connected) for name in mentions(joinable)}, [joinable]
        for other in [one for one in groups if one[0] & stands]:
            groups.remove(other)
            stands, group = stands | other[0], other[1] + group
        groups.append((stands, group))
    return [group for _, group in groups]


def _is_small(part: Joinable) -> bool:
    """Whether a part has one solution or few."""
    match part:
        case Pattern(subject=subject, predicate=predicate):
            return isinstance(subject, str) and isinstance(predicate, str)
        case AtomPattern():
            return not any(mentions(part))
        case Union(branches=branches):
            return all(map(_is_small, branches))
        case System(grouping=grouping, slice=chosen):
            single = (grouping is not None and not grouping.keys) or (chosen is not None and chosen.limit == 1)
            return single or all(map(_is_small, part.joinables))


def _is_of_document(part: Joinable, system: System, named: frozenset[str]) -> bool:
    """Whether a part is one pattern over documents."""
    if isinstance(part, System) and len(part.joinables) == 1:
        return _is_of_document(part.joinables[0], part, named)
    return isinstance(part, FactPattern) and all(source.iri in named for source in system.sources)


def _finding(rule: Rule, system: System, groups: Sequence[Sequence[Joinable]]) -> Finding:
    first, second = (next((_patterns(group)), None) for group in groups[:2])
    each, other = (("something" if one is None else pattern_text(one)) for one in (first, second))
    message = f"`{rule.name}` joins each solution of {each} with each of {other}: they have no variable in common"
    origin = (second and second.origin) or (first and first.origin) or system.origin or rule.origin
    return Finding("cross-product", WARNING, message, origin, _HINT)


def _patterns(group: Sequence[Joinable]) -> Iterator[FactPattern]:
    """The patterns of a group that were written somewhere, then the others."""
    found = [one for part in group for one in walk(part) if isinstance(one, FactPattern)]
    return iter(sorted(found, key=lambda one: one.origin is None))
