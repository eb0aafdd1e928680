"""Outputs as flat JSON objects with plain values: numbers, truth values and texts in place of terms."""

from __future__ import annotations

import json
import re
from decimal import Decimal
from functools import lru_cache
from math import isfinite

from squall.contracts import Output
from squall.functions.python_values import to_python
from squall.rdf import ALWAYS, Boolean, Evaluated, Term, is_literal, parts
from squall.streams.formats.evaluations import answer_of, cells, check_names
from squall.streams.formats.results import plain_value

_JSON_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_MAX_DIGITS = 4000
"""A longer number is a text: Python, and so many readers, convert no more digits."""
_CACHED_TERMS = 65536


def plain_json_line(output: Output, is_one_query: bool = False) -> bytes:
    """Returns a line with a flat object: ``time`` (integer ms, null for what always holds), ``rule``, and the values.

    Args:
        output: The output.
        is_one_query: Whether all outputs are answers of one query, so that ``rule`` is left out.

    Raises:
        SinkError: A variable has the name of a member of all outputs.
    """
    answer = answer_of(output)
    if isinstance(answer, Evaluated):
        return b""
    members = {"time": "null" if output.time == ALWAYS else str(output.time)}
    if not is_one_query:
        members["rule"] = _json_text(output.rule)
    if output.change:
        members["change"] = f'"{output.change}"'
    if isinstance(answer, Boolean):
        members["boolean"] = str(answer)
    else:
        names, values = cells(answer)
        check_names(names, tuple(members))
        members.update(
            (name, "null" if term is None else json_of_term(term)) for name, term in zip(names, values, strict=True)
        )
    return f"{{{', '.join(f'{_json_text(name)}: {text}' for name, text in members.items())}}}\n".encode()


@lru_cache(_CACHED_TERMS)
def json_of_term(term: Term) -> str:
    """Returns the JSON text of the plain value of a term.

    A well-formed number is a JSON number with the digits that it has, a truth value ``true`` or ``false``. All others
    are texts: IRIs, blank nodes (``_:b``), and lexical forms, also those of ``INF``, ``NaN`` and of ill-typed literals.
    """
    if not is_literal(term):
        return _json_text(plain_value(term))
    lexical = parts(term).lexical
    if len(lexical) > _MAX_DIGITS:
        return _json_text(lexical)
    value = to_python(term)
    if isinstance(value, bool):
        return "true" if value else "false"
    if not isinstance(value, int | Decimal | float) or not isfinite(value):
        return _json_text(lexical)
    if _JSON_NUMBER.fullmatch(lexical):
        return lexical
    return format(value, "f") if isinstance(value, Decimal) else repr(value)


def _json_text(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
