"""A soak run: many events through a window of fixed size, and what memory that takes as time goes on.

    python -m tests.bench.soak --events 10000000 --plot docs/benchmarks/soak.svg

It fails (exit code 1) where memory grows after the window has filled, or where the state of a live fact is too large.
"""

from __future__ import annotations

import argparse
import gc
import os
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

import squall
from squall.rdf import ALWAYS, Event, Term, Triple
from tests.bench import data
from tests.bench.works import OBSERVATION, WORKS

LARGEST = 600
"""The most bytes of state that a live fact may take."""
GROWTH = 1.05
"""The most memory in the last quarter of a run, as a multiple of that in the second quarter."""
BATCH = 125
"""The number of events that come at a time."""

_PAGE = os.sysconf("SC_PAGE_SIZE")


def in_use() -> int:
    """Bytes of this process that are in memory."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * _PAGE


@dataclass
class Soak:
    """The memory of a run. window: the events that are live when it is full. samples: (events so far, bytes in use,
    bytes per live fact, by what is in use more than before the first event)."""

    window: int
    before: int = field(default_factory=in_use)
    samples: list[tuple[int, int, float]] = field(default_factory=list)

    def look(self, events: int) -> None:
        now = in_use()
        self.samples.append((events, now, (now - self.before) / (min(events, self.window) * OBSERVATION)))

    def quarter(self, number: int) -> int:
        """Returns the most bytes in use in a quarter of the samples, counted from 0."""
        size = len(self.samples) / 4
        return max(sample[1] for sample in self.samples[int(number * size) : max(int((number + 1) * size), 1)])

    @property
    def growth(self) -> float:
        """By what factor the memory of the last quarter is larger than that of the second."""
        return self.quarter(3) / self.quarter(1)

    @property
    def state(self) -> float:
        """Bytes per live fact, at the most, once the window was full."""
        return max((sample[2] for sample in self.samples if sample[0] >= self.window), default=0.0)


def events() -> Iterator[Event]:
    """Observations without end, one at a time; no string of one is that of another, as with data that are read."""
    for number, lines in enumerate(data.observations()):
        yield Event(data.START + number * data.STEP, tuple(map(fact, lines)))


def fact(line: str) -> Triple:
    subject, predicate, words = line.split(" ", 2)
    return Triple(Term(subject), Term(predicate), Term(words[:-2]))


def soak(count: int, window: int, work: str, run: str, looks: int = 200) -> Soak:
    """Runs `count` events through a window of so many of them, looking at memory `looks` times."""
    planner, builder = run.split(":")
    text = "".join(rule.jena() for rule in WORKS[work].rules)
    system = squall.compile(text, lexer="jena", window=f"RANGE {window * data.STEP}ms")
    job = squall.build(squall.plan(system, planner), builder)
    static = [Event(ALWAYS, (fact(line),)) for line in WORKS[work].static()]
    gc.collect()
    result = Soak(window)
    for _ in job.run(batches(count, result, max(1, count // looks)), static):
        pass
    return result


def batches(count: int, found: Soak, interval: int) -> Iterator[Sequence[Event]]:
    """Yields the events in batches. When a batch is requested, the one before it has been processed."""
    coming = events()
    expected = interval
    for sent in range(0, count, BATCH):
        yield list(islice(coming, min(BATCH, count - sent)))
        if sent + BATCH >= expected:
            found.look(min(count, sent + BATCH))
            expected += interval


def main(given: Iterable[str] | None = None) -> int:
    parser = argparse.ArgumentParser("python -m tests.bench.soak", description="Memory over time, window fixed.")
    parser.add_argument("--events", type=int, default=200_000, help="observations of eight triples (200,000)")
    parser.add_argument("--window", type=int, default=12_500, help="observations that are live (12,500)")
    parser.add_argument("--work", choices=["q3", "q4", "q9"], default="q9", help="the rules (q9)")
    parser.add_argument("--run", default="rete:iterator", metavar="PLANNER:BUILDER")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="write an SVG there")
    arguments = parser.parse_args(None if given is None else list(given))
    began = time.perf_counter()
    result = soak(arguments.events, arguments.window, arguments.work, arguments.run)
    seconds = time.perf_counter() - began
    print(f"{arguments.events:,} events in {seconds:,.0f} s, {arguments.window * OBSERVATION:,} live facts")
    print(f"{result.samples[-1][1] / 1e6:,.0f} MB in use, {result.before / 1e6:,.0f} MB of it before the first event")
    print(f"{result.state:,.0f} bytes per live fact; last quarter / second quarter: {result.growth:.3f}")
    if arguments.plot:
        from tests.bench import plots  # matplotlib is an extra

        plots.soak(result.samples, arguments.plot)
    return 0 if result.growth <= GROWTH and result.state <= LARGEST else 1


if __name__ == "__main__":
    sys.exit(main())
