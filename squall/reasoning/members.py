"""Answers of programs that read representatives (`squall.reasoning.same_as`), with all terms in their place."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from squall.errors import TranslatorError, raise_all
from squall.functions.same_as import MEMBERS
from squall.model.consequences import Construct, Insert, Select
from squall.model.expressions import Bind, Call, Expression, Slice, TableFunction
from squall.model.outputs import output_specs
from squall.model.patterns import AtomPattern, FactPattern, Slot, Variable
from squall.model.reading import variables
from squall.model.systems import System
from squall.rdf.cliques import Cliques


def with_members(system: System, cliques: Cliques) -> System:
    """Returns the system whose answers have each choice of members in place of representatives.

    Raises:
        TranslatorError: A query with DISTINCT is ordered by something that it does not select.
    """
    errors: list[TranslatorError] = []
    spec_streams = {rule: spec.stream for spec in output_specs(system) for rule in spec.rules}

    def part(component: System) -> System:
        rewritten = replace(component, subsystems=tuple(map(part, component.subsystems)))
        errors.extend(_insertions(component))
        if any(isinstance(consequence, Select) for consequence in component.consequences):
            errors.extend(_unordered(component))
            return _members_selected(rewritten, cliques)
        if any(isinstance(consequence, Construct) for consequence in component.consequences):
            return _members_constructed(rewritten, cliques, bool(spec_streams.get(component, "")))
        return rewritten

    rewritten = part(system)
    raise_all(errors)
    return rewritten


def _insertions(rule: System) -> Iterator[TranslatorError]:
    if any(isinstance(consequence, Insert) for consequence in rule.consequences):
        yield TranslatorError(f"`{rule.name}` inserts representatives", rule.origin, "ask for representatives")


def _unordered(query: System) -> Iterator[TranslatorError]:
    order = query.slice.order if query.slice is not None else ()
    selected = {name for part in query.consequences if isinstance(part, Select) for name in part.variables}
    hidden = {name for key in order for name in variables(key.expression)} - selected
    if query.distinct and hidden:
        message = f"`{query.name}` has DISTINCT, and is ordered by `{min(map(str, hidden))}`, which it does not select"
        yield TranslatorError(message, query.origin, "select it, or ask for representatives")


def _clique_of(variable: Variable) -> Variable:
    return Variable(f"clique of {variable.name}")


def _expansion(cliques: Cliques, slots: Sequence[Slot]) -> Iterator[TableFunction]:
    """Yields the predicate that binds variables to each choice of members of their cliques."""
    names = tuple(slot for slot in dict.fromkeys(slots) if isinstance(slot, Variable))
    if names:
        yield TableFunction(names, MEMBERS, (cliques.term, *map(_clique_of, names)))


def _renamed(query: System, names: Iterable[Variable]) -> System:
    """Returns the solutions of a rule's body as a part, with names for the cliques of some variables."""
    visible = tuple(dict.fromkeys(names))
    inner = System(
        query.name, query.sources, query.joinables, query.predicates, query.grouping, query.distinct, query.slice,
        consequences=(Select(visible),),
    )  # fmt: skip
    binds = tuple(Bind(_clique_of(name), name, keep_unbound=True) for name in visible)
    return System("", query.sources, (inner,), binds, consequences=(Select(tuple(map(_clique_of, visible))),))


def _members_selected(query: System, cliques: Cliques) -> System:
    (selection,) = (part for part in query.consequences if isinstance(part, Select))
    order = query.slice.order if query.slice is not None else ()
    needed = [name for key in order for name in variables(key.expression)]
    body = _renamed(query, (*selection.variables, *needed))
    outer_order = tuple(replace(key, expression=_over_cliques(key.expression)) for key in order)
    return replace(
        query,
        joinables=(body,),
        predicates=tuple(_expansion(cliques, selection.variables)),
        grouping=None,
        distinct=False,
        slice=Slice(outer_order) if order else None,
    )


def _over_cliques(expression: Expression) -> Expression:
    match expression:
        case Variable():
            return _clique_of(expression)
        case Call():
            return replace(expression, arguments=tuple(map(_over_cliques, expression.arguments)))
        case _:
            return expression


def _members_constructed(rule: System, cliques: Cliques, is_stream: bool) -> System:
    """Returns a rule whose answer has all members, beside one whose facts rules read, if there are such rules."""
    visible = tuple(part for part in rule.consequences if isinstance(part, Construct) and not part.internal)
    if not visible:
        return rule
    answer = _answer(rule, visible, cliques)
    if is_stream or not rule.reentrant:
        return answer
    internal = replace(rule, consequences=tuple(
        replace(part, internal=True) if isinstance(part, Construct) else part for part in rule.consequences
    ))  # fmt: skip
    plain: dict[str, Any] = {"output": None, "report": None, "stream": "", "subsystems": (), "warnings": ()}
    emptied: dict[str, Any] = {"joinables": (), "predicates": (), "grouping": None, "slice": None, "consequences": ()}
    parts = (replace(internal, **plain), replace(answer, reentrant=False, **plain), *rule.subsystems)
    return replace(rule, **emptied, distinct=False, subsystems=parts)


def _answer(rule: System, visible: Sequence[Construct], cliques: Cliques) -> System:
    """Returns a rule that constructs facts with each choice of members.

    Args:
        rule: The rule.
        visible: What it constructs, of representatives.
        cliques: The cliques.
    """
    slots = dict.fromkeys(slot for part in visible for template in part.template for slot in template.slots)
    names = tuple(slot for slot in slots if isinstance(slot, Variable))
    constants = [slot for slot in slots if isinstance(slot, str) and slot in cliques.members]
    variables_of: dict[Slot, Variable] = {
        constant: Variable(f"constant {number}") for number, constant in enumerate(constants)
    }
    of_constants = (TableFunction((variables_of[term],), MEMBERS, (cliques.term, term)) for term in constants)
    return replace(
        rule,
        joinables=(_renamed(rule, names),) if rule.joinables or rule.predicates else (),
        predicates=(*_expansion(cliques, names), *of_constants),
        grouping=None,
        distinct=False,
        slice=None,
        consequences=tuple(
            replace(part, template=tuple(_with_slots(template, variables_of) for template in part.template))
            for part in visible
        ),
    )


def _with_slots(template: FactPattern, variables_of: dict[Slot, Variable]) -> FactPattern:
    slots = tuple(variables_of.get(slot, slot) for slot in template.slots)
    if isinstance(template, AtomPattern):
        return replace(template, arguments=slots)
    subject, predicate, object = slots
    return replace(template, subject=subject, predicate=predicate, object=object)
