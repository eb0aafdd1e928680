"""What the writers of rule languages share: systems as trees of a language, as far as it can say what they mean."""

from __future__ import annotations

from collections.abc import Iterator

from squall.errors import UsageError
from squall.model import Construct, FactPattern, Pattern, Source, System, rules

_HINT = "`--format json` has all parts of a system"


def plain_rules(system: System, language: str) -> Iterator[System]:
    """Yields the rules of a system that a language of rules is to write.

    Raises:
        UsageError: A rule reads streams or windows of its own, or it is a query.
    """
    for rule in rules(system):
        if rule.sources != (Source(),) or rule.grouping or rule.slice or rule.distinct or rule.output or rule.stream:
            raise cannot_write(rule, "windows, grouping or other parts of a query", language)
        yield rule


def templates(rule: System, language: str) -> Iterator[FactPattern]:
    """Yields the templates of the facts that a rule derives.

    What an ontology states, and its answer leaves out, is written as any other fact.

    Raises:
        UsageError: It does something else.
    """
    for consequence in rule.consequences:
        if not isinstance(consequence, Construct):
            raise cannot_write(rule, f"`{type(consequence).__name__}`", language)
        is_fact = not (rule.joinables or rule.predicates)
        if consequence.internal and not is_fact and any(isinstance(fact, Pattern) for fact in consequence.template):
            raise cannot_write(rule, "triples that rules read and that are not in the answer", language)
        yield from consequence.template


def cannot_write(rule: System, part: str, language: str) -> UsageError:
    """Returns the error that a language does not have a part of a rule."""
    return UsageError(f"the rule `{rule.name}` cannot be written in `{language}`: it has {part}", rule.origin, _HINT)
