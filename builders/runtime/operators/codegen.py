"""Python source made for an operator and compiled once: what is done per row is then one list comprehension.

The source depends on the shape of the operator only; its constants and functions are passed in by name, so that many
nodes share one compilation. ``squall.builders.runtime.operators.codegen.COMPILED`` keeps the sources for whoever wants
to read them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import CodeType
from typing import Any, NamedTuple

from squall import functions
from squall.errors import SquallError
from squall.functions import Function
from squall.plan.operators import Column, Expression, Invoke

COMPILED: dict[str, CodeType] = {}
"""What has been compiled in this process, by its source."""

Names = dict[str, Any]


def compile_source(body: str, names: Names) -> Callable[..., Any]:
    """The function ``run`` that the source defines, with these names known to it."""
    code = COMPILED.get(body)
    if code is None:
        code = COMPILED[body] = compile(body, "<squall>", "exec")
    namespace = dict(names)
    exec(code, namespace)
    function: Callable[..., Any] = namespace["run"]
    return function


def compile_expressions(body: str, expressions: Sequence[Expression], row: str, time: str) -> Callable[..., Any]:
    """The function ``run`` of a source in which ``{0}``, ``{1}``, ... stand for expressions of a row.

    Functions are called as they are. Where one fails, the work is done again with calls that say which it was, and of
    what; functions that are not pure are called so from the start.
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
    """The same for a source that goes over the rows of ``run(entries)``: functions that are vectorised are called
    before, once for each of their calls of all rows, those inside of others first."""
    if not any(map(_is_vectorised, expressions)):
        return compile_expressions(body, expressions, row, time)
    names: Names = {}
    calls: list[_Calls] = []
    sources = [expression_source(value, row, time, names, calls=calls) for value in expressions]
    gathering = [
        compile_source(f"def run(entries):\n return dict.fromkeys({call.arguments} for {row} in entries)", names)
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
    """Whether a function in an expression is called for many rows at once."""
    if not isinstance(value, Invoke):
        return False
    return functions.lookup(value.function).vector is not None or any(map(_is_vectorised, value.arguments))


class _Calls(NamedTuple):
    """The calls of a vectorised function: the source of their arguments, and the results of those that are made."""

    function: Function
    arguments: str
    results: dict[tuple[Any, ...], Any]


def column_names(letter: str, count: int) -> list[str]:
    """The names of so many columns: ``a0``, ``a1``, ..."""
    return [f"{letter}{number}" for number in range(count)]


def delta_source(columns: Sequence[str], start: str = "s", end: str = "e", weight: str = "w") -> str:
    """The text of an entry."""
    return f"({', '.join([*columns, start, end, weight])})"


def row_source(columns: Sequence[str]) -> str:
    """The text of a row without its validity."""
    return f"({''.join(f'{column}, ' for column in columns)})"


def expression_source(
    value: Expression, row: str, time: str, names: Names, careful: bool = False, calls: list[_Calls] | None = None
) -> str:
    """The source that computes an expression of a row (a sequence by the name `row`) at a time; None is unbound.
    careful: an error says in which function it is. calls: takes those of vectorised functions, whose results the source
    then looks up; None: they are called for one row, as others are."""
    match value:
        case Column(index=index):
            return f"{row}[{index}]"
        case Invoke(function=iri, arguments=arguments):
            function = functions.lookup(iri)
            arguments_code = [expression_source(argument, row, time, names, careful, calls) for argument in arguments]
            if calls is not None and function.vector is not None:
                calls.append(_Calls(function, f"({', '.join(arguments_code)},)", {}))
                return f"{_named('c', calls[-1].results, names)}[{calls[-1].arguments}]"
            call_arguments = [time, *arguments_code] if function.timed else arguments_code
            body = function.body if function.pure and not careful and calls is None else function.evaluate
            return f"{_named('f', body, names)}({', '.join(call_arguments)})"
        case None:
            return "None"
        case _:
            return _named("k", value, names)


def _named(letter: str, value: Any, names: Names) -> str:
    name = f"{letter}{len(names)}"
    names[name] = value
    return name
