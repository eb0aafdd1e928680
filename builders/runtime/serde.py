"""Serialization of rows as strings, one by one or in batches. It is exact, also for unbound cells."""

from __future__ import annotations

import json
import sys
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import islice, repeat
from typing import NamedTuple, cast

from squall.builders.runtime.zset import Delta, Row, answer_row, new_tuple, row_fact, triple
from squall.contracts import Output
from squall.rdf import FOREVER, Evaluated, Triple

_JSON_MARK = "\0"
"""The first character of a row that is written as JSON."""
_EVALUATED_TAG = "="
"""The first cell of the row that marks a complete evaluation."""
_TRIPLE_STARTS = {"<", "_"}
"""The first characters of the string of an RDF triple, and of no other output."""
_LINE_FEEDS_PER_TRIPLE = 3
"""The number of line feeds in the string of a triple."""
_OUTPUTS_PER_BLOCK = 1000
"""So many outputs are unpacked at a time."""
_INTEGER_BYTES = 8
"""The bytes of an integer."""
_output = cast(Callable[[Sequence[object]], Output], partial(new_tuple, Output))
_CHANGE_MARKS = {"delete": "\1", "insert": "\2"}
"""The first characters of the strings of changes. Sorted by their strings, deletions come before insertions."""
_CHANGES = {mark: change for change, mark in _CHANGE_MARKS.items()}


def pack(row: Sequence[str | None]) -> str:
    """Returns a row as one string.

    Its cells are separated by line feeds, which no term has inside (N-Triples escapes them). The row is JSON where the
    cells could not be separated again.
    """
    try:
        text = "\n".join(row)  # type: ignore[arg-type]  # a None is rare, and raises
    except TypeError:
        return _as_json(row)
    if text.count("\n") != len(row) - 1 or not text or text[0] == _JSON_MARK:
        return _as_json(row) if row else ""
    return text


class Packed(NamedTuple):
    """Serialized deltas.

    Attributes:
        text: The rows.
        spans: The starts, ends and weights as 64-bit integers.
        start: The latest start (integer ms).
        end: The latest end that is not FOREVER, if there is one.
    """

    text: str
    spans: bytes
    start: int
    end: int


def pack_all(deltas: Sequence[Delta]) -> Packed:
    """Serializes one delta or more.

    Cells are separated by line feeds, column by column. The rows are JSON where the cells could not be separated again.
    """
    try:
        *columns, starts, ends, weights = zip(*deltas, strict=True)
        text = _text(columns, len(deltas))
    except (TypeError, ValueError):  # rare: a cell is None, or the rows differ in width
        starts, ends, weights = (tuple(delta[place] for delta in deltas) for place in (-3, -2, -1))
        text = None
    spans = b"".join(map(_integers, (starts, ends, weights)))
    latest = max(ends)
    if latest == FOREVER:
        latest = max((end for end in ends if end != FOREVER), default=FOREVER)
    return Packed(_all_as_json(deltas) if text is None else text, spans, max(starts), latest)


def unpack_all(text: str, spans: bytes) -> list[Delta]:
    """Returns the deltas that `pack_all` serialized. Equal cells are one object."""
    width = len(spans) // 3
    times = [_all_integers(spans[first : first + width]) for first in range(0, 3 * width, width)]
    if text[:1] == _JSON_MARK:
        return [(*row, *span) for row, *span in zip(json.loads(text[1:]), *times, strict=True)]
    size = width // _INTEGER_BYTES
    cells = list(map(sys.intern, text.split("\n"))) if text else []
    columns = (cells[first : first + size] for first in range(0, len(cells), size))
    return list(zip(*columns, *times, strict=True))


def _integers(values: Sequence[int]) -> bytes:
    first = values[0]
    alike = values.count(first) == len(values)  # common for static data, and for events of one time
    return array("q", [first] if alike else values).tobytes() * (len(values) if alike else 1)


def _all_integers(packed: bytes) -> Sequence[int]:
    """Returns the integers of bytes. If all are equal, they are one object."""
    first, count = packed[:_INTEGER_BYTES], len(packed) // _INTEGER_BYTES
    return list(array("q", first)) * count if packed == first * count else array("q", packed)


def _text(columns: Sequence[Sequence[str]], count: int) -> str | None:
    """Returns the rows, column by column, if they can be separated again. Raises TypeError if a cell is None."""
    text = "\n".join(["\n".join(column) for column in columns])
    plain = text and text[0] != _JSON_MARK and text.count("\n") == len(columns) * count - 1
    return text if plain or not columns else None


def _all_as_json(deltas: Sequence[Delta]) -> str:
    return _JSON_MARK + json.dumps([delta[:-3] for delta in deltas], ensure_ascii=False)


def _as_json(row: Sequence[str | None]) -> str:
    return _JSON_MARK + json.dumps(row, ensure_ascii=False)


def unpack(text: str) -> Row:
    """Returns the row of a string."""
    if text[:1] != _JSON_MARK:
        return tuple(text.split("\n")) if text else ()
    return tuple(json.loads(text[1:]))


def pack_output(output: Output) -> str:
    """Returns an output without its time as one string."""
    if output.change:
        return _CHANGE_MARKS[output.change] + pack_output(output._replace(change=""))
    fact = output.fact
    if isinstance(fact, Triple):  # most outputs are triples
        return pack((*fact, output.rule))
    row = (_EVALUATED_TAG, *fact.names) if isinstance(fact, Evaluated) else answer_row(fact)
    return pack((*row, output.rule))


def pack_outputs(outputs: Sequence[Output]) -> list[str]:
    """Returns several outputs without their times as strings. For triples alone, it takes half the time."""
    if {(type(output.fact), output.change) for output in outputs} == {(Triple, "")}:
        texts = ["\n".join((*fact, rule)) for fact, _, rule, _ in outputs]
        if sum(text.count("\n") for text in texts) == _LINE_FEEDS_PER_TRIPLE * len(texts):
            return texts
    return list(map(pack_output, outputs))


def unpack_output(text: str, time: int) -> Output:
    """Returns the output of a string, with its time (integer ms)."""
    if text[0] in _TRIPLE_STARTS:  # a triple, as most are
        *terms, maker = text.split("\n")
        return Output(triple(terms), time, maker)
    if (change := _CHANGES.get(text[0])) is not None:
        return unpack_output(text[1:], time)._replace(change=change)
    *cells, rule = unpack(text)
    if cells[0] == _EVALUATED_TAG:
        return Output(Evaluated(tuple(map(str, cells[1:]))), time, str(rule))
    return Output(row_fact(cells), time, str(rule))


def unpack_outputs(answers: Iterable[tuple[int, int, str]]) -> Iterator[Output]:
    """Yields the outputs of (time, number of the output node, string). For triples alone, it takes half the time."""
    left = iter(answers)
    while block := list(islice(left, _OUTPUTS_PER_BLOCK)):
        times, _, texts = zip(*block, strict=True)
        if {text[:1] for text in texts} <= _TRIPLE_STARTS:
            cells = "\n".join(texts).split("\n")
            *terms, rules = (cells[first :: _LINE_FEEDS_PER_TRIPLE + 1] for first in range(_LINE_FEEDS_PER_TRIPLE + 1))
            yield from map(_output, zip(map(triple, zip(*terms, strict=True)), times, rules, repeat("")))
        else:
            yield from map(unpack_output, texts, times)
