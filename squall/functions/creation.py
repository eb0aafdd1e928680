"""Functions that create new terms from any terms, so that a recursion through them may have no end."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any, Protocol

from squall import functions
from squall.functions.same_as import OF_QUOTED, called_functions
from squall.rdf import iri_text
from squall.rdf.compounds import BUILD, JOIN, LIMIT

_CREATING_FUNCTIONS = frozenset((
    "addOne", "difference", "makeSkolem", "makeTemp", "product", "quotient", "strConcat", "subtractOne", "sum",
    "uriConcat", "bnode", "concat", "divide", "encode-for-uri", "md5", "multiply", "plus", "replace", "sha1", "sha256",
    "sha384", "sha512", "struuid", "subtract", "uuid", "numeric-add", "numeric-subtract", "numeric-multiply",
    "numeric-divide", "string-join", "append", "concatenate", "insert-before", "make-list", "build",
    "makeInstance", "MakeUri", *(f"{sign}-{duration}{what}" for sign in ("add", "subtract")
                      for duration in ("dayTimeDuration", "yearMonthDuration")
                      for what in ("s", *(f"-{word}-{kind}" for word in ("to", "from")
                                          for kind in ("date", "dateTime", "time")))),
    *(f"{what}-{duration}" for what in ("multiply", "divide") for duration in ("dayTimeDuration", "yearMonthDuration")),
))  # fmt: skip
"""The local names of functions that create new terms from any terms, without end.

All other functions of squall test, choose among their arguments, or come to an end when applied to their own results.
"""


class FunctionCall(Protocol):
    """A call of a function: `squall.model.Call`, or `squall.plan.operators.Invoke`."""

    @property
    def function(self) -> str:
        """The IRI of the function."""
        ...

    @property
    def arguments(self) -> Sequence[Any]:
        """The arguments, which may be calls."""
        ...


def creating_function(expression: object) -> str | None:
    """Returns the name of the outermost function in an expression that creates new terms, or None."""
    return next(filter(None, map(_creating_name, _calls(expression))), None)


def _calls(expression: object) -> Iterator[FunctionCall]:
    """Yields the calls in an expression, the outer ones first."""
    call: Any = expression
    if hasattr(call, "function") and hasattr(call, "arguments"):
        yield call
        yield from chain.from_iterable(map(_calls, call.arguments))


def _creating_name(call: FunctionCall) -> str | None:
    """Returns the name of a function that creates new terms; for a compound term, its own name.

    Lists that a rule extends have the nesting limit. Other lists that are joined come from the data.
    """
    if call.function == LIMIT:
        return "List" if JOIN in {getattr(argument, "function", None) for argument in call.arguments} else None
    if call.function == BUILD and isinstance(call.arguments[0], str):
        return _local(iri_text(call.arguments[0]))
    if call.function in OF_QUOTED:
        inner = (name for name in called_functions(call.arguments[2]) if _local(name) in _CREATING_FUNCTIONS)
        return next(map(_local, inner), None)
    local = _local(call.function)
    return local if local in _CREATING_FUNCTIONS or functions.lookup(call.function) in functions.own() else None


def _local(iri: str) -> str:
    return iri.replace("#", "/").replace(":", "/").rpartition("/")[2]
