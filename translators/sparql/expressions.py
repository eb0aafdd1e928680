"""Expressions: functions and operators by name or IRI, EXISTS, and what is not supported."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

from squall import functions
from squall.errors import Origin, PluginError
from squall.functions.sparql.names import LANGUAGE
from squall.lexers.sparql import tree as q
from squall.model import Bind, Call, Exists, Expression, Filter, System, Variable
from squall.model.stratification import is_time_dependent
from squall.rdf import Term, iri_text, is_iri, literal
from squall.translators.sparql import calls
from squall.translators.sparql.bodies import Body
from squall.translators.sparql.datasets import Reads
from squall.translators.sparql.state import State
from squall.translators.sparql.timestamp_function import Times


class Groups(Protocol):
    """What translates the pattern of an EXISTS."""

    def group(self, group: q.Group, reads: Reads) -> System:
        """The solutions of a group."""
        ...


class Expressions:
    """Translates the expressions of a statement."""

    def __init__(self, state: State, groups: Groups) -> None:
        self.state = state
        self.groups = groups
        self.times = Times(state)

    def filter(self, expression: q.Expression, body: Body) -> None:
        """Keeps the body's solutions for which the expression is true. A conjunction is several filters."""
        for conjunct in conjuncts(expression):
            existence = _existence(conjunct)
            if existence is None:
                body.add(Filter(self.condition(conjunct, body)))
            else:
                group, is_wanted = existence
                body.add(Exists(None, self._inside(group, body), is_wanted, origin_of(conjunct)))

    def condition(self, expression: q.Expression, body: Body) -> Call:
        """An expression of which it only matters whether it is true."""
        return calls.condition(self.value(expression, body))

    def value(self, expression: q.Expression, body: Body) -> Expression:
        """An expression as a value. What it asks of patterns becomes predicates of the body, in front of its use."""
        match expression:
            case q.Call(function=function) if function == q.TIMESTAMP and not expression.distinct:
                return self._timestamp(expression, body)
            case q.Call():
                arguments = [self.value(argument, body) for argument in expression.arguments]
                return self._call(expression, arguments, body)
            case q.Exists(group=group, origin=origin):
                return self._exists(group, body, origin)
            case q.NotExists(group=group, origin=origin):
                return calls.call("!", (self._exists(group, body, origin),), origin=origin)
            case q.Timestamp(variable=variable, within=within, origin=origin):
                if isinstance(within, q.Group):
                    inner = self.groups.group(within, body.reads.alone)
                    return self.times.of_pattern(variable, inner, body, origin)
                return self.times.of_variable(variable, body, within, origin)
            case q.Aggregate(origin=origin):
                hint = "compute it in a sub-query, and use its variable"
                return self._refused(f"the aggregate `{expression.kind}` cannot be here", origin, hint)
            case Variable() | str():
                return expression

    def pair(
        self, expressions: Sequence[q.Expression], body: Body, optional: Body
    ) -> tuple[Call | None, tuple[Exists, ...]]:
        """The condition of an optional part: all of the expressions, and what they ask of patterns, for pairs of a
        solution of the body and one of the part. What can be told before there are pairs is added to these."""
        pair_body = Body(body.reads, [body.system(), optional.system()], (body, optional))
        tests = [
            calls.condition(self.untimed(self.value(part, pair_body), body))
            for expression in expressions
            for part in conjuncts(expression)
        ]
        tests += (predicate.expression for predicate in pair_body.predicates if isinstance(predicate, Filter))
        exists = tuple(predicate for predicate in pair_body.predicates if isinstance(predicate, Exists))
        return calls.all_of(tests), exists

    def untimed(self, expression: Expression, body: Body) -> Expression:
        """The expression with the instant, where it asks for it, bound to variables in the body before."""
        if not isinstance(expression, Call) or not is_time_dependent(expression):
            return expression
        if functions.lookup(expression.function).timed:
            variable = self.state.fresh("instant")
            body.add(Bind(variable, expression, keep_unbound=True))
            return variable
        arguments = tuple(self.untimed(argument, body) for argument in expression.arguments)
        return Call(expression.function, arguments, expression.origin)

    def _exists(self, group: q.Group, body: Body, origin: Origin | None) -> Variable:
        variable = self.state.fresh("exists")
        body.add(Exists(variable, self._inside(group, body), origin=origin))
        return variable

    def _timestamp(self, call: q.Call, body: Body) -> Expression:
        """C-SPARQL's function by its IRI: of a triple, or of a variable as without the IRI."""
        match call.arguments:
            case (_, _, _):
                triple = [self.value(argument, body) for argument in call.arguments]
                if body.sides:
                    triple = [self.untimed(slot, body.sides[0]) for slot in triple]
                return self.times.of_triple(triple, body, call.origin)
            case (Variable() as variable,):
                return self.times.of_variable(variable, body, None, call.origin)
            case (Variable() as variable, str() as stream) if is_iri(stream):
                return self.times.of_variable(variable, body, Term(stream), call.origin)
        hint = "give it a subject, a predicate and an object; or a variable, and a stream's IRI"
        self.state.notes.fail("`timestamp` does not take these arguments", call.origin, hint)
        return _UNKNOWN

    def _inside(self, group: q.Group, body: Body) -> System:
        """The group of an EXISTS, which knows the variables around it."""
        return self.groups.group(group, body.reads.inside(body.variables))

    def _call(self, call: q.Call, arguments: Sequence[Expression], body: Body) -> Expression:
        if call.function.endswith(">") and call.function != ">":
            return self._named(call, arguments)
        if call.function in ("IRI", "URI") and self.state.base:
            arguments = (*arguments, literal(self.state.base))
        return calls.call(call.function, arguments, scope=self._scope(call, body), origin=call.origin)

    def _scope(self, call: q.Call, body: Body) -> tuple[Expression, ...]:
        modes = functions.builtins(LANGUAGE)[call.function].modes if call.function in _NEW else ()
        if not any(mode.scoped for mode in modes):
            return ()
        # A label of BNODE means the same node in all of a solution of the query.
        labelled = call.function == "BNODE" and call.arguments
        key = self.state.key if labelled else f"{self.state.key} {self.state.number()}"
        return calls.scope(key, body.solution)

    def _named(self, call: q.Call, arguments: Sequence[Expression]) -> Expression:
        name = iri_text(call.function)
        if call.distinct:
            hint = "only SPARQL's own aggregates take DISTINCT: leave it out"
            return self._refused(f"`DISTINCT` in {call.function} is not supported", call.origin, hint)
        try:
            function = functions.lookup(name)
        except PluginError as error:
            hint = error.hint or "`squall list` shows the functions that there are; others come as plug-ins"
            self.state.notes.fail(error.message, call.origin, hint)
            return _UNKNOWN
        if len(arguments) < function.least or (function.most is not None and len(arguments) > function.most):
            most = "or more" if function.most is None else f"to {function.most}"
            hint = (
                f"it takes {function.least}" if function.least == function.most else f"it takes {function.least} {most}"
            )
            return self._refused(f"{call.function} does not take {len(arguments)} arguments", call.origin, hint)
        return calls.by_iri(name, arguments, origin=call.origin)

    def _refused(self, message: str, origin: Origin | None, hint: str) -> Term:
        self.state.notes.fail(message, origin, hint)
        return _UNKNOWN


