"""Every program at hand, planned by `rete` and by `greedy`, over random data: no plan of `rete` may take much more.

    python -m tests.bench.sweep [FILE or FOLDER ...] [--conformance] [--triples 3000] [--json FILE]

Without arguments: the rule sets, and the programs of `tests/cases`. A folder stands for all programs in it, and
`--conformance` for all that the conformance suites plan (`python -m tests.conformance`). The data of a program have its
predicates, its classes and other constants, and some of its subjects and objects are frequent. A first run of each plan
counts the rows that all nodes output: these do not depend on the machine, and they also compare plans that take too
little time to be measured. Plans with equally many rows are taken as the same. The others run again, in turns, each in
a process of its own; of the pairs in which `rete` takes more than `BOUND` times as much as `greedy`, both are run
again, and medians are compared. Each such program is named on standard error at once; Ctrl-C ends the sweep with the
table of what has been compared.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import sys
import traceback
import warnings
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from itertools import chain, islice
from pathlib import Path
from random import Random
from statistics import median
from typing import Any, NamedTuple
from unittest.mock import patch

from rich.console import Console
from rich.table import Table

import squall
from squall import plugins, rulesets
from squall.builders.local.job import IteratorJob
from squall.contracts import Options
from squall.errors import SquallError
from squall.model import GRAPH, AtomPattern, Pattern, Slot, System, rules
from squall.model.walk import walk
from squall.process.recursion import deep_recursion
from squall.rdf import XSD, Event, Term, Triple, iri, is_iri, literal
from squall.testing import PREFIXES
from squall.testing.cases import parse
from tests import conformance

BOUND = 1.2
"""The largest ratio of CPU time, and of memory, of the plan of `rete` to that of `greedy`."""
MIN_SECONDS, MIN_BYTES, MIN_ROWS = 0.2, 20_000_000, 30_000
"""Of plans that take less than this both ways, the ratio says nothing."""
MAX_SECONDS, MAX_MEMORY = 60, 6_000_000_000
REPETITIONS = 3
PLANNERS = ("greedy", "rete")
CASES = Path(__file__).parent.parent / "cases"


class Program(NamedTuple):
    """A program: its name, its language, and its path, or its text."""

    name: str
    language: str
    text: str | Path


class Cost(NamedTuple):
    """What a run takes: CPU time in seconds, memory in bytes, how many outputs it has, and how many rows its nodes
    output. A run that takes too much has infinite costs."""

    seconds: float
    memory: float
    outputs: int
    rows: float = 0


TOO_MUCH = Cost(float("inf"), float("inf"), -1, float("inf"))


@dataclass(frozen=True)
class Comparison:
    """The costs of a program with both planners."""

    program: str
    greedy: Cost
    rete: Cost

    @property
    def ratios(self) -> tuple[float, float, float]:
        """The ratios of CPU time, of memory and of rows, of `rete` to `greedy`; 1 where neither takes much."""
        return (
            _ratio(self.rete.seconds, self.greedy.seconds, MIN_SECONDS),
            _ratio(self.rete.memory, self.greedy.memory, MIN_BYTES),
            _ratio(self.rete.rows, self.greedy.rows, MIN_ROWS),
        )

    @property
    def is_same(self) -> bool:
        """Whether both runs end, and have equally many outputs, as far as that can be said."""
        return TOO_MUCH in (self.rete, self.greedy) or self.rete.outputs == self.greedy.outputs


def _ratio(first: float, second: float, least: float) -> float:
    return 1.0 if first == second or max(first, second) < least else first / max(second, least / 10)


def programs(paths: Sequence[Path]) -> Iterator[Program]:
    """Yields the programs of files and folders; without any, those of the project."""
    if not paths:
        for name in rulesets.names():
            yield Program(f"rule set {name}", "jena", rulesets.path(name))
        for file in sorted(CASES.glob("*.case")):
            for case in parse(file.read_text(encoding="utf-8"), file.stem):
                for language, text in case.programs:
                    yield Program(f"{file.stem}: {case.title} ({language})", language, text)
    for path in paths:
        for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
            try:
                yield Program(str(file), plugins.by_extension(file), file)
            except SquallError:
                continue


def compiled(program: Program) -> System | None:
    """Returns the system of a program, or None if it is refused or needs others."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            system = squall.compile(program.text, lexer=program.language, prefixes=PREFIXES)
    except (SquallError, RecursionError):
        return None
    return system if _can_plan(system) else None


def _can_plan(system: System) -> bool:
    try:
        for planner in PLANNERS:
            squall.plan(system, planner)
    except (SquallError, RecursionError):
        return False
    return True


