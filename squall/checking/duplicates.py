"""``duplicate-rule``, ``contained-rule``: rules that say what another one says."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from squall.checking.findings import INFO, WARNING, Finding
from squall.checking.program import Program, Rule
from squall.model import AtomPattern, Call, Construct, FactPattern, Filter, System, Variable
from squall.model.fact_shapes import shape

_Given = dict[Variable, Any]
"""What stands in one rule for the variables of another."""
_HINT = "leave one of them out"


def check(program: Program) -> Iterator[Finding]:
    """A finding for each rule that is the same as one before it but for the names of variables and the order of the
    body; and for each whose facts another one makes as well, since its body asks for less."""
    known = program.identities
    first: dict[tuple[str, tuple[str, ...]], Rule] = {}
    for number, rule in enumerate(program.rules):
        if not known[number]:
            continue
        other = first.setdefault((rule.stream, known[number]), rule)
        if other is not rule and rule.origin is None and rule.name == other.name:
            continue  # a translator's own, made for two alternatives of a rule
        if other is not rule:
            message = f"`{rule.name}` is the same rule as `{other.name}`{_at(other)}"
            yield Finding("duplicate-rule", WARNING, message, rule.origin, _HINT)
        else:
            yield from _contained(program, number, known)


def _at(rule: Rule) -> str:
    return f" ({rule.origin})" if rule.origin else ""


def _contained(program: Program, number: int, known: Sequence[tuple[str, ...]]) -> Iterator[Finding]:
    rule = program.rules[number]
    if not _is_plain(rule.system) or not (made := _templates(rule.system)):
        return
    for maker in dict.fromkeys(one.rule for one in program.made.overlapping(shape(made[0]))):
        other = program.rules[maker]
        if known[maker] != known[number] and other.stream == rule.stream and _contains(other.system, rule.system):
            message = f"all that `{rule.name}` derives, `{other.name}`{_at(other)} derives as well, and asks for less"
            yield Finding("contained-rule", INFO, message, rule.origin, f"leave `{rule.name}` out")
            return


# Whether a rule contains another one (theta-subsumption: Plotkin 1970, "A note on inductive generalization")


def _is_plain(rule: System) -> bool:
    """Whether a rule joins patterns and tests what it finds, and does nothing else."""
    plain = System(
        rule.name, rule.sources, rule.joinables, rule.predicates, consequences=rule.consequences,
        reentrant=rule.reentrant,
    )  # fmt: skip
    facts = all(isinstance(one, FactPattern) for one in rule.joinables)
    return rule == plain and facts and all(isinstance(one, Filter) for one in rule.predicates)


def _templates(rule: System) -> list[FactPattern]:
    return [made for one in rule.consequences if isinstance(one, Construct) for made in one.template]


def _contains(rule: System, other: System) -> bool:
    """Whether a rule derives all that another one derives, by any values for its variables."""
    if not _is_plain(rule) or (rule.sources, rule.reentrant) != (other.sources, other.reentrant):
        return False
    if [one.internal for one in rule.consequences if isinstance(one, Construct)] != [
        one.internal for one in other.consequences if isinstance(one, Construct)
    ]:
        return False
    tests = [one.expression for one in other.predicates if isinstance(one, Filter)]
    asked = [*rule.joinables, *(one.expression for one in rule.predicates if isinstance(one, Filter))]
    there = [*other.joinables, *tests]
    return any(_is_met(asked, there, given) for given in _fitting(_templates(rule), _templates(other)))


def _fitting(makes: Sequence[FactPattern], made: Sequence[FactPattern]) -> Iterator[_Given]:
    """The values for which each of the templates `made` is one of those that a rule has."""

    def fit(rest: Sequence[FactPattern], given: _Given) -> Iterator[_Given]:
        if not rest:
            yield given
            return
        for one in makes:
            found = _matched(one, rest[0], given)
            if found is not None:
                yield from fit(rest[1:], found)

    return fit(made, {})


def _is_met(asked: Sequence[Any], there: Sequence[Any], given: _Given) -> bool:
    """Whether all that a rule asks for is there, by values that agree with those that are given."""
    if not asked:
        return True
    found = (_matched(asked[0], one, given) for one in there)
    return any(_is_met(asked[1:], there, more) for more in found if more is not None)


def _matched(one: Any, other: Any, given: _Given) -> _Given | None:
    """The values for which one thing is another; None if there are none."""
    match one:
        case Variable():
            if one in given:
                return given if given[one] == other else None
            return {**given, one: other}
        case Call():
            same = isinstance(other, Call) and one.function == other.function
            return _all_matched(one.arguments, other.arguments, given) if same else None
        case str():
            return given if one == other else None
        case _:
            if type(one) is not type(other) or one.exact != other.exact:
                return None
            if isinstance(one, AtomPattern) and one.relation != other.relation:
                return None
            return _all_matched(one.slots, other.slots, given)


def _all_matched(some: Sequence[Any], others: Sequence[Any], given: _Given | None) -> _Given | None:
    if len(some) != len(others):
        return None
    for one, other in zip(some, others, strict=True):
        given = None if given is None else _matched(one, other, given)
    return given
