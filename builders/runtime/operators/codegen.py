"""Code generation: Python source for an operator, compiled once, so that the work per row is one list comprehension.

The source depends on the shape of the operator only. Its constants and functions are passed in by name, so that many
nodes share one compilation. ``squall.builders.runtime.operators.codegen.COMPILED`` has the sources, for inspection.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import CodeType
from typing import Any, NamedTuple

from squall import functions
from squall.errors import SquallError
from squall.functions import Function
from squall.plan.operators import Column, Expression, Invoke

COMPILED: dict[str, CodeType] = {}
"""The code compiled in this process, by source."""

Names = dict[str, Any]
MAX_CALL_DEPTH = 40
"""The depth of nested calls at which generated code continues in a function of its own."""


def compile_source(body: str, names: Names) -> Callable[..., Any]:
    """Returns the function ``run`` that the source defines, with the names in its namespace."""
    code = COMPILED.get(body)
    if code is None:
        code = COMPILED[body] = compile(body, "<squall>", "exec")
    namespace = dict(names)
    exec(code, namespace)
    function: Callable[..., Any] = namespace["run"]
    return function


def compile_expressions(body: str, expressions: Sequence[Expression], row: str, time: str) -> Callable[..., Any]:
    """Returns the function ``run`` of a source in which ``{0}``, ``{1}``, ... stand for expressions of a row.

    Functions are called without a guard. If one fails, the work is repeated with calls that name the failing function
    and its arguments. Functions that are not pure are always called that way.
    """
    quick: Names = {}
    careful: Names = {}
    fast = compile_source(body.format(*(expression_source(value, row, time, quick) for value in expressions)), quick)
    guarded = [expression_source(value, row, time, careful, careful=True) for value in expressions]

    def run(*arguments: Any) -> Any:
        try:
            return fast(*arguments)
        except SquallError:
            raise
        except Exception:
            compile_source(body.format(*guarded), careful)(*arguments)
            raise

    return run


def compile_vectorized(body: str, expressions: Sequence[Expression], row: str, time: str) -> Callable[..., Any]:
    """Returns the same for a source that loops over the rows of ``run(deltas)``.

    Vectorised functions are called before the loop, once for all rows, inner calls first.
    """
    if not any(map(_is_vectorised, expressions)):
        return compile_expressions(body, expressions, row, time)
    names: Names = {}
    calls: list[_Calls] = []
    sources = [expression_source(value, row, time, names, calls=calls) for value in expressions]
    gathering = [
        compile_source(f"def run(deltas):\n return dict.fromkeys({call.arguments} for {row} in deltas)", names)
        for call in calls
    ]
    fast = compile_source(body.format(*sources), names)

    def run(deltas: Sequence[Any]) -> Any:
        try:
            for call, gather in zip(calls, gathering, strict=True):
                argument_rows = list(gather(deltas))
                call.results.update(
                    zip(argument_rows, call.function.evaluate_all(argument_rows) if argument_rows else (), strict=True)
                )
            return fast(deltas)
        finally:
            for call in calls:
                call.results.clear()

    return run


def _is_vectorised(value: Expression) -> bool:
    """Returns whether an expression calls a function that takes many rows at once."""
    if not isinstance(value, Invoke):
        return False
    return functions.lookup(value.function).vector is not None or any(map(_is_vectorised, value.arguments))


class _Calls(NamedTuple):
    """The calls of a vectorised function: the source of their arguments, and the results by arguments."""

    function: Function
    arguments: str
    results: dict[tuple[Any, ...], Any]


def column_names(letter: str, count: int) -> list[str]:
    """Returns the names of so many columns: ``a0``, ``a1``, ..."""
    return [f"{letter}{number}" for number in range(count)]


def delta_source(columns: Sequence[str], start: str = "s", end: str = "e", weight: str = "w") -> str:
    """Returns the source of a delta."""
    return f"({', '.join([*columns, start, end, weight])})"


def row_source(columns: Sequence[str]) -> str:
    """Returns the source of a row without validity."""
    return f"({''.join(f'{column}, ' for column in columns)})"


def expression_source(
    value: Expression, row: str, time: str, names: Names, careful: bool = False, calls: list[_Calls] | None = None
) -> str:
    """Returns the source that computes an expression of a row.

    Args:
        value: The expression; None is unbound.
        row: The name of the row in the source.
        time: The source of the time: a name, or an expression of the row.
        names: Receives constants and functions.
        careful: Whether an error names the function in which it occurs.
        calls: Receives the calls of vectorised functions, whose results the source looks up; None: they are called for
            one row, as other functions are.
    """
    return _nested_source(value, row, time, names, careful, calls)[0]


def _nested_source(
    value: Expression, row: str, time: str, names: Names, careful: bool, calls: list[_Calls] | None
) -> tuple[str, int]:
    """Returns the source of an expression, and how deep calls are nested in it.

    Python compiles parentheses up to a depth only, so a deep expression becomes several functions.
    """
    match value:
        case Column(index=index):
            return f"{row}[{index}]", 0
        case Invoke(function=iri, arguments=arguments):
            sources = [_nested_source(argument, row, time, names, careful, calls) for argument in arguments]
            depth = 1 + max([depth for _, depth in sources], default=0)
            code = _call_source(functions.lookup(iri), [code for code, _ in sources], time, names, careful, calls)
            if depth < MAX_CALL_DEPTH:
                return code, depth
            parameters = f"{row}, {time}" if time.isidentifier() and time != row else row
            part = compile_source(f"def run({parameters}):\n return {code}", names)
            return f"{_named('p', part, names)}({parameters})", 0
        case None:
            return "None", 0
        case _:
            return _named("k", value, names), 0


def _call_source(
    function: Function, arguments: Sequence[str], time: str, names: Names, careful: bool, calls: list[_Calls] | None
) -> str:
    """Returns the source of a call, or of the look-up of its result, from the sources of its arguments."""
    if calls is not None and function.vector is not None:
        calls.append(_Calls(function, f"({', '.join(arguments)},)", {}))
        return f"{_named('c', calls[-1].results, names)}[{calls[-1].arguments}]"
    body = function.body if function.pure and not careful and calls is None else function.evaluate
    return f"{_named('f', body, names)}({', '.join([time, *arguments] if function.timed else arguments)})"


def _named(letter: str, value: Any, names: Names) -> str:
    name = f"{letter}{len(names)}"
    names[name] = value
    return name
