"""The registry of functions and aggregates, by IRI, and of the names by which each language calls functions.

Libraries are entry points of the group ``squall.functions``, each of which names a tuple of `Function`, `Builtin` and
`AggregateFunction`. A user's function needs no entry point: decorate it with `function`, or with `aggregate`.
"""

from __future__ import annotations

import inspect
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, cast

from squall import plugins
from squall.errors import PluginError, SquallError, did_you_mean
from squall.functions.aggregation import AggregateFunction
from squall.functions.results import CheckedBody, SingleCall, VectorisedBody
from squall.functions.user_aggregates import UserAggregate, methods
from squall.rdf import Term

OWN = "urn:x-squall:own:"
"""The namespace of functions whose author gave a name and no IRI."""

Body = Callable[..., Any]


@dataclass(frozen=True)
class Function:
    """A function over terms.

    Attributes:
        iri: Its IRI.
        body: The Python function. It takes terms, or None for unbound arguments, and returns a bool (of a truth
            function), or a term or None (no value).
        least: The least number of arguments, without the time of a timed function.
        most: The greatest number of arguments; None: any number.
        truth: Whether it is a truth function, that is, a test.
        timed: Whether its first argument is the time of the solution (integer ms; `squall.rdf.ALWAYS` for static data).
        pure: Whether equal arguments give equal results, without side effects. A function that logs is not pure.
        compares: Whether it compares values. The result of a comparison with the time changes only where the time
            passes the other value (`squall.functions.deadlines`).
        nests: Whether it creates terms of its arguments. Since a rule that reads its own conclusions might not
            terminate then, their depth is limited (`squall.rdf.compounds.depth`).
        check: Returns what is wrong with the constant arguments of a call (others are None) before a run, or None.
        vector: The function for many calls at once. It takes a list for each argument, and returns a list of results.
        doc: A description for people.
        tells_always: Whether a timed function gets `squall.rdf.ALWAYS` for static data even where the run has another
            time for them (`squall.contracts.Options.now`). It is then a whole expression of a plan.
        seeded: The argument, a constant, to which a run adds its seed (`squall.plan.seeds`); None: there is none.
        join_keys: Of a test of two terms, the IRI of the table of their keys (`squall.functions.join_keys`), or "".
            Terms of which it is true have exactly one key in common, of the left one and of the right one.
        strict: Whether a test is false if any argument is unbound.
        as_test: Of a function of truth values as terms, the IRI of the test that stands for it as a condition, or "".
    """

    iri: str
    body: Body
    least: int
    most: int | None
    truth: bool = False
    timed: bool = False
    pure: bool = True
    compares: bool = False
    nests: bool = False
    check: Callable[..., str | None] | None = None
    vector: Body | None = None
    doc: str = ""
    tells_always: bool = False
    seeded: int | None = None
    join_keys: str = ""
    strict: bool = False
    as_test: str = ""

    def problem(self, arguments: Sequence[object]) -> str | None:
        """Returns what is wrong with the constants among the arguments of a call before a run, or None."""
        constants = [argument if isinstance(argument, str) else None for argument in arguments]
        return self.check(*constants) if self.check else None

    def evaluate(self, *arguments: Any) -> bool | Term | None:
        """Returns the result.

        An exception is a defect of the function: it propagates, and names function and arguments.
        """
        try:
            result: bool | Term | None = self.body(*arguments)
        except SquallError:
            raise
        except Exception as error:
            error.add_note(f"in the function <{self.iri}> of ({', '.join(map(str, arguments))})")
            raise
        return result

    def evaluate_all(self, calls: Sequence[tuple[Any, ...]]) -> Sequence[bool | Term | None]:
        """Returns the results of many calls of a function that has a `vector`, each with its arguments."""
        assert self.vector is not None
        try:
            return cast("Sequence[bool | Term | None]", self.vector(*map(list, zip(*calls, strict=True))))
        except SquallError:
            raise
        except Exception as error:
            error.add_note(f"in {len(calls)} calls at once of the function <{self.iri}>")
            raise


