"""State of rows without times: sets, closures, facts that were read, and facts that were output."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Iterator, Sequence
from itertools import chain, repeat
from operator import itemgetter
from typing import Any, cast

from squall.builders.runtime.operators.factored import FactoredRows, Rows, rows_of
from squall.builders.runtime.operators.output import AppendOnlyOutput
from squall.builders.runtime.operators.transitive_closure import ClosureIndex as Pairs
from squall.builders.runtime.snapshot.groups import KeyedRows, group_by_object
from squall.builders.runtime.tuning import DEFAULT_TUNING, Tuning
from squall.builders.runtime.zset import Row, is_rdf, new_tuple, row_fact
from squall.contracts import Output
from squall.rdf import Triple

_FIRST = itemgetter(0)


class FactSet:
    """The rows of one key."""

    def __init__(self) -> None:
        self.rows: set[Row] = set()
        """The rows that came one by one."""
        self.factored: dict[tuple[int, Row], Collection[Any]] = {}
        """The values of factorised rows, by their place and the other cells.

        The collection is a set, or the values of the only `FactoredRows` so far.
        """
        self.places: set[int] = set()
        """The places of the factorised rows."""

    def fresh(self, rows: Rows) -> Rows:
        """Adds rows and returns those that are new, each once and in their order."""
        if isinstance(rows, FactoredRows):
            return self._fresh_factored(rows)
        for place in self.places:
            rows = [row for row in rows if not self._has(place, row)]
        return _fresh(rows, self.rows)

    def _has(self, place: int, row: Row) -> bool:
        values = self.factored.get((place, (*row[:place], None, *row[place + 1 :])))
        return values is not None and row[place] in values

    def _known_values(self, rows: FactoredRows) -> set[Any]:
        """Returns the values of those rows that are known in another form."""
        if len(rows) < len(self.rows):
            cells = {row[rows.place] for row in rows if row in self.rows}
        else:
            cells = {row[rows.place] for row in self.rows if rows.fits(row)}
        for place in self.places - {rows.place}:
            cells.update(row[rows.place] for row in rows if self._has(place, row))
        return cells

    def _fresh_factored(self, rows: FactoredRows) -> Rows:
        if otherwise := self._known_values(rows):
            rows = rows.of(value for value in rows.values if value not in otherwise)
        key, values = (rows.place, rows.row), rows.values
        members = self.factored.get(key)
        if members is None:
            self.places.add(rows.place)
            self.factored[key] = values
            return rows
        fresh = set(values).difference(members)
        if not fresh:
            return ()
        member_set = members if isinstance(members, set) else set(members)
        member_set |= fresh  # reuses the hashes
        self.factored[key] = member_set
        return rows if len(fresh) == len(values) else rows.of(filter(fresh.__contains__, values))

    def all(self) -> Iterator[Sequence[Row]]:
        yield list(self.rows)
        for (place, row), values in self.factored.items():
            yield list(FactoredRows(row, place, dict.fromkeys(values)))

    def __len__(self) -> int:
        return len(self.rows) + sum(map(len, self.factored.values()))


def _fresh(rows: Sequence[Row], seen_rows: set[Row]) -> Sequence[Row]:
    before = len(seen_rows)
    if not before:
        seen_rows.update(rows)
        return rows if len(seen_rows) == len(rows) else list(dict.fromkeys(rows))
    fresh = set(rows).difference(seen_rows)
    seen_rows |= fresh  # reuses the hashes
    if len(fresh) == len(rows):
        return rows
    return list(dict.fromkeys(filter(fresh.__contains__, rows))) if fresh else ()


class SnapshotDistinct:
    """A set that emits each row once."""

    def __init__(self) -> None:
        self.facts: dict[Hashable, FactSet] = {}

    def apply(self, port: int, parts: Iterable[KeyedRows]) -> Iterator[KeyedRows]:
        for key, rows, rule, _ in parts:
            yield KeyedRows(key, self.fresh(key, rows), rule)

    def fresh(self, key: Hashable, rows: Rows) -> Rows:
        """Adds rows with a key and returns those that are new."""
        seen_rows = self.facts.get(key)
        if seen_rows is None:
            seen_rows = self.facts[key] = FactSet()
        return seen_rows.fresh(rows)

    def export_state(self) -> Iterator[tuple[int, Sequence[Row]]]:
        for seen_rows in self.facts.values():
            yield from ((0, rows) for rows in seen_rows.all())

    def size(self) -> int:
        return sum(map(len, self.facts.values()))


class ReadFacts:
    """The facts that were read, each emitted once.

    Duplicates are not looked for where all facts of a predicate come together.

    Args:
        grouped_predicates: The predicates whose facts are emitted grouped by object.
        deduplicates: Whether it makes a difference how often a fact comes.
        tuning: The tuning values of the runtime.
    """

    def __init__(
        self, grouped_predicates: Collection[Hashable], deduplicates: bool, tuning: Tuning = DEFAULT_TUNING
    ) -> None:
        self.tuning = tuning
        self.grouped_predicates = grouped_predicates
        self.deduplicates = deduplicates
        self.set = SnapshotDistinct()
        self.undeduplicated: dict[Hashable, Sequence[Row]] = {}
        """The facts by key among which no duplicates were looked for."""

    def apply(self, key: Hashable, rows: Sequence[Row]) -> Iterator[KeyedRows]:
        """Adds all facts of a key at an instant."""
        parts = list(group_by_object(rows, self.tuning)) if key in self.grouped_predicates else [rows]
        if parts[0] is rows and not self.deduplicates and key not in self.set.facts and key not in self.undeduplicated:
            self.undeduplicated[key] = rows
            yield KeyedRows(key, rows, repeats=True)
            return
        if key in self.undeduplicated:
            self.set.fresh(key, self.undeduplicated.pop(key))
        for part in parts:
            yield KeyedRows(key, self.set.fresh(key, part))

    def size(self) -> int:
        return self.set.size() + sum(map(len, self.undeduplicated.values()))


class PassThrough:
    """A set of rows that come only once, so that no duplicates need to be found."""

    def __init__(self) -> None:
        self.parts: list[Rows] = []

    def apply(self, port: int, parts: Iterable[KeyedRows]) -> Iterator[KeyedRows]:
        for part in parts:
            self.parts.append(part.rows)
            yield part

    def export_state(self) -> Iterator[tuple[int, Sequence[Row]]]:
        yield from ((0, rows_of(rows)) for rows in self.parts)

    def size(self) -> int:
        return sum(map(len, self.parts))


class SnapshotClosure:
    """The transitive closure of pairs."""

    def __init__(self, tuning: Tuning = DEFAULT_TUNING) -> None:
        self.pairs = Pairs(tuning=tuning)
        self.steps: list[Row] = []

    def apply(self, port: int, parts: Iterable[KeyedRows]) -> Iterator[KeyedRows]:
        for part in parts:
            rows = rows_of(part.rows)
            self.steps += rows
            yield KeyedRows(None, self.pairs.add_lasting(cast(Sequence[tuple[str, str]], rows)))

    def export_state(self) -> Iterator[tuple[int, Sequence[Row]]]:
        yield 0, self.steps

    def size(self) -> int:
        return self.pairs.size()


class SnapshotOutput:
    """The facts of the answer.

    Args:
        op: The output operator.
        once: The inputs that bring no fact twice.
    """

    def __init__(self, op: AppendOnlyOutput, once: Collection[int]) -> None:
        self.remembers = op.remembers
        self.name = op.name
        self.unique_ports = once
        self.undeduplicated: dict[Hashable, tuple[int, list[Rows]]] = {}
        """The facts by key, where one input that brings no fact twice has brought all facts of the key."""
        self.set = SnapshotDistinct()
        """The other facts."""
        self.pending: list[tuple[int, KeyedRows]] = []

    def apply(self, port: int, parts: Iterable[KeyedRows]) -> Iterator[KeyedRows]:
        self.pending += zip(repeat(port), parts)
        return iter(())

    def flush(self, time: int) -> list[Output]:
        pending, self.pending = self.pending, []
        outputs: list[Output] = []
        for port, (key, rows, maker, _) in pending:
            fresh, rule = self._fresh(port, key, rows), self.name or maker
            if not isinstance(key, str) or key[0] != "<" or '"' in map(_FIRST, map(_FIRST, fresh)):
                outputs += [new_tuple(Output, (row_fact(row), time, rule, "")) for row in fresh if is_rdf(row)]
            else:  # nearly all rows, without Python code for each
                triples = map(new_tuple, repeat(Triple), fresh)
                outputs += map(new_tuple, repeat(Output), zip(triples, repeat(time), repeat(rule), repeat("")))
        if not self.remembers:
            self.undeduplicated.clear()
            self.set.facts.clear()
        return outputs

    def _fresh(self, port: int, key: Hashable, rows: Rows) -> Rows:
        """Returns the facts that are new."""
        if key not in self.set.facts:
            only, before = self.undeduplicated.setdefault(key, (port, []))
            if only == port and port in self.unique_ports:
                before.append(rows)
                return rows
            for part in before:
                self.set.fresh(key, part)
            del self.undeduplicated[key]
        return self.set.fresh(key, rows)

    def export_state(self) -> Iterator[tuple[int, Sequence[Row]]]:
        alone = chain.from_iterable(rows for _, parts in self.undeduplicated.values() for rows in parts)
        for rows in (alone, *(rows for _, rows in self.set.export_state())):
            yield 0, [(*row, "") for row in rows]

    def size(self) -> int:
        return self.set.size() + sum(len(rows) for _, parts in self.undeduplicated.values() for rows in parts)
