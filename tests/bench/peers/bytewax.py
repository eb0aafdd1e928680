"""bytewax: a dataflow written by hand. Each pattern is a branch; each join is an operator with state of its own,
partitioned by key, with an index for each side, out of which it takes what has left the window."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable

import bytewax.operators as op
from bytewax.dataflow import Dataflow
from bytewax.operators import KeyedStream, StatefulBatchLogic, Stream
from bytewax.testing import TestingSink, TestingSource, run_main

from tests.bench.works import Answer, Evaluate, Rule, Statement, Task

PARTITIONS = ("0", "1", "2", "3")
NEVER = 2**62

Row = tuple[str, ...]


Item = tuple[int, int, Row]
"""The numbers in the stream of the oldest and the latest triple of a row, and the row."""
Sided = tuple[int, str, Item]
"""The side of a join that an item is on (0: left, 1: right), and its join key."""


def prepare(task: Task) -> Evaluate:
    (rule,) = task.work.rules
    static: list[Item] = [(NEVER, 0, triple) for triple in task.static()]
    stream: list[Item] = [(number, number, triple) for number, triple in enumerate(task.triples())]

    def evaluate() -> Answer:
        statements: list[Statement] = []
        flow = Dataflow("bench")
        source = op.input("stream", flow, TestingSource(static + stream, task.slide))
        op.output("out", heads(rule, source, task.work.window), TestingSink(statements))
        run_main(flow)
        return Answer(f"{' '.join(statement)} ." for statement in statements)

    return evaluate


def heads(rule: Rule, source: Stream[Item], window: int) -> Stream[Statement]:
    """Returns the dataflow: it joins the patterns from the left, and then makes the facts."""
    first, *other_items = rule.body
    names = variables(first)
    rows = op.flat_map_batch("first", source, matcher(first))
    for number, pattern in enumerate(other_items):
        (on,) = set(names) & set(variables(pattern))
        left = op.flat_map_batch(f"left{number}", rows, keyed(0, names.index(on)))
        matched = op.flat_map_batch(f"match{number}", source, matcher(pattern))
        right = op.flat_map_batch(f"right{number}", matched, keyed(1, variables(pattern).index(on)))
        both: KeyedStream[Sided] = op.merge(f"both{number}", left, right)
        keep = [i for i, name in enumerate(variables(pattern)) if name != on]
        result = op.stateful_batch(f"join{number}", both, lambda _, keep=keep: Join(window, keep))
        rows = op.map(f"rows{number}", result, lambda pair: pair[1])
        names += [variables(pattern)[i] for i in keep]
    return op.flat_map_batch("heads", rows, maker(rule.head, names))


def variables(pattern: Statement) -> list[str]:
    return [slot for slot in pattern if slot[0] == "?"]


def matcher(pattern: Statement) -> Callable[[list[Item]], Iterable[Item]]:
    """Returns a function that yields the rows of matching triples. All our patterns have a variable subject and a
    constant predicate."""
    _, predicate, object = pattern
    if object[0] == "?":
        return lambda batch: [(a, b, (t[0], t[2])) for a, b, t in batch if t[1] == predicate]
    return lambda batch: [(a, b, (t[0],)) for a, b, t in batch if t[1] == predicate and t[2] == object]


def keyed(side: int, column: int) -> Callable[[list[Item]], Iterable[tuple[str, Sided]]]:
    count = len(PARTITIONS)

    def key(item: Item) -> tuple[str, Sided]:
        value = item[2][column]
        return PARTITIONS[hash(value) % count], (side, value, item)

    return lambda batch: map(key, batch)


def maker(head: tuple[Statement, ...], names: list[str]) -> Callable[[list[Item]], Iterable[Statement]]:
    """Returns a function that makes facts of rows. All our heads are a variable, a constant and a variable."""
    columns = [(names.index(subject), predicate, names.index(object)) for subject, predicate, object in head]
    return lambda batch: [(row[s], p, row[o]) for _, _, row in batch for s, p, o in columns]


class Join(StatefulBatchLogic):  # type: ignore[misc]
    """One partition of a join, which stores the rows of both sides."""

    def __init__(self, window: int, keep: list[int]) -> None:
        self.window = window
        self.keep = keep
        self.now = 0
        self.rows: tuple[dict[str, list[Item]], dict[str, list[Item]]] = ({}, {})
        self.ages: tuple[deque[tuple[int, str]], deque[tuple[int, str]]] = (deque(), deque())

    def on_batch(self, values: list[Sided]) -> tuple[Iterable[Item], bool]:
        items: list[Item] = []
        for side, key, item in values:
            self.rows[side].setdefault(key, []).append(item)
            self.ages[side].append((item[0], key))
            self.now = max(self.now, item[1])
            for other in self.rows[1 - side].get(key, ()):
                oldest, latest = min(item[0], other[0]), max(item[1], other[1])
                if latest - oldest < self.window:
                    left, right = (item[2], other[2]) if side == 0 else (other[2], item[2])
                    items.append((oldest, latest, left + tuple([right[i] for i in self.keep])))
        self.expire(0)
        self.expire(1)
        return items, self.RETAIN

    def expire(self, side: int) -> None:
        rows, ages = self.rows[side], self.ages[side]
        while ages and self.now - ages[0][0] >= self.window:
            _, key = ages.popleft()
            del rows[key][0]
            if not rows[key]:
                del rows[key]

    def snapshot(self) -> None:
        """Returns no state, because the dataflow is not recovered."""