@dataclass(frozen=True)
class Mode:
    """One way to compute an argument of a relation-like built-in from the others.

    Attributes:
        target: The computed argument, counted from 0, or from the end if negative.
        function: The IRI of the function.
        inputs: The arguments that the function takes; None: all that are not computed.
        repeats: Whether every argument from `target` on is computed, each by itself. Then the first argument of the
            function is the position, from 1.
        scoped: Whether the function also gets, before the inputs, a text that is unique for this call in all rules, and
            all variables that are bound so far.
        table: Whether it is a table function, whose rows are the values of the argument. If the argument has a value
            already, the built-in's test decides whether it is one of them.
    """

    target: int
    function: str
    inputs: tuple[int, ...] | None = None
    repeats: bool = False
    scoped: bool = False
    table: bool = False

    def targets(self, count: int) -> range:
        """Returns the positions of the computed arguments in a call with so many."""
        start = self.target if self.target >= 0 else count + self.target
        return range(start, count if self.repeats else min(start + 1, count))

    def arguments(self, count: int) -> tuple[int, ...]:
        """Returns the arguments that the function takes."""
        if self.inputs is not None:
            return self.inputs
        targets = self.targets(count)
        return tuple(index for index in range(count) if index not in targets)


@dataclass(frozen=True)
class Builtin:
    """The spelling of a function or a relation in a language.

    With neither `test` nor `modes`, the language's translator knows the meaning of a call (``noValue``). In a language
    with expressions a call is a value: `modes` name the function (of several, by the number of arguments), and `test`
        is
    the truth function for conditions.

    Attributes:
        name: The name in the language.
        language: The language.
        least: The least number of arguments.
        most: The greatest number of arguments; None: any number.
        test: The truth function of a call without a computed argument.
        modes: The ways to compute arguments. The first one that is applicable is used.
        same: The truth function that compares a computed argument with the value that it has already.
        where: Where rules may call it: ``body``, ``head`` or ``both``.
    """

    name: str
    language: str
    least: int
    most: int | None
    test: str | None = None
    modes: tuple[Mode, ...] = ()
    same: str | None = None
    where: str = "body"
    doc: str = field(default="", compare=False)


Member = Function | Builtin | AggregateFunction
"""What a library may have."""


class _Registry:
    """The registry, by IRI or by language and name. `own` has what was registered by hand in this process."""

    def __init__(self) -> None:
        self.members: dict[object, Member] = {}
        self.own: dict[object, Member] = {}
        self.builtins: defaultdict[str, dict[str, Builtin]] = defaultdict(dict)
        """The built-ins of each language, by name."""

    def check(self, member: Member, library: str) -> None:
        """Raises PluginError if a library has another function of the same IRI or name."""
        key = _key(member)
        if key not in self.own and self.members.get(key, member) != member:
            raise PluginError(f"the function library `{library}` redefines `{_label(member)}`")

    def add(self, member: Member, library: str) -> None:
        self.check(member, library)
        self.members[_key(member)] = member
        if isinstance(member, Builtin):
            self.builtins[member.language][member.name] = member


def _key(member: Member) -> object:
    return (member.language, member.name) if isinstance(member, Builtin) else member.iri


def _label(member: Member) -> str:
    return member.name if isinstance(member, Builtin) else f"<{member.iri}>"


@cache
def _registry() -> _Registry:
    """Returns the registry with all libraries.

    One of another package that cannot be loaded is left out with a warning: a program that calls its functions is then
    refused, since it names a function that does not exist.
    """
    registry = _Registry()
    for name, library in plugins.load_all(plugins.FUNCTIONS).items():
        try:
            members = _members(library)
            for member in members:
                registry.check(member, name)
        except (PluginError, TypeError) as error:
            plugins.leave_out(plugins.FUNCTIONS, name, error)
            continue
        for member in members:
            registry.add(member, name)
    return registry


def _members(library: Any) -> tuple[Member, ...]:
    """Returns the members of a library. Raises TypeError if the plug-in names something else."""
    members = tuple(library)
    for member in members:
        if not isinstance(member, Member):
            raise TypeError(f"{member!r} is no Function, no Builtin and no AggregateFunction")
    return members


def lookup(iri: str) -> Function:
    """Returns the function with this IRI (without brackets). Raises PluginError if there is none."""
    function = _registry().members.get(iri)
    if isinstance(function, AggregateFunction):
        raise PluginError(f"<{iri}> is an aggregate, and no function", hint="use it in the `SELECT` of a SPARQL query")
    if function is None:
        raise PluginError(f"there is no function <{iri}>", hint=did_you_mean(iri, _iris()))
    assert isinstance(function, Function)
    return function


def lookup_aggregate(iri: str) -> AggregateFunction:
    """Returns the aggregate with this IRI, or of SPARQL's own the one with this name in lower case.

    Raises PluginError if there is none.
    """
    aggregate = _registry().members.get(iri)
    if not isinstance(aggregate, AggregateFunction):
        label = f"<{iri}>" if ":" in iri else f"`{iri}`"
        candidates = [candidate.iri for candidate in aggregates()]
        raise PluginError(f"there is no aggregate {label}", hint=did_you_mean(iri, candidates))
    return aggregate


