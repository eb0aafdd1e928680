"""The checks ``duplicate-rule`` and ``contained-rule``: rules that derive nothing that another rule does not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from squall.checking.findings import INFO, WARNING, Finding
from squall.checking.program import Program, Rule
from squall.model import AtomPattern, Call, Construct, FactPattern, Filter, System, Variable
from squall.model.fact_shapes import shape

_Substitution = dict[Variable, Any]
"""Maps the variables of one rule to what stands for them in another."""
_HINT = "leave one of them out"


def check(program: Program) -> Iterator[Finding]:
    """Yields a finding for each duplicate rule, and for each rule that another rule contains.

    A duplicate differs from an earlier rule only in the names of variables and the order of the body. A rule contains
    another if it derives the same facts and its body demands less.
    """
    identities = program.identities
    first: dict[tuple[str, tuple[str, ...]], Rule] = {}
    for number, rule in enumerate(program.rules):
        if not identities[number]:
            continue
        other = first.setdefault((rule.stream, identities[number]), rule)
        if other is not rule and rule.origin is None and rule.name == other.name:
            continue  # a translator's own, made for two alternatives of a rule
        if other is not rule:
            message = f"`{rule.name}` is the same rule as `{other.name}`{_place_text(other)}"
            yield Finding("duplicate-rule", WARNING, message, rule.origin, _HINT)
        else:
            yield from _contained(program, number, identities)


def _place_text(rule: Rule) -> str:
    return f" ({rule.origin})" if rule.origin else ""


def _contained(program: Program, number: int, identities: Sequence[tuple[str, ...]]) -> Iterator[Finding]:
    rule = program.rules[number]
    if not _is_plain(rule.system) or not (templates := _templates(rule.system)):
        return
    for maker in dict.fromkeys(candidate.rule for candidate in program.derived.overlapping(shape(templates[0]))):
        other = program.rules[maker]
        if (
            identities[maker] != identities[number]
            and other.stream == rule.stream
            and _contains(other.system, rule.system)
        ):
            message = (
                f"all that `{rule.name}` derives, `{other.name}`{_place_text(other)} derives as well, and asks for less"
            )
            yield Finding("contained-rule", INFO, message, rule.origin, f"leave `{rule.name}` out")
            return


# Whether a rule contains another one (theta-subsumption: Plotkin 1970, "A note on inductive generalization")


def _is_plain(rule: System) -> bool:
    """Returns whether a rule joins and filters patterns, and does nothing else."""
    plain = System(
        rule.name, rule.sources, rule.joinables, rule.predicates, consequences=rule.consequences,
        reentrant=rule.reentrant,
    )  # fmt: skip
    facts = all(isinstance(part, FactPattern) for part in rule.joinables)
    return rule == plain and facts and all(isinstance(part, Filter) for part in rule.predicates)


def _templates(rule: System) -> list[FactPattern]:
    return [
        template
        for consequence in rule.consequences
        if isinstance(consequence, Construct)
        for template in consequence.template
    ]


def _contains(rule: System, other: System) -> bool:
    """Returns whether a rule derives all that another one derives, for some substitution of its variables."""
    if not _is_plain(rule) or (rule.sources, rule.reentrant) != (other.sources, other.reentrant):
        return False
    if [part.internal for part in rule.consequences if isinstance(part, Construct)] != [
        part.internal for part in other.consequences if isinstance(part, Construct)
    ]:
        return False
    tests = [part.expression for part in other.predicates if isinstance(part, Filter)]
    demanded = [*rule.joinables, *(part.expression for part in rule.predicates if isinstance(part, Filter))]
    available = [*other.joinables, *tests]
    return any(
        _is_met(demanded, available, substitution)
        for substitution in _substitutions(_templates(rule), _templates(other))
    )


def _substitutions(templates: Sequence[FactPattern], targets: Sequence[FactPattern]) -> Iterator[_Substitution]:
    """Yields the substitutions by which each template of `made` is one of the templates of a rule."""

    def fit(patterns: Sequence[FactPattern], substitution: _Substitution) -> Iterator[_Substitution]:
        if not patterns:
            yield substitution
            return
        for template in templates:
            extended = _unify(template, patterns[0], substitution)
            if extended is not None:
                yield from fit(patterns[1:], extended)

    return fit(targets, {})


def _is_met(demanded: Sequence[Any], available: Sequence[Any], substitution: _Substitution) -> bool:
    """Returns whether everything that a rule demands is there, for a substitution that extends the given one."""
    if not demanded:
        return True
    extensions = (_unify(demanded[0], candidate, substitution) for candidate in available)
    return any(_is_met(demanded[1:], available, extension) for extension in extensions if extension is not None)


def _unify(pattern: Any, target: Any, substitution: _Substitution) -> _Substitution | None:
    """Returns the substitution that turns one term into another, or None."""
    match pattern:
        case Variable():
            if pattern in substitution:
                return substitution if substitution[pattern] == target else None
            return {**substitution, pattern: target}
        case Call():
            same = isinstance(target, Call) and pattern.function == target.function
            return _unify_all(pattern.arguments, target.arguments, substitution) if same else None
        case str():
            return substitution if pattern == target else None
        case _:
            if type(pattern) is not type(target) or pattern.exact != target.exact:
                return None
            if isinstance(pattern, AtomPattern) and pattern.relation != target.relation:
                return None
            return _unify_all(pattern.slots, target.slots, substitution)


def _unify_all(
    patterns: Sequence[Any], targets: Sequence[Any], substitution: _Substitution | None
) -> _Substitution | None:
    if len(patterns) != len(targets):
        return None
    for pattern, target in zip(patterns, targets, strict=True):
        substitution = None if substitution is None else _unify(pattern, target, substitution)
    return substitution
