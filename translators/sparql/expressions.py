"""The translation of expressions: functions and operators by name or IRI, EXISTS, and errors for what is
unsupported."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

from squall import functions
from squall.errors import Origin, PluginError
from squall.functions.aggregation import AggregateFunction
from squall.functions.sparql.names import LANGUAGE
from squall.lexers.sparql import tree as q
from squall.model import Bind, Call, Exists, Expression, Filter, System, Variable
from squall.model.stratification import is_time_dependent
from squall.rdf import Term, iri_text, is_iri, literal
from squall.translators.sparql import calls, step_times
from squall.translators.sparql.bodies import Body
from squall.translators.sparql.datasets import ActiveDataset
from squall.translators.sparql.iterations import previous_of
from squall.translators.sparql.state import State
from squall.translators.sparql.timestamp_function import TimestampCalls


class GroupTranslator(Protocol):
    """The translator of the pattern of an EXISTS."""

    def group(self, group: q.Group, reads: ActiveDataset) -> System:
        """Returns the solutions of a group."""
        ...


class Expressions:
    """Translates the expressions of a statement."""

    def __init__(self, state: State, groups: GroupTranslator) -> None:
        self.state = state
        self.groups = groups
        self.timestamps = TimestampCalls(state)

    def filter(self, expression: q.Expression, body: Body) -> None:
        """Filters the solutions of the body. A conjunction becomes several filters."""
        for conjunct in conjuncts(expression):
            existence = _existence(conjunct)
            if existence is None:
                body.add(Filter(self.condition(conjunct, body)))
            else:
                group, is_wanted = existence
                body.add(Exists(None, self._inside(group, body), is_wanted, origin_of(conjunct)))

    def condition(self, expression: q.Expression, body: Body) -> Call:
        """Returns an expression of which only the truth value matters."""
        return calls.condition(self.value(expression, body))

    def value(self, expression: q.Expression, body: Body) -> Expression:
        """Returns an expression as a value. Its EXISTS become predicates of the body in front of it."""
        match expression:
            case q.Call(function=function) if function == q.TIMESTAMP and not expression.distinct:
                return self._timestamp(expression, body)
            case q.Call():
                expression = step_times.with_duration(expression, self.state)
                arguments = [self.value(argument, body) for argument in expression.arguments]
                return self._call(expression, arguments, body)
            case q.Exists(group=group, origin=origin):
                return self._exists(group, body, origin)
            case q.NotExists(group=group, origin=origin):
                return calls.call("!", (self._exists(group, body, origin),), origin=origin)
            case q.Timestamp(variable=variable, within=within, origin=origin):
                if isinstance(within, q.Group):
                    inner = self.groups.group(within, body.reads.uncorrelated)
                    return self.timestamps.of_pattern(variable, inner, body, origin)
                return self.timestamps.of_variable(variable, body, within, origin)
            case q.StepCall():
                names = (*body.variables, *body.reads.bound_outside)
                return self.value(step_times.times(expression, names, self.state), body)
            case q.Previous(variable=variable, origin=origin):
                previous = previous_of(variable)
                if previous in body.variables:
                    return previous
                hint = "it is the value in the occurrence before, in the `WHILE` of an iteration that binds it"
                return self._refused(f"`{expression}` has no value here", origin, hint)
            case q.EventSequence(origin=origin):
                raise AssertionError(f"{origin}: a pattern over time is in its place")
            case q.Aggregate(origin=origin):
                hint = "compute it in a sub-query, and use its variable"
                return self._refused(f"the aggregate `{expression.kind}` cannot be here", origin, hint)
            case Variable() | str():
                return expression

    def pair(
        self, expressions: Sequence[q.Expression], body: Body, optional: Body
    ) -> tuple[Call | None, tuple[Exists, ...]]:
        """Returns the condition of an OPTIONAL and its EXISTS, for pairs of a solution of the body and one of the
        optional part.

        Expressions that need only one of the two are added to that side.
        """
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
        """Returns the expression with its calls for the evaluation time bound to variables in the body before it."""
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
        """Returns C-SPARQL's timestamp function, called by its IRI with a triple or a variable."""
        match call.arguments:
            case (_, _, _):
                triple = [self.value(argument, body) for argument in call.arguments]
                if body.sides:
                    triple = [self.untimed(slot, body.sides[0]) for slot in triple]
                return self.timestamps.of_triple(triple, body, call.origin)
            case (Variable() as variable,):
                return self.timestamps.of_variable(variable, body, None, call.origin)
            case (Variable() as variable, str() as stream) if is_iri(stream):
                return self.timestamps.of_variable(variable, body, Term(stream), call.origin)
        hint = "give it a subject, a predicate and an object; or a variable, and a stream's IRI"
        self.state.notes.fail("`timestamp` does not take these arguments", call.origin, hint)
        return _UNKNOWN

    def _inside(self, group: q.Group, body: Body) -> System:
        """Returns the group of an EXISTS, which sees the variables around it."""
        return self.groups.group(group, body.reads.within_exists(body.variables))

    def _call(self, call: q.Call, arguments: Sequence[Expression], body: Body) -> Expression:
        if call.function.endswith(">") and call.function != ">":
            return self._call_by_iri(call, arguments)
        if call.function in ("IRI", "URI") and self.state.base:
            arguments = (*arguments, literal(self.state.base))
        return calls.call(call.function, arguments, scope=self._scope(call, body), origin=call.origin)

    def _scope(self, call: q.Call, body: Body) -> tuple[Expression, ...]:
        modes = functions.builtins(LANGUAGE)[call.function].modes if call.function in _GENERATORS else ()
        if not any(mode.scoped for mode in modes):
            return ()
        # A label of BNODE means the same node in all of a solution of the query.
        if call.function == "BNODE" and call.arguments:
            return self.scope(self.state.key, body, despite_filters=True)
        return self.scope(f"{self.state.key} {self.state.number()}", body)

    def scope(self, key: str, body: Body, despite_filters: bool = False) -> tuple[Expression, ...]:
        """Returns the arguments by which a function gives a new value for each solution of a body (`calls.scope`).

        Args:
            key: Identifies the call in the program.
            body: The body, to which what distinguishes its solutions is added.
            despite_filters: See `Body.since`.
        """
        sides = body.sides or (body,)
        names = [name for side in sides for name in side.distinguish(self.state.fresh)]
        since = sides[0].since(self.state.fresh, despite_filters)
        return calls.scope(key, (*dict.fromkeys(names), since))

    def _call_by_iri(self, call: q.Call, arguments: Sequence[Expression]) -> Expression:
        name = iri_text(call.function)
        if call.distinct:
            hint = "only aggregates take DISTINCT: leave it out"
            return self._refused(f"`DISTINCT` in {call.function} is not supported", call.origin, hint)
        try:
            function = functions.lookup(name)
        except PluginError as error:
            hint = error.hint or "`squall list` shows the functions that there are; `--import FILE.py` adds your own"
            self.state.notes.fail(error.message, call.origin, hint)
            return _UNKNOWN
        if not self.check_arity(call.function, function, len(arguments), call.origin):
            return _UNKNOWN
        if problem := function.problem(arguments):
            self.state.notes.fail(f"{call.function}: {problem}", call.origin)
            return _UNKNOWN
        return calls.by_iri(name, arguments, origin=call.origin)

    def check_arity(
        self, name: str, function: functions.Function | AggregateFunction, count: int, origin: Origin | None
    ) -> bool:
        """Returns whether a function takes so many arguments; if it does not, that is an error of the program."""
        if function.least <= count and (function.most is None or count <= function.most):
            return True
        most = "or more" if function.most is None else f"to {function.most}"
        hint = f"it takes {function.least}" if function.least == function.most else f"it takes {function.least} {most}"
        arguments = "1 argument" if count == 1 else f"{count} arguments"
        self._refused(f"{name} does not take {arguments}", origin, hint)
        return False

    def _refused(self, message: str, origin: Origin | None, hint: str) -> Term:
        self.state.notes.fail(message, origin, hint)
        return _UNKNOWN