def is_aggregate(iri: str) -> bool:
    """Returns whether there is an aggregate with this IRI."""
    return isinstance(_registry().members.get(iri), AggregateFunction)


def exists(iri: str) -> bool:
    """Returns whether there is a function or an aggregate with this IRI."""
    return iri in _registry().members


def _iris() -> list[str]:
    return [iri for iri in _registry().members if isinstance(iri, str)]


def aggregates() -> tuple[AggregateFunction, ...]:
    """Returns all aggregates, in the order of their IRIs."""
    members = (member for member in _registry().members.values() if isinstance(member, AggregateFunction))
    return tuple(sorted(members, key=lambda aggregate: aggregate.iri))


def functions() -> tuple[Function, ...]:
    """Returns all functions, in the order of their IRIs."""
    members = (member for member in _registry().members.values() if isinstance(member, Function))
    return tuple(sorted(members, key=lambda function: function.iri))


def builtins(language: str) -> Mapping[str, Builtin]:
    """Returns the built-ins of a language by name."""
    return _registry().builtins.get(language, {})


def register(*members: Member) -> None:
    """Adds functions, spellings and aggregates for this process; one registered by hand before is replaced.

    Raises PluginError where a library has another of the same IRI or name.
    """
    registry = _registry()
    for member in members:
        registry.add(member, "<own>")
        registry.own[_key(member)] = member


def own() -> tuple[Member, ...]:
    """Returns what was registered by hand in this process, and another one has to `register` for the same program."""
    return tuple(_registry().own.values())


def function(
    name: str,
    *,
    truth: bool = False,
    timed: bool = False,
    pure: bool = True,
    where: str = "body",
    languages: Sequence[str] = ("jena",),
    vectorised: bool = False,
) -> Callable[[Body], Body]:
    """Registers the decorated Python function under an IRI, or under a name.

    It takes terms (`squall.rdf.Term`, None if unbound) and returns a term or None, or a bool if `truth`. The rules of
    `languages` call it by the name, or by what follows the last ``/``, ``#`` or ``:`` of the IRI. The value of a
    function that is no test is an additional, last argument. `mode` adds ways to compute other arguments. A function
    without languages may return rows of terms: a table function.

    Args:
        name: The IRI or the name.
        truth: Whether it is a test.
        timed: Whether its first argument is the time of the solution.
        pure: Whether equal arguments give equal results, without side effects.
        where: Where rules may call it: ``body``, ``head`` (as an action, which is not pure) or ``both``.
        languages: The languages whose rules may call it.
        vectorised: Whether it takes a list of terms for each argument and returns a list of results. It is called for
            many solutions at once, with distinct arguments.

    Raises:
        PluginError: A vectorised function has no argument, is timed, or is not pure.
    """

    def add(body: Body) -> Body:
        checked = body if truth or not languages else CheckedBody(body)
        function = _function_of_body(_iri(name), checked, truth, timed, pure)
        if vectorised:
            function = _vectorised(function, body)
        register(function, *(_spelled(function, language, where) for language in languages))
        return body

    return add


def aggregate(name: str) -> Callable[[Body], Body]:
    """Registers the decorated class or Python function as an aggregate, under an IRI or under a name.

    SPARQL calls it by the IRI, with as many arguments as it has, and with DISTINCT: ``SELECT (ex:median(?x) AS ?y)``.

    * A *function* takes a list of terms for each argument: the values of all solutions of the group, in the order of
      ORDER BY. It is called anew when the group has changed.
    * A *class* has the methods ``add(value)``, ``remove(value)`` and ``result()``. An object of it belongs to a group.
      Without ``remove`` there is a new object after a removal.

    The result is a term (`squall.rdf.Term`) or None. It must depend neither on the order of the values nor on anything
    else. An unbound value, an error or an exception leaves the group without a value.

    Args:
        name: The IRI or the name.

    Raises:
        PluginError: The class lacks a method, or there is no argument.
    """

    def add(body: Body) -> Body:
        register(aggregate_of(_iri(name), body))
        return body

    return add


def aggregate_of(iri: str, body: Body) -> AggregateFunction:
    """Returns the aggregate of a class or Python function, for a library. See `aggregate`."""
    arities = [_arity(taker, inspect.isclass(body)) for taker in methods(body)]
    least, most = arities[0]
    if most == 0:
        raise PluginError(f"the aggregate <{iri}> takes no values", hint="give it a parameter")
    if len(set(arities)) > 1:
        raise PluginError(f"the methods `add` and `remove` of <{iri}> take different arguments")
    least = max(least, 1)
    doc = inspect.getdoc(body) or ""
    return AggregateFunction(iri, UserAggregate(iri, body, least), least, most, doc=doc)


