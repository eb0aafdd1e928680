"""Slots of triples, and common parts of printing."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

from squall.model import Variable
from squall.model.windows import duration
from squall.rdf import XSD, Term, is_literal, literal, parts

if TYPE_CHECKING:
    from squall.lexers.sparql.tree.expressions import Expression

Slot = Term | Variable
_SHORT = {
    XSD + "integer": re.compile(r"[+-]?[0-9]+"),
    XSD + "decimal": re.compile(r"[+-]?[0-9]*\.[0-9]+"),
    XSD + "double": re.compile(r"[+-]?([0-9]+\.[0-9]*|\.[0-9]+|[0-9]+)[eE][+-]?[0-9]+"),
    XSD + "boolean": re.compile(r"true|false"),
}
"""The lexical forms of literals without quotes, by datatype."""


def is_unnamed(variable: Variable) -> bool:
    """Returns whether a variable is a blank node of a pattern."""
    return variable.name.startswith("_:")


def slot(value: Slot) -> str:
    """Returns a term or variable as text. A number or boolean has no datatype if the text means the same without it."""
    if isinstance(value, Variable):
        return value.name if is_unnamed(value) else str(value)
    if is_literal(value) and value.endswith(">"):
        lexical, datatype, _ = parts(value)
        shape = _SHORT.get(datatype)
        if shape and shape.fullmatch(lexical):
            return lexical
    return value


def expressed(expression: Expression) -> str:
    """Returns an expression as text."""
    return slot(expression) if isinstance(expression, str | Variable) else str(expression)


def iso_duration(milliseconds: int) -> str:
    """Returns a duration as an xsd:dayTimeDuration: ``PT10S``, ``PT0.5S``, ``P1D``."""
    if milliseconds % 1000:
        return f"PT{milliseconds // 1000}.{milliseconds % 1000:03}".rstrip("0") + "S"
    plain = duration(milliseconds).upper()
    return f"P{plain}" if plain.endswith("D") else f"PT{plain}"


def clause_text(keyword: str, parts: Iterable[object]) -> list[str]:
    text = " ".join(map(str, parts))
    return [f"{keyword} {text}"] if text else []


def named_text(expression: Expression | None, variable: Variable) -> str:
    return str(variable) if expression is None else f"({expressed(expression)} AS {variable})"


def bracketed(expression: Expression) -> str:
    text = expressed(expression)
    return text if text.startswith("(") else f"({text})"


def braced(text: str) -> str:
    indented = text.replace("\n", "\n  ")
    return f"{{\n  {indented}\n}}" if text else "{}"


def lines(parts: Iterable[object]) -> str:
    return "\n".join(map(str, parts))


def silent_text(silent: bool) -> str:
    return "SILENT " if silent else ""


def graph_text(graph: str) -> str:
    return f"GRAPH {graph}" if graph.startswith("<") else graph


def quoted(text: str) -> str:
    return str(literal(text))
