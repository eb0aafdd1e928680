"""Tables for people: one for each evaluation, under its time, with names shortened and numbers bare."""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Iterator, Sequence
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
from squall.streams.formats.evaluations import Evaluation, Gathering

_WIDEST = 1_000_000  # characters: a line that nothing has to be folded for


class Tables:
    """Fits tables to the width of a terminal; elsewhere they are as wide as their rows, and without colours."""

    def __init__(self) -> None:
        self._gathering = Gathering()
        self._known: dict[str, str] = {}
        """The prefixes that have been shown last."""
        self._terminal = False

    def begin(self, begun: bool, terminal: bool) -> None:
        self._gathering, self._known, self._terminal = Gathering(), {}, terminal

    def write(self, output: Output) -> bytes:
        return self._shown(self._gathering.add(output))

    def end(self) -> bytes:
        return self._shown(self._gathering.end())

    def save(self) -> Any:
        return {"prefixes": self._known, "outputs": self._gathering.save()}

    def recover(self, saved: Any) -> None:
        self._known = saved["prefixes"]
        self._gathering.recover(saved["outputs"])

    def _shown(self, found: Sequence[Evaluation]) -> bytes:
        alike = groupby(found, key=lambda one: (one.time, one.names))
        return "".join(self._text(list(group)) for _, group in alike).encode()

    def _text(self, found: Sequence[Evaluation]) -> str:
        """One table. Evaluations of one time with the same columns share it; a column says which is which."""
        terms = (_bare(term) for one in found for row in one.bindings for term in row.values())
        known = prefixes("\n".join(terms))
        changed = header(known) if known and known != self._known else ""
        self._known = known or self._known
        title = "  ".join((_time(found[0].time), *(one.query for one in found if len(found) == 1)))
        return f"{changed}{_visible(title)}\n{self._body(found, known)}\n"

    def _body(self, found: Sequence[Evaluation], known: dict[str, str]) -> str:
        if found[0].boolean is not None:
            return "".join(f"  {str(one.boolean).lower()}\n" for one in found)
        if not any(one.bindings for one in found):
            return "  nothing\n"
        table = Table(*(["rule"] if len(found) > 1 else []), *found[0].names, box=SIMPLE_HEAD)
        for cells in _rows(found):
            table.add_row(*(Text(_visible(shorten(_bare(cell), known)), overflow="fold") for cell in cells))
        return _rendered(table, self._terminal)


def _rows(found: Sequence[Evaluation]) -> Iterator[Iterable[str]]:
    for one in found:
        rule = [one.query] if len(found) > 1 else []
        yield from ([*rule, *(row.get(name, "") for name in one.names)] for row in one.bindings)


def _time(time: int) -> str:
    return "always" if time == ALWAYS else f"{time} ({parts(date_time(time)).lexical})"


_BARE = re.compile(
    r'"([+-]?\d[\d.]*)"\^\^<http://www\.w3\.org/2001/XMLSchema#(?:integer|decimal)>'
    r'|"([+-]?\d[\d.]*[eE][+-]?\d+)"\^\^<http://www\.w3\.org/2001/XMLSchema#double>'
    r'|"(true|false)"\^\^<http://www\.w3\.org/2001/XMLSchema#boolean>'
)


def _bare(term: str) -> str:
    """A number or truth value without its datatype; any other term as it is."""
    found = _BARE.fullmatch(term)
    return next(filter(None, found.groups())) if found else term


def _visible(text: str) -> str:
    """Without characters that a terminal would take as commands: they are shown as escapes."""
    return text if text.isprintable() else "".join(one if one.isprintable() else f"\\u{ord(one):04X}" for one in text)


def _rendered(table: Table, terminal: bool) -> str:
    file = io.StringIO()
    width = None if terminal else _WIDEST
    Console(file=file, width=width, force_terminal=terminal, force_jupyter=False, highlight=False).print(table)
    return "\n".join(line.rstrip() for line in file.getvalue().split("\n")).strip("\n") + "\n"
