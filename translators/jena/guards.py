"""Guards that ask for nothing: ``body, noValue(s p o) -> (s p o)``.

Rules are written that way for engines that would derive a triple again and again. The facts of a rule are a set, so the
guard changes nothing, while negation that depends on its own conclusion could not be stratified.
"""

from __future__ import annotations

from dataclasses import replace

from squall.errors import TranslatorInfo
from squall.lexers.jena import Call, Pattern, Rule
from squall.translators.jena.terms import variables_of

_NODES_OF_TRIPLE = 3


def without_guards(rule: Rule) -> tuple[Rule, list[TranslatorInfo]]:
    """Returns a rule without guards for the one triple that it concludes, and an info for each of them.

    A guard with a variable that no pattern of the body binds asks for any value, so it stays.
    """
    if len(rule.head) != 1 or not isinstance(rule.head[0], Pattern):
        return rule, []
    head = rule.head[0].nodes
    bound = {
        name for clause in rule.body if isinstance(clause, Pattern) for name in variables_of(*clause.variable_nodes)
    }
    guards = [
        clause
        for clause in rule.body
        if isinstance(clause, Call)
        and clause.name == "noValue"
        and len(clause.nodes) == _NODES_OF_TRIPLE
        and clause.nodes == head
        and bound.issuperset(variables_of(*clause.nodes))
    ]
    infos = [
        TranslatorInfo(
            f"`{guard}` is left out: the rule concludes just that triple", guard.origin, "facts are a set: delete it"
        )
        for guard in guards
    ]
    return replace(rule, body=tuple(clause for clause in rule.body if clause not in guards)), infos
