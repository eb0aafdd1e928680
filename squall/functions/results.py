"""Wrappers of Python functions that users register. They check what these return."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

from squall.rdf import Term


def checked_term(result: object, producer: str = "a function") -> Term | None:
    """Returns the result of a user's code. Raises TypeError if it is a value of Python, and no term."""
    if result is None or (isinstance(result, str) and result[:1] in ("<", "_", '"')):
        return cast("Term | None", result)
    raise TypeError(f"{producer} gives a term (`squall.rdf.literal`, `squall.rdf.iri`) or None, not {result!r}")


@dataclass(frozen=True)
class CheckedBody:
    """Wraps a user's function, which must return a term."""

    body: Callable[..., Any]

    def __call__(self, *arguments: Any) -> Term | None:
        return checked_term(self.body(*arguments))


@dataclass(frozen=True)
class VectorisedBody:
    """Wraps a user's function over lists, which must return one result for each call."""

    body: Callable[..., Any]
    truth: bool

    def __call__(self, *columns: list[Any]) -> list[Any]:
        results = list(self.body(*columns))
        if len(results) != len(columns[0]):
            raise ValueError(f"a vectorised function gave {len(results)} results, not {len(columns[0])}")
        return results if self.truth else [checked_term(result) for result in results]


@dataclass(frozen=True)
class SingleCall:
    """Wraps a vectorised function for a single call."""

    vector: VectorisedBody

    def __call__(self, *arguments: Any) -> Any:
        (result,) = self.vector(*([argument] for argument in arguments))
        return result