class _PlanningEnds(BaseException):
    """Ends a case of a suite when it plans a system."""


def conformance_systems(corpus: Path, every: int = 1) -> Iterator[tuple[str, System]]:
    """Yields what the cases of the conformance suites plan first, with the names of the cases.

    Args:
        corpus: The folder of the suites.
        every: Takes only each n-th case of a suite, as a sample.
    """
    systems: list[System] = []

    def plan(system: System, *arguments: Any, **options: Any) -> None:
        systems.append(system)
        raise _PlanningEnds

    for suite in conformance.SUITES:
        place = conformance.place_of(suite, corpus)
        for case in islice(conformance.cases_of(suite, corpus), 0, None, every) if place.exists() else ():
            with patch.object(squall, "plan", plan), suppress(Exception, _PlanningEnds):
                case.run(conformance.Stages())
            while systems:
                if _can_plan(system := systems.pop()):
                    yield f"{suite} {case.name}", system


def random_events(system: System, triples: int) -> list[Event]:
    """Returns random triples with the predicates, classes and other constants of a system, in the streams that it
    names."""
    draw = Random(triples)
    objects: defaultdict[Slot, set[Term]] = defaultdict(set)
    subjects: set[Term] = set()
    streams = {""}
    for part in (part for rule in rules(system) for part in walk(rule)):
        if isinstance(part, System):
            streams.update(source.iri for source in part.sources)
        if slots := _triple(part):
            predicate = slots[1] if isinstance(slots[1], str) else iri("urn:p")
            objects[predicate].update(slot for slot in slots[2:] if isinstance(slot, str))
            subjects.update(slot for slot in slots[:1] if isinstance(slot, str) and is_iri(slot))
    predicates = sorted(objects, key=str) or [iri("urn:p")]
    nodes = [iri(f"urn:n{number}") for number in range(max(triples // 3, 1))]
    names = sorted(streams)

    def node() -> Term:
        return nodes[int(len(nodes) * draw.random() ** 2)]

    def value(predicate: Slot) -> Term:
        constants = sorted(objects[predicate])
        choice = draw.random()
        if constants and choice < 0.5:
            return draw.choice(constants)
        return node() if choice < 0.9 else literal(str(draw.randrange(100)), XSD + "integer")

    def triple(place: int) -> Triple:
        predicate = predicates[place % len(predicates)]
        subject = draw.choice(sorted(subjects)) if subjects and draw.random() < 0.05 else node()
        return Triple(subject, Term(str(predicate)), value(predicate))

    return [Event(place, (triple(place),), draw.choice(names)) for place in range(triples)]


def _triple(part: Any) -> tuple[Slot, ...]:
    """Returns the slots of a pattern of triples, or none."""
    if isinstance(part, Pattern):
        return part.slots
    return part.arguments[-3:] if isinstance(part, AtomPattern) and part.relation == GRAPH else ()


def cost(system: System, planner: str, events: Sequence[Event], count_rows: bool = False) -> Cost:
    """Returns what a run takes, in a process of its own: the rows, or all else.

    Raises:
        RuntimeError: The run has failed in another way than by an error of its data.
    """
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        code = 1
        try:
            with suppress(SquallError, MemoryError), os.fdopen(writer, "w") as report:
                json.dump(_run(system, planner, events, count_rows), report)
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    os.close(writer)
    with os.fdopen(reader) as report:
        text = report.read()
    _, status = os.waitpid(child, 0)
    if os.WIFEXITED(status) and os.WEXITSTATUS(status):
        raise RuntimeError(f"the run of the plan of `{planner}` has failed")
    return Cost(*json.loads(text)) if text else TOO_MUCH


@deep_recursion()
def _run(system: System, planner: str, events: Sequence[Event], count_rows: bool) -> Cost:
    resource.setrlimit(resource.RLIMIT_CPU, (MAX_SECONDS, MAX_SECONDS))
    resource.setrlimit(resource.RLIMIT_AS, (MAX_MEMORY, MAX_MEMORY))
    plan = squall.plan(system, planner)
    if count_rows:
        job = IteratorJob(plan, Options(measure=True))
        outputs = sum(1 for _ in job.run([events]))
        return Cost(0, 0, outputs, sum(metric.rows or 0 for metric in job.node_metrics().values()))
    before = resource.getrusage(resource.RUSAGE_SELF)
    outputs = sum(1 for _ in squall.run(plan, list(events)))
    after = resource.getrusage(resource.RUSAGE_SELF)
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Cost(seconds, 1024.0 * (after.ru_maxrss - before.ru_maxrss), outputs)


def compared(name: str, system: System, triples: int) -> Comparison:
    """Returns the costs of a program with both planners: of one run, or medians where `rete` seems to take more."""
    events = random_events(system, triples)
    costs: dict[str, list[Cost]] = {planner: [] for planner in PLANNERS}
    first = {planner: cost(system, planner, events, count_rows=True) for planner in PLANNERS}
    if first["greedy"].rows == first["rete"].rows < TOO_MUCH.rows:
        return Comparison(name, first["greedy"], first["rete"])
    while True:
        for planner, measured in costs.items():
            measured.append(cost(system, planner, events)._replace(rows=first[planner].rows))
        comparison = Comparison(name, _median(costs["greedy"]), _median(costs["rete"]))
        if max(comparison.ratios) <= BOUND or len(costs["rete"]) == REPETITIONS:
            return comparison


def _median(costs: Sequence[Cost]) -> Cost:
    seconds, memory = median(item.seconds for item in costs), median(item.memory for item in costs)
    return Cost(seconds, memory, costs[0].outputs, costs[0].rows)


@dataclass
class Sweep:
    """The comparisons of many programs, each system once.

    Attributes:
        triples: The number of triples in the data of each program.
        comparisons: The comparisons, by system.
        refused: How many programs could not be compiled by themselves.
        failures: How many runs have failed.
    """

    triples: int
    comparisons: dict[System, Comparison] = field(default_factory=dict)
    refused: int = 0
    failures: int = 0

    def compare(self, name: str, system: System | None) -> None:
        """Compares the plans of a program, and reports at once what is worse or fails."""
        if system is None:
            self.refused += 1
        elif system not in self.comparisons:
            try:
                comparison = self.comparisons[system] = compared(name, system, self.triples)
            except RuntimeError as error:
                self.failures += 1
                print(f"{name}: {error}", file=sys.stderr)
                return
            if max(comparison.ratios) > BOUND:
                ratios = ", ".join(f"{ratio:.2f}" for ratio in comparison.ratios)
                print(f"{len(self.comparisons)} {name}: CPU, memory and rows {ratios}", file=sys.stderr, flush=True)


def table(comparisons: Iterable[Comparison], most: int) -> Table:
    """Returns the table of the comparisons in which `rete` takes most, by ratio."""
    result = Table("program", "CPU ratio", "memory ratio", "row ratio", "greedy s", "rete s", "greedy MB", "rete MB")
    for item in sorted(comparisons, key=lambda item: -max(item.ratios))[:most]:
        costs = (item.greedy.seconds, item.rete.seconds, item.greedy.memory / 1e6, item.rete.memory / 1e6)
        result.add_row(item.program, *(f"{ratio:.2f}" for ratio in item.ratios), *(f"{number:.2f}" for number in costs))
    return result


def main(given: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser("python -m tests.bench.sweep", description="Compares the planners' plans.")
    parser.add_argument("paths", nargs="*", type=Path, metavar="FILE")
    parser.add_argument("--conformance", action="store_true", help="compare what the conformance suites plan, too")
    parser.add_argument("--every", type=int, default=1, help="take only each n-th case of a conformance suite (1)")
    parser.add_argument("--triples", type=int, default=3000, help="triples of the data of each program (3000)")
    parser.add_argument("--most", type=int, default=10, help="rows of the table (10)")
    parser.add_argument("--json", type=Path, help="write all costs there, too")
    request = parser.parse_args(given)
    sweep = Sweep(request.triples)
    systems = conformance_systems(conformance.corpus(), request.every) if request.conformance else ()
    with suppress(KeyboardInterrupt):
        for name, system in chain(((program.name, compiled(program)) for program in programs(request.paths)), systems):
            sweep.compare(name, system)
    comparisons = sweep.comparisons
    console = Console(width=None if sys.stdout.isatty() else 160)
    console.print(table(comparisons.values(), request.most))
    worse = [item for item in comparisons.values() if max(item.ratios) > BOUND]
    better = [item for item in comparisons.values() if item not in worse and min(item.ratios) < 1 / BOUND]
    print(f"{len(comparisons)} programs; rete takes over {BOUND} times as much in {len(worse)}, less in {len(better)}")
    print(f"{sweep.refused} programs are refused, or need others", file=sys.stderr)
    for item in comparisons.values():
        if not item.is_same:
            print(f"{item.program}: {item.greedy.outputs} and {item.rete.outputs} outputs", file=sys.stderr)
    if request.json:
        rows = [asdict(item) | {"ratios": item.ratios} for item in comparisons.values()]
        request.json.write_text(json.dumps(rows, indent=1) + "\n")
    return 1 if worse or sweep.failures or not all(item.is_same for item in comparisons.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
