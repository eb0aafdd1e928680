"""Joins of several inputs on the same columns: a record for each key, with a place for the rows of each input.

A row is looked up once, whatever the number of inputs, and something is made only when the record has a row of each:
no results of some of the inputs are made and kept on the way, as a tree of joins of two would (a multi-way symmetric
hash join: Viglas, Naughton and Burger, "Maximizing the Output Rate of Multi-Way Join Queries over Streaming Information
Sources", VLDB 2003).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any, NamedTuple

from squall.builders.runtime.operators.codegen import column_names, compile_source, delta_source
from squall.builders.runtime.operators.state import MIN_ROWS_TO_SWEEP, Stateful, expired_keys
from squall.builders.runtime.zset import Delta, with_unit_weights

Record = list[Any]
"""For each input the first entry with the record's key (None: there is none), and the latest end of all entries."""


class JoinShape(NamedTuple):
    """What is joined. widths: the columns of each input; on: those of each that have to agree, as many of each; keep:
    columns of the rows of all inputs behind one another."""

    widths: tuple[int, ...]
    on: tuple[tuple[int, ...], ...]
    keep: tuple[int, ...]


class MultiwayJoinOperator(Stateful):
    """Rows of all inputs that agree, over the instants at which all of them are valid. Nothing is ever taken back, and
    all weights are 1."""

    def __init__(self, shape: JoinShape) -> None:
        super().__init__()
        self.shape = shape
        ports = range(len(shape.widths))
        self.records: dict[Hashable, Record] = {}
        self.more: tuple[dict[Hashable, list[Delta]], ...] = tuple({} for _ in ports)
        """For each input further entries of the keys that have several."""
        self.further = 0
        """How many of those there are."""
        self.sweep_rows = MIN_ROWS_TO_SWEEP
        """So many records and further entries make a sweep worth while,"""
        self.full_sweep_rows = 2 * MIN_ROWS_TO_SWEEP
        """and so many one in which all is looked at."""
        self.probes = [_probe(shape, port) for port in ports]
        self.products = [_product(shape, port) for port in ports]

    def apply(self, port: int, entries: Sequence[Delta]) -> list[Delta]:
        if self.log is not None:
            self.note(port, entries)
        joined: list[Delta] = self.probes[port](entries, self)
        return joined

    def product(self, port: int, key: Hashable, delta: Delta) -> list[Delta]:
        """What an entry makes with all those of the other inputs."""
        record = self.records[key]
        sides = ([record[place], *more.get(key, ())] for place, more in enumerate(self.more))
        joined: list[Delta] = self.products[port](
            *([delta] if place == port else side for place, side in enumerate(sides))
        )
        return joined

    def restore(self, slot: int, entries: Sequence[Delta]) -> None:
        self.apply(slot, with_unit_weights(entries))

    def expire(self, now: int) -> None:
        # As an `Index` is swept: mostly the records that came first are the first to end.
        if self._stored() < self.sweep_rows:
            return
        records = self.records
        if self._stored() < self.full_sweep_rows:
            self._drop(expired_keys(records, len(self.shape.widths), now))
        if self._stored() >= self.full_sweep_rows:
            self._sweep_all(now)
            self.full_sweep_rows = 2 * max(MIN_ROWS_TO_SWEEP, self._stored())
        self.sweep_rows = max(MIN_ROWS_TO_SWEEP, self._stored() + self._stored() // 16)

    def _stored(self) -> int:
        """How many records and further entries there are: what a record has first of each input is not counted, since
        most records that end are not looked into otherwise, and are in no cache any longer."""
        return len(self.records) + self.further

    def _drop(self, keys: Sequence[Hashable]) -> None:
        """Forgets records."""
        for key in keys:
            del self.records[key]
        for more in self.more:
            if more:
                self.further -= sum(len(more.pop(key, ())) for key in keys)

    def _sweep_all(self, now: int) -> None:
        """Drops all that has ended, also of records that have something that is still valid."""
        self._drop([key for key, record in self.records.items() if record[-1] <= now])
        for key, record in self.records.items():
            self._drop_expired(key, record, now)
        self.further = sum(len(entries) for more in self.more for entries in more.values())

    def _drop_expired(self, key: Hashable, record: Record, now: int) -> None:
        for place, more in enumerate(self.more):
            if record[place] is not None:
                left = [delta for delta in (record[place], *more.pop(key, ())) if delta[-2] > now]
                record[place] = left[0] if left else None
                if len(left) > 1:
                    more[key] = left[1:]

    def size(self) -> int:
        first = sum(len(record) - 1 - record.count(None) for record in self.records.values())
        return first + self.further


def _columns(shape: JoinShape) -> list[list[str]]:
    """The names of the columns of each input: ``a0``, ``a1``, ``b0``, ..."""
    return [column_names(f"c{port}_", width) for port, width in enumerate(shape.widths)]


def _output_columns(shape: JoinShape) -> list[str]:
    columns = [name for names in _columns(shape) for name in names]
    return [columns[place] for place in shape.keep]


def _probe(shape: JoinShape, port: int) -> Callable[..., Any]:
    """The function that puts entries of an input into their records, and gives what they make with what is there."""
    columns = _columns(shape)
    key = [columns[port][column] for column in shape.on[port]]
    count = len(shape.widths)
    other_inputs = [place for place in range(count) if place != port]
    empty = ["x" if place == port else "None" for place in range(count)]
    all_present = " and ".join(f"r[{place}] is not None" for place in other_inputs)
    several = " or ".join(f"more[{place}] and k in more[{place}]" for place in other_inputs)
    unpacking = "".join(f"     {delta_source(columns[place], 't', 'f', '_')} = r[{place}]\n"
                    "     if t > s: s = t\n     if f < e: e = f\n" for place in other_inputs)  # fmt: skip
    source = f"""\
def run(entries, join):
 pairs = []
 records, more = join.records, join.more
 get, mine = records.get, more[{port}]
 for x in entries:
  {delta_source(columns[port], weight="_")} = x
  k = {key[0] if len(key) == 1 else f"({', '.join(key)})"}
  r = get(k)
  if r is None:
   records[k] = [{", ".join(empty)}, e]
  else:
   if r[{port}] is None:
    r[{port}] = x
   else:
    join.further += 1
    if k in mine:
     mine[k].append(x)
    else:
     mine[k] = [x]
   if e > r[{count}]:
    r[{count}] = e
   if {all_present}:
    if {several}:
     pairs += join.product({port}, k, x)
    else:
{unpacking}     if s < e:
      pairs.append({delta_source(_output_columns(shape), weight="1")})
 return pairs
"""
    return compile_source(source, {})


def _product(shape: JoinShape, port: int) -> Callable[..., Any]:
    """The function that joins entries of all inputs, which are known to agree: those of one come first."""
    columns = _columns(shape)
    order = [port, *(place for place in range(len(shape.widths)) if place != port)]
    loops = [f"for {delta_source(columns[port], 's0', 'e0', '_')} in l{port}"]
    for number, place in enumerate(order[1:], 1):
        before = number - 1
        loops.append(
            f"for {delta_source(columns[place], 's', 'e', '_')} in l{place}"
            f" if (s{number} := s if s > s{before} else s{before}) < (e{number} := e if e < e{before} else e{before})"
        )
    output_code = delta_source(_output_columns(shape), f"s{len(order) - 1}", f"e{len(order) - 1}", "1")
    arguments = ", ".join(f"l{place}" for place in range(len(order)))
    return compile_source(f"def run({arguments}):\n return [{output_code}\n  " + "\n  ".join(loops) + "]", {})
