"""bytewax: a sequence of three steps as an automaton written by hand, in an operator whose state is partitioned by
key."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import bytewax.operators as op
from bytewax.dataflow import Dataflow
from bytewax.operators import StatefulBatchLogic
from bytewax.testing import TestingSink, TestingSource, run_main

from squall.rdf import Triple

PARTITIONS = ("0", "1", "2", "3")
BATCH = 4096

Timed = tuple[int, Triple]
"""A time (integer ms) and what arrives then."""
Match = tuple[str, ...]
"""The subject, and the object of each step."""
Open = tuple[int, tuple[str, ...]]
"""When a match began (integer ms), and the objects of its steps so far."""
SWEEP = 10_000
"""The least number of keys with open matches after which expired ones are looked for."""


def matches(stream: Sequence[Timed], within: int) -> list[Match]:
    """Runs the automaton.

    Args:
        stream: What arrives, in the order of time. The predicates of the steps end in a, b, and c.
        within: The greatest length of a match (integer ms).
    """
    results: list[Match] = []
    flow = Dataflow("sequence")
    source = op.input("stream", flow, TestingSource(stream, BATCH))
    keyed = op.map("key", source, lambda item: (PARTITIONS[hash(item[1][0]) % len(PARTITIONS)], item))
    pairs = op.stateful_batch("sequence", keyed, lambda _: Automaton(within))
    op.output("out", op.map("matches", pairs, lambda pair: pair[1]), TestingSink(results))
    run_main(flow)
    return results


class Automaton(StatefulBatchLogic):  # type: ignore[misc]
    """The matches of some subjects: each step is the next one of its kind."""

    def __init__(self, within: int) -> None:
        self.within = within
        self.open: tuple[dict[str, list[Open]], dict[str, list[Open]]] = ({}, {})
        """The matches that wait for the second and the third step, by subject."""
        self.sweep_at = SWEEP

    def on_batch(self, values: list[Timed]) -> tuple[Iterable[Match], bool]:
        first, second = self.open
        results: list[Match] = []
        for time, (subject, predicate, object) in values:
            step = predicate[-2]
            if step == "a":
                first.setdefault(subject, []).append((time, (object,)))
            elif step == "b":
                if waiting := first.pop(subject, None):
                    advanced = [(begin, (*steps, object)) for begin, steps in waiting if time - begin <= self.within]
                    if advanced:
                        second.setdefault(subject, []).extend(advanced)
            elif waiting := second.pop(subject, None):
                results += [(subject, *steps, object) for begin, steps in waiting if time - begin <= self.within]
        if values:
            self._expire(values[-1][0])
        return results, StatefulBatchLogic.RETAIN

    def _expire(self, now: int) -> None:
        if len(self.open[0]) + len(self.open[1]) < self.sweep_at:
            return
        for waiting in self.open:
            for subject in [subject for subject, matches in waiting.items() if now - matches[-1][0] > self.within]:
                del waiting[subject]
        self.sweep_at = max(SWEEP, 2 * (len(self.open[0]) + len(self.open[1])))

    def snapshot(self) -> None:
        return None
