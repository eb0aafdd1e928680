"""The check ``cross-product``: joins of patterns that have no variable in common."""

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
    Negation,
    Optional,
    Pattern,
    SequenceJoin,
    System,
    Temporal,
    Union,
    Variable,
    documents,
)
from squall.model.unbounded_state import pattern_text
from squall.model.walk import walk

_HINT = "let them share a variable, compare their values, or say each in a rule or query of its own"


def check(program: Program) -> Iterator[Finding]:
    """Yields a finding for each body whose patterns form groups that share no variable and that no test compares.

    Each solution of one group is then joined with each of the others. A part with one solution or few is not such a
    group: a pattern of constants, inline values, an aggregate of all, a setting (one pattern with a constant subject
    and predicate), one pattern of a document.
    """
    document_iris = frozenset(document.iri for document in documents(program.system))
    for rule in program.rules:
        connected = _variable_groups(rule.system)
        for system in systems(rule):
            groups = _groups([joinable for joinable in system.joinables if not _is_small(joinable)], connected)
            large_groups = [
                group for group in groups if len(group) > 1 or not _is_of_document(group[0], system, document_iris)
            ]
            if len(large_groups) > 1:
                yield _finding(rule, system, large_groups)


def _variable_groups(rule: System) -> dict[Variable, Variable]:
    """Returns a union-find forest of the variables: connected variables lead to the same representative."""
    parents: dict[Variable, Variable] = {}
    counts = Counter(mentions((rule.joinables, rule.predicates)))
    for part in walk(rule):
        match part:
            case Union() | SequenceJoin() | Temporal() | System():
                continue
            case Optional(condition=condition):
                _connect(list(mentions(condition)), parents)
            case Negation() | Exists():
                inner_counts = Counter(mentions(part))
                _connect([name for name in inner_counts if counts[name] > inner_counts[name]], parents)
            case _:
                _connect(list(mentions(part)), parents)
    return parents


def _connect(names: Sequence[Variable], parents: dict[Variable, Variable]) -> None:
    representatives = {_representative(name, parents) for name in names}
    for representative in representatives:
        parents[representative] = min(representatives, key=str)


def _representative(name: Variable, parents: dict[Variable, Variable]) -> Variable:
    while parents.setdefault(name, name) != name:
        name = parents[name]
    return name


def _groups(joinables: Sequence[Joinable], connected: dict[Variable, Variable]) -> list[list[Joinable]]:
    """Returns the joinables in connected groups."""
    groups: list[tuple[set[Variable], list[Joinable]]] = []
    for joinable in joinables:
        representatives, group = {_representative(name, connected) for name in mentions(joinable)}, [joinable]
        for other in [group_entry for group_entry in groups if group_entry[0] & representatives]:
            groups.remove(other)
            representatives, group = representatives | other[0], other[1] + group
        groups.append((representatives, group))
    return [group for _, group in groups]


def _is_small(part: Joinable) -> bool:
    """Returns whether a part has one solution or few."""
    match part:
        case Pattern(subject=subject, predicate=predicate):
            return isinstance(subject, str) and isinstance(predicate, str)
        case AtomPattern():
            return not any(mentions(part))
        case Union(branches=branches):
            return all(map(_is_small, branches))
        case SequenceJoin():
            return False
        case Temporal(system=system):
            return _is_small(system)
        case System(grouping=grouping, slice=slice):
            single = (grouping is not None and not grouping.keys) or (slice is not None and slice.limit == 1)
            return single or all(map(_is_small, part.joinables))


def _is_of_document(part: Joinable, system: System, document_iris: frozenset[str]) -> bool:
    """Returns whether a part is one pattern over documents."""
    if isinstance(part, System) and len(part.joinables) == 1:
        return _is_of_document(part.joinables[0], part, document_iris)
    return isinstance(part, FactPattern) and all(source.iri in document_iris for source in system.sources)


def _finding(rule: Rule, system: System, groups: Sequence[Sequence[Joinable]]) -> Finding:
    first, second = (next((_patterns(group)), None) for group in groups[:2])
    first_text, second_text = (
        ("something" if pattern is None else pattern_text(pattern)) for pattern in (first, second)
    )
    message = (
        f"`{rule.name}` joins each solution of {first_text} with each of {second_text}: they have no variable in common"
    )
    origin = (second and second.origin) or (first and first.origin) or system.origin or rule.origin
    return Finding("cross-product", WARNING, message, origin, _HINT)


def _patterns(group: Sequence[Joinable]) -> Iterator[FactPattern]:
    """Yields the patterns of a group: those with an origin first."""
    patterns = [pattern for part in group for pattern in walk(part) if isinstance(pattern, FactPattern)]
    return iter(sorted(patterns, key=lambda pattern: pattern.origin is None))
