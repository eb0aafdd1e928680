"""DataFrames as sources: rows become triples by a mapping, or have a triple each."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

from squall.errors import ArgumentError, UsageError, did_you_mean
from squall.functions.python_values import to_term
from squall.rdf import ALWAYS, Columns, Event, Fact, Term, Triple, is_blank, is_iri
from squall.rdf import term as parsed_term
from squall.rdf.iris import is_absolute
from squall.streams.dead_letters import MAX_TEXT_LENGTH, DeadLetterFile, RunLedger
from squall.streams.formats import Bad, suffix
from squall.streams.formats.reading import ReadProgress
from squall.streams.formats.records import RecordDecoder, row_text
from squall.streams.mappings.by_column import merged
from squall.streams.mappings.columns import check_columns
from squall.streams.mappings.evaluation import UnusableRecord, time_function
from squall.streams.mappings.model import Mapping as RecordMapping
from squall.streams.mappings.model import Records, Reference, TimeMap, with_time, without_places
from squall.streams.mappings.options import load
from squall.streams.mappings.python_records import record_column, unusable_rows
from squall.streams.sources.frame_columns import Block, Frame

UNITS = {"ms": 1, "s": 1000}
"""The units of times that are numbers, in milliseconds."""
_LONG_NAMES, _SHORT_NAMES = ("subject", "predicate", "object", "graph"), ("s", "p", "o", "g")
"""The names of the columns of triples."""
_TIME = "time"
_PLAIN_SCHEMES = ("http://", "https://", "urn:")
"""What a text in the column of objects begins with if it is an IRI."""
logger = logging.getLogger("squall")


@dataclass(frozen=True)
class RowReader:
    """What makes triples of the rows of a table. It is the same in all processes of a run.

    Attributes:
        stream: The IRI of the stream of the triples.
        name: What the table is called in messages; its blank nodes are its own.
        time: The time (integer ms) of all rows, or the column and the unit of their times; None: as the mapping says.
        records: How rows are mapped; None: a row is a triple.
        columns: The columns of a triple: those of the subject, the predicate and the object, and that of the graph if
            there is one.
    """

    stream: str
    name: str
    time: int | TimeMap | None
    records: Records | None = None
    columns: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """The columns that are read."""
        if self.records is not None:
            return tuple(self.records.mapping.fields())
        return (*self.columns, *map(str, self.time.reference.path)) if isinstance(self.time, TimeMap) else self.columns

    @property
    def _record_names(self) -> tuple[str, ...]:
        """The columns whose values are those of records: not the cells of a triple, which may be terms of a library."""
        return self.names if self.records is not None else self.names[len(self.columns) :]

    @property
    def row_time(self) -> TimeMap | None:
        """The column of the time of a whole row; None: there is none, or the triples of a row have several times."""
        if self.records is None or not self.records.is_timed:
            return self.time if isinstance(self.time, TimeMap) else None
        times = {rule.time for rule in self.records.mapping.rules}
        time = times.pop() if len(times) == 1 else None
        return time if time is not None and not time.reference.level and len(time.reference.path) == 1 else None

    @property
    def is_timed(self) -> bool:
        """Whether rows have times of their own."""
        return isinstance(self.time, TimeMap) or (self.records is not None and self.records.is_timed)

    def events(self, block: Block) -> tuple[Sequence[Event], list[Bad]]:
        """Returns the events of a block of rows, and the rows that cannot be used, by their indexes."""
        columns = {name: record_column(block[name]) for name in self._record_names}
        height = len(next(iter(block.values()))) if block else 0
        unusable = unusable_rows(columns)
        bad = [(index, reason, _shown(block, index)) for index, reason in unusable.items()]
        usable = [index for index in range(height) if index not in unusable]
        if unusable:
            columns = {name: [values[index] for index in usable] for name, values in columns.items()}
        if self.records is not None:
            decoder = RecordDecoder(self.records, self.stream, self._fixed_time, suffix(self.name))
            events, other_bad = decoder.values(columns, len(usable))
        else:
            raw_columns = [[block[name][index] for index in usable] for name in self.columns]
            events, other_bad = self._statements(raw_columns, self._times(columns, len(usable)))
        bad += [(usable[index], reason, _shown(block, usable[index])) for index, reason, _ in other_bad]
        return events, sorted(bad)

    @property
    def _fixed_time(self) -> int:
        return self.time if isinstance(self.time, int) else ALWAYS

    def _times(self, columns: Mapping[str, Sequence[Any]], height: int) -> Sequence[int | str]:
        """Returns the times (integer ms) of rows; a text is the reason why there is none."""
        if not isinstance(self.time, TimeMap):
            return [self._fixed_time] * height
        return times_of(self.time, columns[str(self.time.reference.path[0])])

    def _statements(
        self, cells: Sequence[Sequence[Any]], times: Sequence[int | str]
    ) -> tuple[Sequence[Event], list[Bad]]:
        """Returns the events of rows that have a triple each: in columns, if there are no named graphs."""
        own, statements, bad = suffix(self.name), list[tuple[int, Term, Triple]](), list[Bad]()
        graphs: Sequence[Any] = cells[3] if len(cells) > 3 else [None] * len(times)
        for index, (subject, predicate, object, graph, time) in enumerate(zip(*cells[:3], graphs, times, strict=True)):
            try:
                if isinstance(time, str):
                    raise UnusableRecord(time)
                triple = Triple(
                    _name(subject, self.columns[0], own),
                    _name(predicate, self.columns[1], ""),
                    _object(object, self.columns[2], own),
                )
                name = Term("") if graph is None else _name(graph, self.columns[3], own)
            except UnusableRecord as error:
                bad.append((index, str(error), ""))
            else:
                statements.append((time, name, triple))
        return _grouped(statements, self.stream), bad


def times_of(time: TimeMap, values: Sequence[Any]) -> list[int | str]:
    """Returns the times (integer ms) of values of records; a text is the reason why there is none."""
    time_of = time_function(time)

    def make(value: Any) -> int | str:
        try:
            return time_of(value)
        except UnusableRecord as error:
            return str(error)

    return list(map(make, values))


def row_reader(
    names: Sequence[str],
    map: str | Path | RecordMapping | None,
    time: str | int | None,
    unit: str,
    stream: str,
    name: str,
) -> RowReader:
    """Returns what makes triples of the rows of a table with some columns; see `squall.from_dataframe`.

    Raises:
        UsageError: A column is missing, or the mapping cannot be read.
        LexerError: The mapping is malformed.
        Errors: There are several errors.
    """
    if unit not in UNITS:
        raise ArgumentError(f"`unit={unit!r}` is no unit of time", hint="units: `ms` and `s`")
    if isinstance(time, str):
        _check_column(time, names, name, "the time")
    if map is None:
        return _triple_reader(names, time, unit, stream, name)
    mapping = mapping_of(map)
    if time is not None and mapping.is_timed:
        hint = "leave `time` out, or the time of the mapping (`AT`)"
        raise UsageError(f"`{name}` has the time twice: in `time`, and in its mapping", hint=hint)
    if isinstance(time, str):
        mapping = with_time(mapping, (time,), UNITS[unit])
    check_columns(Records(mapping), names, f"`{name}`")
    fixed_time = time if isinstance(time, int) else None
    return RowReader(stream, name, fixed_time, without_places(Records(mapping)))


def mapping_of(map: str | Path | RecordMapping) -> RecordMapping:
    """Returns a mapping: a value, a file, or a text in the short form (with ``=>``) or in RML (of several lines)."""
    if isinstance(map, RecordMapping):
        return map
    if isinstance(map, Path) or not ("=>" in map or "\n" in map):
        return load(str(map))
    from squall.streams.mappings import rml, short_form

    return short_form.read(map, "the mapping") if "=>" in map else rml.read(map, "the mapping").mapping


def _triple_reader(names: Sequence[str], time: str | int | None, unit: str, stream: str, name: str) -> RowReader:
    forms = (_LONG_NAMES, _SHORT_NAMES)
    form = max(forms, key=lambda form: sum(column in names for column in form[:3]))
    for column in form[:3]:
        _check_column(column, names, name, "triples")
    columns = form if form[3] in names else form[:3]
    if time is None and _TIME in names:
        time = _TIME
    row_time = TimeMap(Reference(0, (time,)), UNITS[unit]) if isinstance(time, str) else time
    return RowReader(stream, name, row_time, columns=columns)


def _check_column(column: str, names: Sequence[str], frame: str, purpose: str) -> None:
    if column in names:
        return
    near = did_you_mean(column, names)
    all_names = ", ".join(f"`{other}`" for other in names) or "none"
    mapping = "; other columns need a mapping: `map=`" if purpose == "triples" else ""
    raise ArgumentError(
        f"`{frame}` has no column `{column}`, which has {'the terms of ' * (purpose == 'triples')}{purpose}",
        hint=(near or f"columns: {all_names}") + mapping,
    )


class DataFrameSource:
    """The rows of a DataFrame of pandas or polars, of an Arrow table or of a record batch reader, as a source.

    It is an iterable of events as well. The rows of a table are read in the order of their times, those of a reader as
    they come. A row that cannot be used is a dead letter, with its number from 1 as the line. It goes to the ledger of
    the run (`squall.Options`), or else is counted in `dead_letters`, and the log (``squall``) has the first one.

    Attributes:
        dead_letters: The counts of rows that cannot be used, where the run has no ledger.
    """

    live = False
    size: int | None = None
    idle = 0
    removals = False
    earliest = ALWAYS

    def __init__(self, frame: Frame, reader: RowReader, strict: bool = False) -> None:
        """Creates it.

        Args:
            frame: The table.
            reader: What makes triples of its rows.
            strict: Whether the first row that cannot be used is an error.
        """
        self.uri = reader.name
        self.reading = ReadProgress()
        self.dead_letters = DeadLetterFile(strict=strict)
        self.ledger = self.dead_letters if strict else RowLedger(self.dead_letters)
        self._frame = frame
        self._reader = reader
        self._first_block = 0
        self._block = 0
        """The number of the blocks that have been read."""

    def __iter__(self) -> Iterator[Event]:
        return (event for batch in self.batches() for event in batch)

    def current_offset(self) -> Any:
        """Returns the number of blocks that have been read (see `squall.streams.sources.files.Resumable`)."""
        return self._block

    def resume(self, current_offset: Any) -> None:
        self._first_block = current_offset or 0

    def batches(self) -> Iterator[Sequence[Event]]:
        """Yields the events, a block of rows at a time.

        Raises:
            SourceError: A row cannot be used, and the source is strict.
        """
        order = self._order()
        batches = self._batches(order)
        if order is None and self._frame.height is not None and self._reader.is_timed and not self._reader.row_time:
            batches = iter([sorted((event for batch in batches for event in batch), key=_time_of)])
        yield from batches

    def _batches(self, order: Sequence[int] | None) -> Iterator[Sequence[Event]]:
        first = 0
        names = self._reader.names or self._frame.names[:1]
        if not names:
            return
        for number, block in enumerate(self._frame.blocks(names, order)):
            height = len(block[names[0]])
            if number >= self._first_block:
                events, bad = self._reader.events(block)
                self._block = number + 1
                self.reading.statements += sum(map(_statement_count, events))
                self.reading.malformed += len(bad)
                for index, reason, text in bad:
                    row = first + index if order is None else order[first + index]
                    self.ledger.record("malformed", self.uri, row + 1, reason, text)
                yield events
            first += height

    def _order(self) -> Sequence[int] | None:
        """Returns the rows of a table in the order of their times; None: they are in order, or there is none."""
        time, height = self._reader.row_time, self._frame.height
        if time is None or height is None:
            return None
        values = record_column(self._frame.column(str(time.reference.path[0])))
        keys = [key if isinstance(key, int) else ALWAYS for key in times_of(time, values)]
        order = sorted(range(height), key=keys.__getitem__)
        return None if order == list(range(height)) else order


class RowLedger(RunLedger):
    """The ledger of a DataFrame: a row that cannot be used ends no run, also where the run has no ledger."""

    def __init__(self, rows: DeadLetterFile) -> None:
        super().__init__()
        self._rows = rows

    def record(self, cause: str, source: str, line: int | None, reason: str, text: str) -> None:
        if self.ledger is None and cause == "malformed":
            self._rows.record(cause, source, line, reason, text)
            if self._rows.total(cause) == 1:
                row = "a row" if line is None else f"row {line}"
                logger.warning("%s of `%s` cannot be used: %s (`dead_letters` counts all)", row, source, reason)
        else:
            super().record(cause, source, line, reason, text)


def _time_of(event: Event) -> int:
    return event.time


def _statement_count(event: Event) -> int:
    return event.statement_count


def _shown(block: Block, index: int) -> str:
    return row_text({name: values[index] for name, values in block.items()})[:MAX_TEXT_LENGTH]


def _grouped(statements: Sequence[tuple[int, Term, Triple]], stream: str) -> Sequence[Event]:
    """Returns timed triples in graphs as events, or as columns if none is in a graph and they are in order."""
    if not statements:
        return []
    times, graphs, triples = zip(*statements, strict=True)
    if not any(graphs) and list(times) == sorted(times) and times[0] != ALWAYS:
        subjects, predicates, objects = (list(column) for column in zip(*triples, strict=True))
        return Columns(*merged(list(times), [1] * len(times)), subjects, predicates, objects, stream)
    events = []
    for (time, graph), run in groupby(statements, key=itemgetter(0, 1)):
        facts: tuple[Fact, ...] = tuple(triple for _, _, triple in run)
        events.append(Event(time, facts, stream, graph=graph))
    return events


# Terms of cells


def _name(value: Any, column: str, own: str) -> Term:
    """Returns the IRI or blank node of a cell. Without a suffix for blank nodes, there may be none."""
    term = _term_of_text(value, column) if isinstance(value, str) and not hasattr(value, "n3") else _term(value, column)
    if term is None:
        if not is_absolute(value):
            raise UnusableRecord(f"the column `{column}`: `{value}` is no absolute IRI")
        return Term(f"<{value}>")
    if not is_iri(term) and not (own and is_blank(term)):
        raise UnusableRecord(f"the column `{column}`: `{value}` is no IRI{' and no blank node' if own else ''}")
    return Term(term + own) if is_blank(term) else term


def _object(value: Any, column: str, own: str) -> Term:
    """Returns the term of a cell of the column of objects."""
    if not isinstance(value, str) or hasattr(value, "n3"):
        return _term(value, column)
    term = _term_of_text(value, column)
    if term is None:
        return Term(f"<{value}>") if value.startswith(_PLAIN_SCHEMES) and is_absolute(value) else to_term(_sound(value))
    return Term(term + own) if is_blank(term) else term


@lru_cache(65536)
def _term_of_text(text: str, column: str) -> Term | None:
    """Returns the term that a text is in N-Triples; None: it does not begin like one."""
    if not text.startswith(("<", '"', "_:")):
        return None
    try:
        return parsed_term(text)
    except (ArgumentError, UnicodeEncodeError):
        reason = "begins like a term of N-Triples, and is none (a string may be in quotes)"
        raise UnusableRecord(f"the column `{column}`: `{text}` {reason}") from None


def _term(value: Any, column: str) -> Term:
    if value is None:
        raise UnusableRecord(f"the column `{column}` is empty")
    try:
        return to_term(value.item() if hasattr(value, "item") else value)
    except ArgumentError:
        raise UnusableRecord(f"the column `{column}` has a {type(value).__name__}, which has no term") from None


def _sound(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise UnusableRecord("half of a character") from None
    return text