_GENERATORS = {"BNODE", "RAND", "UUID", "STRUUID"}
"""The functions that return something new for each solution."""
_UNKNOWN = literal("")
"""A replacement for a refused expression, so that the rest of the query is checked as well."""


def conjuncts(expression: q.Expression) -> Iterator[q.Expression]:
    """Yields the operands of a conjunction."""
    if isinstance(expression, q.Call) and expression.function == "&&":
        for argument in expression.arguments:
            yield from conjuncts(argument)
    else:
        yield expression


def _existence(expression: q.Expression) -> tuple[q.Group, bool] | None:
    """Returns the group of EXISTS or NOT EXISTS, and whether it has to have a solution. None for any other
    expression."""
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


def used_variables(expression: q.Expression, origin: Origin | None) -> Iterator[tuple[Variable, Origin | None]]:
    """Yields the variables that an expression uses outside of groups, each with its place.

    Args:
        expression: The expression.
        origin: The place of the expression, for variables that are in no call.
    """
    match expression:
        case Variable():
            yield expression, origin
        case q.Call(arguments=arguments):
            for argument in arguments:
                yield from used_variables(argument, expression.origin or origin)


def origin_of(expression: q.Expression) -> Origin | None:
    """Returns the place of an expression in the text, if it has one."""
    return None if isinstance(expression, str | Variable) else expression.origin
