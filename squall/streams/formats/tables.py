"""Text tables for people: one for each evaluation, under its time, with prefixed names, plain numbers and times."""

from __future__ import annotations

import io
import re
from collections.abc import Hashable, Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from squall.contracts import Output
from squall.functions.values import date_time
from squall.rdf import ALWAYS, parts
from squall.rdf.prefixes import header, prefixes, shorten
from squall.streams.formats.evaluations import Evaluation, EvaluationCollector, query_of_change

_MAX_WIDTH = 1_000_000
"""A width in characters at which no cell is folded."""


class TextTableEncoder:
    """An encoder of tables. They fit the width of a terminal; elsewhere they are as wide as needed, without colours."""

    def __init__(self) -> None:
        self._collector = EvaluationCollector(query_of_change)
        self._shown_prefixes: dict[str, str] = {}
        """The prefixes that were shown last."""
        self._terminal = False

    def begin(self, has_content: bool, is_terminal: bool) -> None:
        self._collector = EvaluationCollector(query_of_change)
        self._shown_prefixes, self._terminal = {}, is_terminal

    def write(self, output: Output) -> bytes:
        return self._encode(self._collector.add(output))

    def end(self) -> bytes:
        return self._encode(self._collector.end())

    def snapshot(self) -> Any:
        return {"prefixes": self._shown_prefixes, "outputs": self._collector.snapshot()}

    def restore(self, state: Any) -> None:
        self._shown_prefixes = state["prefixes"]
        self._collector.restore(state["outputs"])

    def _encode(self, evaluations: Sequence[Evaluation]) -> bytes:
        groups = groupby(evaluations, key=_table_of)
        return "".join(self._text(list(group)) for _, group in groups).encode()

    def _text(self, evaluations: Sequence[Evaluation]) -> str:
        """Returns one table. Evaluations of one time with the same columns share it, with a column for their names."""
        terms = (_bare(term) for evaluation in evaluations for row in evaluation.bindings for term in row.values())
        namespaces = prefixes("\n".join(terms))
        new_header = header(namespaces) if namespaces and namespaces != self._shown_prefixes else ""
        self._shown_prefixes = namespaces or self._shown_prefixes
        title = "  ".join(
            (_time(evaluations[0].time), *(evaluation.query for evaluation in evaluations if len(evaluations) == 1))
        )
        return f"{new_header}{_visible(title)}\n{self._body(evaluations, namespaces)}\n"

    def _body(self, evaluations: Sequence[Evaluation], namespaces: dict[str, str]) -> str:
        if evaluations[0].boolean is not None:
            return f"  {str(evaluations[0].boolean).lower()}\n"
        if not any(evaluation.bindings for evaluation in evaluations):
            return "  nothing\n"
        columns = [*(["rule"] if len(evaluations) > 1 else []), *(["change"] if evaluations[0].changes else [])]
        table = Table(*columns, *evaluations[0].names, box=SIMPLE_HEAD)
        for cells in _rows(evaluations):
            table.add_row(*(Text(_visible(shorten(_bare(cell), namespaces)), overflow="fold") for cell in cells))
        return _rendered(table, self._terminal)


def _table_of(evaluation: Evaluation) -> Hashable:
    """Returns what evaluations of one table have in common. The answer of an ASK has one of its own."""
    query = evaluation.query if evaluation.boolean is not None else None
    return evaluation.time, evaluation.names, query, bool(evaluation.changes)


def _rows(evaluations: Sequence[Evaluation]) -> Iterator[Iterable[str]]:
    for evaluation in evaluations:
        rule = [evaluation.query] if len(evaluations) > 1 else []
        changes = [[change] for change in evaluation.changes] or [[]] * len(evaluation.bindings)
        for change, row in zip(changes, evaluation.bindings, strict=True):
            yield [*rule, *change, *(row.get(name, "") for name in evaluation.names)]


def _time(time: int) -> str:
    return "always" if time == ALWAYS else f"{time} ({parts(date_time(time)).lexical})"


_BARE_DATATYPES = ("dateTime", "dateTimeStamp", "date", "time", "duration", "dayTimeDuration", "yearMonthDuration")
_BARE = re.compile(
    r'"([+-]?\d[\d.]*)"\^\^<http://www\.w3\.org/2001/XMLSchema#(?:integer|decimal)>'
    r'|"([+-]?\d[\d.]*(?:[eE][+-]?\d+)?|-?INF|NaN)"\^\^<http://www\.w3\.org/2001/XMLSchema#(?:double|float)>'
    r'|"(true|false)"\^\^<http://www\.w3\.org/2001/XMLSchema#boolean>'
    rf'|"([\dPTYMDHS:.+Z-]+)"\^\^<http://www\.w3\.org/2001/XMLSchema#(?:{"|".join(_BARE_DATATYPES)})>'
)


def _bare(term: str) -> str:
    """Returns a number, truth value, time or duration without its datatype, and any other term unchanged."""
    match = _BARE.fullmatch(term)
    return next(filter(None, match.groups())) if match else term


def _visible(text: str) -> str:
    """Escapes characters that a terminal would take as commands."""
    return (
        text
        if text.isprintable()
        else "".join(character if character.isprintable() else f"\\u{ord(character):04X}" for character in text)
    )


def _rendered(table: Table, is_terminal: bool) -> str:
    file = io.StringIO()
    width = None if is_terminal else _MAX_WIDTH
    Console(file=file, width=width, force_terminal=is_terminal, force_jupyter=False, highlight=False).print(table)
    return "\n".join(line.rstrip() for line in file.getvalue().split("\n")).strip("\n") + "\n"
