"""Multi-way join: several inputs on the same key, with one record per key that has a place for each input.

A row is looked up once, whatever the number of inputs. The join outputs rows only when the record has a row of each
input. It computes no intermediate results, unlike a tree of binary joins (a multi-way symmetric hash join: Viglas,
Naughton and Burger, "Maximizing the Output Rate of Multi-Way Join Queries over Streaming Information Sources", VLDB
2003).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from itertools import chain
from typing import Any

from squall.builders.runtime.operators.codegen import column_names, compile_source, delta_source
from squall.builders.runtime.operators.delta_index import (
    Bucket,
    Merging,
    StoresInputs,
    add_further,
    cells_outside,
    merge_rows,
)
from squall.builders.runtime.operators.state import expired_keys
from squall.builders.runtime.tuning import DEFAULT_TUNING, Tuning
from squall.builders.runtime.zset import Delta, with_unit_weights
from squall.plan.operators import MultiwayJoin

Record = list[Any]
"""The first delta of each input with the record's key (None: there is none), and the latest end of all deltas."""


class MultiwayJoinOperator(StoresInputs):
    """Joins rows of all inputs with equal keys, over the instants at which all are valid.

    The inputs are append-only, and all weights are 1.

    Args:
        op: The join.
        widths: The number of columns of each input.
        merging: Which deltas of one row are stored as one.
        tuning: The tuning values of the runtime.
    """

    kind = "multiway-join"

    def __init__(
        self,
        op: MultiwayJoin,
        widths: Sequence[int],
        merging: Merging = Merging.ADJOINING,
        tuning: Tuning = DEFAULT_TUNING,
    ) -> None:
        super().__init__()
        self.tuning = tuning
        self.shape = tuple(widths), op.on, op.keep
        """The number of columns and the key columns of each input, and the output columns."""
        self.merging = merging
        ports = range(len(widths))
        self.cells_of = [cells_outside(on, width) for on, width in zip(op.on, widths, strict=True)]
        self.records: dict[Hashable, Record] = {}
        self.more: tuple[dict[Hashable, Bucket], ...] = tuple({} for _ in ports)
        """Further deltas, for each input, of the keys that have several."""
        self.further = 0
        """The number of further deltas."""
        self.sweep_rows = tuning.min_rows_to_sweep
        """With so many records and further deltas, the oldest ones are swept."""
        self.full_sweep_rows = 2 * tuning.min_rows_to_sweep
        """With so many records and further deltas, all of them are swept."""
        self.probes = [_probe(op, widths, port) for port in ports]
        self.products = [_product(op, widths, port) for port in ports]

    def apply(self, port: int, deltas: Sequence[Delta]) -> list[Delta]:
        if self.log is not None:
            self.note(port, deltas)
        joined: list[Delta] = self.probes[port](deltas, self)
        return joined

    def add(self, port: int, key: Hashable, delta: Delta) -> Delta | None:
        """Stores a delta of an input that has deltas with the key, and returns the part of it that is new, or None."""
        record, cells_of = self.records[key], self.cells_of[port]
        merged = merge_rows(record[port], delta, self.merging, cells_of)
        if merged is not None:
            record[port], part = merged
            return part
        part, growth = add_further(self.more[port], key, delta, self.merging, cells_of)
        self.further += growth
        return part

    def product(self, port: int, key: Hashable, delta: Delta) -> list[Delta]:
        """Joins a delta with all deltas of the other inputs that have the key."""
        record, start = self.records[key], delta[-3]
        sides = (
            [record[place], *(more[key].valid_after(start) if key in more else ())]
            for place, more in enumerate(self.more)
        )
        joined: list[Delta] = self.products[port](
            *([delta] if place == port else side for place, side in enumerate(sides))
        )
        return joined

    @property
    def layout(self) -> str:
        return f"{self.kind} {self.shape}"

    def stored(self, port: int) -> Iterator[Delta]:
        yield from (record[port] for record in self.records.values() if record[port] is not None)
        for bucket in self.more[port].values():
            yield from bucket.deltas

    def restore(self, slot: int, deltas: Sequence[Delta]) -> None:
        self.apply(slot, with_unit_weights(deltas))

    def expire(self, now: int) -> None:
        # Like a sweep of a `DeltaIndex`: the records that came first mostly end first.
        if self._stored() < self.sweep_rows:
            return
        records = self.records
        if self._stored() < self.full_sweep_rows:
            self._drop(expired_keys(records, len(self.probes), now, self.tuning.max_live_rows_scanned))
        if self._stored() >= self.full_sweep_rows:
            self._sweep_all(now)
            self.full_sweep_rows = 2 * max(self.tuning.min_rows_to_sweep, self._stored())
        self.sweep_rows = max(self.tuning.min_rows_to_sweep, self._stored() + self._stored() // 16)

    def _stored(self) -> int:
        """Returns the number of records and further deltas.

        The first deltas of a record are not counted: a sweep drops most records without a look at these, which are in
        no cache any longer.
        """
        return len(self.records) + self.further

    def _drop(self, keys: Sequence[Hashable]) -> None:
        """Drops records."""
        for key in keys:
            del self.records[key]
        for more in self.more:
            if more:
                self.further -= sum(len(more.pop(key, ())) for key in keys)

    def _sweep_all(self, now: int) -> None:
        """Drops all expired deltas, also those of records that still have live ones."""
        self._drop([key for key, record in self.records.items() if record[-1] <= now])
        for key, record in self.records.items():
            self._drop_expired(key, record, now)
        self.further = sum(len(bucket) for more in self.more for bucket in more.values())

    def _drop_expired(self, key: Hashable, record: Record, now: int) -> None:
        for place, more in enumerate(self.more):
            bucket = more.get(key)
            if bucket is not None:
                bucket.drop_expired(now, self.cells_of[place])
            if record[place] is not None and record[place][-2] <= now:
                record[place] = bucket.pop_first(self.cells_of[place]) if bucket else None
            if bucket is not None and not bucket:
                del more[key]

    def size(self) -> int:
        first = sum(len(record) - 1 - record.count(None) for record in self.records.values())
        return first + self.further


def _columns(widths: Sequence[int]) -> list[list[str]]:
    """Returns the names of the columns of each input: ``c0_0``, ``c0_1``, ``c1_0``, ..."""
    return [column_names(f"c{port}_", width) for port, width in enumerate(widths)]


def _output_columns(op: MultiwayJoin, columns: Sequence[Sequence[str]]) -> list[str]:
    names = [*chain.from_iterable(columns)]
    return [names[place] for place in op.keep]


def _probe(op: MultiwayJoin, widths: Sequence[int], port: int) -> Callable[..., Any]:
    """Returns the function that stores the deltas of an input and joins them with the stored deltas of the others."""
    columns = _columns(widths)
    key = [columns[port][column] for column in op.on[port]]
    count = len(widths)
    other_inputs = [place for place in range(count) if place != port]
    empty = ["x" if place == port else "None" for place in range(count)]
    all_present = " and ".join(f"r[{place}] is not None" for place in other_inputs)
    row = delta_source(columns[port], weight="_")
    several = " or ".join(f"more[{place}] and k in more[{place}]" for place in other_inputs)
    unpacking = "".join(f"     {delta_source(columns[place], 't', 'f', '_')} = r[{place}]\n"
                    "     if t > s: s = t\n     if f < e: e = f\n" for place in other_inputs)  # fmt: skip
    source = f"""\
def run(deltas, join):
 pairs = []
 records, more = join.records, join.more
 get = records.get
 for x in deltas:
  {row} = x
  k = {key[0] if len(key) == 1 else f"({', '.join(key)})"}
  r = get(k)
  if r is None:
   records[k] = [{", ".join(empty)}, e]
  else:
   if r[{port}] is None:
    r[{port}] = x
   else:
    x = join.add({port}, k, x)
    if x is None:
     continue
    {row} = x
   if e > r[{count}]:
    r[{count}] = e
   if {all_present}:
    if {several}:
     pairs += join.product({port}, k, x)
    else:
{unpacking}     if s < e:
      pairs.append({delta_source(_output_columns(op, columns), weight="1")})
 return pairs
"""
    return compile_source(source, {})


def _product(op: MultiwayJoin, widths: Sequence[int], port: int) -> Callable[..., Any]:
    """Returns the function that joins deltas of all inputs with one key. The validity of one input is tested first."""
    columns = _columns(widths)
    order = [port, *(place for place in range(len(widths)) if place != port)]
    loops = [f"for {delta_source(columns[port], 's0', 'e0', '_')} in l{port}"]
    for number, place in enumerate(order[1:], 1):
        before = number - 1
        loops.append(
            f"for {delta_source(columns[place], 's', 'e', '_')} in l{place}"
            f" if (s{number} := s if s > s{before} else s{before}) < (e{number} := e if e < e{before} else e{before})"
        )
    output_code = delta_source(_output_columns(op, columns), f"s{len(order) - 1}", f"e{len(order) - 1}", "1")
    arguments = ", ".join(f"l{place}" for place in range(len(order)))
    return compile_source(f"def run({arguments}):\n return [{output_code}\n  " + "\n  ".join(loops) + "]", {})