_NEW = {"BNODE", "RAND", "UUID", "STRUUID"}
"""The functions that make something new for each solution."""
_UNKNOWN = literal("")
"""Stands for what is refused, so that the rest of the query is looked at as well."""


def conjuncts(expression: q.Expression) -> Iterator[q.Expression]:
    """The expressions that all have to be true for this one to be."""
    if isinstance(expression, q.Call) and expression.function == "&&":
        for argument in expression.arguments:
            yield from conjuncts(argument)
    else:
        yield expression


def _existence(expression: q.Expression) -> tuple[q.Group, bool] | None:
    """The group of EXISTS or NOT EXISTS, and whether it is to have a solution; None for any other expression."""
    match expression:
        case q.Exists(group=group):
            return group, True
        case q.NotExists(group=group):
            return group, False
        case q.Call(function="!", arguments=(inner,)):
            existence = _existence(inner)
            return None if existence is None else (existence[0], not existence[1])
        case _:
            return None


def asked(expression: q.Expression, origin: Origin | None) -> Iterator[tuple[Variable, Origin | None]]:
    """The variables whose values an expression needs, but for what is inside of groups, and where it does. origin: that
    of the expression, for those that stand in no call."""
    match expression:
        case Variable():
            yield expression, origin
        case q.Call(arguments=arguments):
            for argument in arguments:
                yield from asked(argument, expression.origin or origin)


def origin_of(expression: q.Expression) -> Origin | None:
    """Where an expression was written, if it says so."""
    return None if isinstance(expression, str | Variable) else expression.origin