def mode(
    name: str, target: int, *, timed: bool = False, pure: bool = True, languages: Sequence[str] = ("jena",)
) -> Callable[[Body], Body]:
    """Registers the decorated Python function as another mode of the `function` of this name or IRI.

    It computes the argument at the index `target` (from 0, or from the end if negative) from the others, in their
    order. The translator of a rule selects the mode: the first declared one whose inputs are bound.

    Raises:
        PluginError: There is no such function, or the numbers of arguments differ.
    """

    def add(body: Body) -> Body:
        function = _function_of_body(f"{_iri(name)}/{target}", CheckedBody(body), False, timed, pure)
        register(
            function,
            *(_with_mode(_own(name, language), Mode(target, function.iri), function) for language in languages),
        )
        return body

    return add


def _iri(name: str) -> str:
    return name if ":" in name else OWN + name


def _function_of_body(iri: str, body: Body, truth: bool, timed: bool, pure: bool) -> Function:
    evaluated_body = body.body if isinstance(body, CheckedBody) else body
    doc = inspect.getdoc(evaluated_body) or ""
    return Function(iri, body, *_arity(evaluated_body, timed), truth=truth, timed=timed, pure=pure, doc=doc)


def _vectorised(function: Function, body: Body) -> Function:
    """Returns the function of a body over lists."""
    if function.least == 0 or function.timed or not function.pure:
        why = "takes no argument" if function.least == 0 else "takes the time" if function.timed else "is not pure"
        raise PluginError(
            f"the function <{function.iri}> cannot be vectorised: it {why}", hint="leave `vectorised` out"
        )
    vector = VectorisedBody(body, function.truth)
    return replace(function, body=SingleCall(vector), vector=vector)


def _own(name: str, language: str) -> Builtin:
    """Returns a built-in that was registered by hand."""
    builtins = {
        builtin.name: builtin for builtin in own() if isinstance(builtin, Builtin) and builtin.language == language
    }
    renamed = _called(_iri(name))
    if renamed not in builtins:
        raise PluginError(
            f"there is no function of one's own `{renamed}` in `{language}`", hint=did_you_mean(renamed, builtins)
        )
    return builtins[renamed]


def _with_mode(builtin: Builtin, added: Mode, function: Function) -> Builtin:
    """Returns the built-in with one more mode; one for the same argument is replaced."""
    most = None if function.most is None else function.most + 1
    if (function.least + 1, most) != (builtin.least, builtin.most):
        raise PluginError(
            f"a mode of `{builtin.name}` takes all of its arguments but the one that it computes",
            hint=f"`{builtin.name}` has {_counted(builtin)}",
        )
    modes = tuple(mode for mode in builtin.modes if mode.target != added.target)
    return replace(builtin, modes=(*modes, added), same=SAME_VALUE)


def _counted(builtin: Builtin) -> str:
    most = "or more" if builtin.most is None else f"to {builtin.most}"
    return f"{builtin.least} arguments" if builtin.least == builtin.most else f"{builtin.least} {most} arguments"


def _arity(body: Body, skips_first: bool) -> tuple[int, int | None]:
    parameters = list(inspect.signature(body).parameters.values())[1 if skips_first else 0 :]
    plain = [
        parameter
        for parameter in parameters
        if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD)
    ]
    least = sum(1 for parameter in plain if parameter.default is parameter.empty)
    return least, None if any(parameter.kind is parameter.VAR_POSITIONAL for parameter in parameters) else len(plain)


def _spelled(function: Function, language: str, where: str) -> Builtin:
    name = _called(function.iri)
    if function.truth:
        return Builtin(name, language, function.least, function.most, test=function.iri, where=where, doc=function.doc)
    most = None if function.most is None else function.most + 1
    modes = (Mode(-1, function.iri),)
    return Builtin(
        name, language, function.least + 1, most, modes=modes, same=SAME_VALUE, where=where, doc=function.doc
    )


def _called(iri: str) -> str:
    """Returns by which name a language calls the function of an IRI."""
    return iri.replace("#", "/").replace(":", "/").rpartition("/")[2]


SAME_VALUE = "urn:x-squall:jena:sameValueAs"
"""The IRI of the test whether two terms are the same value (`squall.functions.values.same`)."""
