"""Systems as text of Jena's rule language."""

from __future__ import annotations

from squall.model import Bind, Call, Construct, Expression, Filter, NotExists, Pattern, Predicate, System, Variable


def jena_text(system: System) -> str:
    """Returns a program of `systems` as Jena rules, without its output specification, which the language cannot
    express.
    """
    return "\n".join(map(_jena_rule, system.subsystems)) + "\n"


def _jena_rule(rule: System) -> str:
    body = [*map(_jena_pattern, rule.joinables), *map(_jena_predicate, rule.predicates)]
    constructs = [consequence for consequence in rule.consequences if isinstance(consequence, Construct)]
    heads = [_jena_pattern(template) for construct in constructs for template in construct.template]
    return f"[{rule.name}: {' '.join(body)} -> {' '.join(heads)}]"


def _jena_pattern(pattern: object) -> str:
    if not isinstance(pattern, Pattern):
        raise ValueError(f"Jena rules have triple patterns only, not {pattern!r}")
    return f"({' '.join(map(_jena_slot, pattern.slots))})"


def _jena_slot(slot: Expression) -> str:
    return str(slot).replace('"', "'")


def _jena_predicate(predicate: Predicate) -> str:
    match predicate:
        case Filter(expression=call):
            return _jena_call(call, ())
        case Bind(variable=variable, expression=Call() as call):
            return _jena_call(call, (variable,))
        case NotExists(joinables=(Pattern() as pattern,)):
            return f"noValue{_jena_pattern(pattern)}"
        case _:
            raise ValueError(f"Jena rules cannot say {predicate!r}")


def _jena_call(call: Call, results: tuple[Variable, ...]) -> str:
    name = call.function.rpartition(":")[2]
    return f"{name}({' '.join(map(_jena_slot, (*call.arguments, *results)))})"
