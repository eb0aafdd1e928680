"""What each kind of operator gains in process: runs with it and without it, in turn, in one process.

python -m tests.bench.kinds [KIND...] [--repeat 7]

A kind is taken away by a patch that lets another kind, or none, do its work. The table in docs/iterator.md is the
output of this command.
"""

from __future__ import annotations

import argparse
import gc
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from statistics import median
from typing import Any
from unittest.mock import patch

import squall
from squall.builders.local import event_loop, job
from squall.builders.runtime import layout, operators, snapshot
from squall.builders.runtime.operators import delta_index, distinct, join, multiway_join, output, scan
from squall.builders.runtime.operators import transitive_closure as closure
from squall.builders.runtime.operators.delta_index import Merging
from squall.builders.runtime.snapshot import state
from squall.builders.runtime.tuning import Tuning
from squall.contracts import Output
from squall.rdf import ALWAYS, Columns, Event
from tests.bench import data, ours
from tests.bench.data import s, u
from tests.bench.works import CLOSURE, WORKS, Lines, Rule, Task, Work, nothing

Patches = Callable[[], Iterable[AbstractContextManager[Any]]]
NEVER = 1 << 60
"""A threshold that nothing reaches."""
_HOT = ("?b", s("is"), s("Hot"))
_NEAR = ("?a", s("near"), "?b")


def _stream(triple: Callable[[int, Random, int], tuple[str, str, str]]) -> Callable[[int], Lines]:
    """Returns a timed stream of triples, one each 10 ms, made of their number, a random generator and the size."""

    def lines(size: int) -> Lines:
        random = Random(1)
        for number in range(size):
            yield f"{data.START + number * data.STEP} {data.statement(*triple(number, random, size))}"

    return lines


def _over(name: str, stream: Callable[[int], Lines], window: int, *rules: Rule, program: str = "") -> Work:
    return Work(name, "join", 0, rules, stream, nothing, window, program=program, timed=True)


_refreshed = _stream(
    lambda n, random, _: (s(f"a{random.randrange(200)}"), s("near"), s(f"b{n % 50}")) if n % 2
    else (s(f"b{random.randrange(50)}"), s("is"), s("Hot"))
)  # fmt: skip
_fan = _stream(lambda n, random, size: (s(f"a{n}"), s("near"), s(f"b{random.randrange(size // 4)}")))
_covered = _stream(
    lambda n, _, __: (s(f"b{n}"), s("is"), s("Hot")) if n % 4 else (s(f"a{n}"), s("near"), s(f"b{n // 2}"))
)
_repeated = _stream(lambda n, random, size: (s(f"a{random.randrange(size // 10)}"), s("near"), s(f"b{n % 3}")))
_chains = _stream(lambda n, _, __: (u(f"n{n // 20}x{n % 20}"), u("partOf"), u(f"n{n // 20}x{n % 20 + 1}")))


EXTRA = {
    work.name: work
    for work in (
        _over("refreshed", _refreshed, 8000, Rule("r", (_NEAR, _HOT), (("?a", s("is"), s("Warm")),))),
        _over("fan", _fan, 0, Rule("r", (_NEAR, ("?c", s("near"), "?b")), (("?a", s("with"), "?c"),))),
        _over(
            "covered", _covered, 8000,
            program=f"[r: (?a {s('near')} ?b) noValue(?b {s('is')} {s('Hot')}) -> (?a {s('is')} {s('Cold')})]",
        ),
        _over(
            "repeated",
            _repeated,
            8000,
            Rule("r", (_NEAR,), (("?a", s("at"), s("Home")),)),
            Rule("s", (("?a", s("at"), "?b"),), (("?b", s("has"), "?a"),)),
        ),
        _over("chains", _chains, 2000, *CLOSURE),
    )
}  # fmt: skip
"""Streams that this page measures besides the workloads of the benchmarks. Windows without a length are landmarks."""
QUERY = f"SELECT ?o ?n WHERE {{ ?o {s('hasValue')} ?v . ?v {s('numericValue')} ?n }}"


@dataclass(frozen=True)
class Kind:
    """A kind of an operator, and what it is measured with.

    Attributes:
        work: The workload, or ``query``: solutions over the sensor stream.
        size: The triples of the stream.
        without: The patches that take the kind away.
        with_both: Patches for the runs with the kind and without it.
    """

    work: str
    size: int
    without: Patches
    with_both: Patches = tuple


def _replaced(owner: Any, name: str, value: Any) -> Patches:
    return lambda: [patch.object(owner, name, value)]


def _tuned(**values: int) -> Patches:
    init = job.IteratorJob.__init__
    return _replaced(
        job.IteratorJob, "__init__", lambda self, plan, options: init(self, plan, options, Tuning(**values))
    )


def _merged(without: Merging, instead: Merging) -> Patches:
    merging_of = operators.merging_of

    def merging(node: Any, plan: Any) -> Merging:
        return instead if merging_of(node, plan) is without else merging_of(node, plan)

    return lambda: [patch.object(operators, "merging_of", merging)]


def _initialised(owner: type, change: Callable[..., None]) -> Patches:
    """Returns patches that change each object after its construction."""
    init = owner.__init__  # type: ignore[misc]

    def changed(self: Any, *arguments: Any, **named: Any) -> None:
        init(self, *arguments, **named)
        change(self)

    return _replaced(owner, "__init__", changed)


def _of_sets(kind: Any) -> Patches:
    def count(self: Any, more: int) -> None:
        self.size += more

    sets = _initialised(closure._AppendOnlyClosure, lambda self: setattr(self, "sets", kind))
    return lambda: [patch.object(closure._AppendOnlyClosure, "_count", count), *sets()]


def _timed_closure(self: Any) -> None:
    self.timed = closure._SourceClosure(lambda node: True)


def _no_snapshots() -> Iterable[AbstractContextManager[Any]]:
    return [patch.object(job, "fits", lambda plan: False)]


def _no_front_sweep() -> Iterable[AbstractContextManager[Any]]:
    return [patch.object(module, "expired_keys", lambda *_: []) for module in (delta_index, multiway_join, output)]


def _output_operator(node: Any, op: Any, plan: Any, tuning: Any = None) -> Any:
    return output.OutputOperator(op)


def _anti_join(self: Any) -> None:
    self.append_only = False


KINDS = {
    "multiway join": Kind("q9", 300_000, _replaced(event_loop, "with_multiway_joins", lambda plan: plan)),
    "unindexed rows of a join": Kind(
        "q4", 300_000, _initialised(join.JoinOperator, lambda self: setattr(self, "max_rows_to_index", NEVER))
    ),
    "merging of overlapping rows": Kind("refreshed", 20_000, _merged(Merging.UNION, Merging.ADJOINING)),
    "no merging": Kind("fan", 40_000, _merged(Merging.NEVER, Merging.UNION), _no_snapshots),
    "sweep of the oldest rows": Kind("q9", 300_000, _no_front_sweep),
    "anti-join with an append-only right side": Kind(
        "covered", 40_000, _initialised(join.AntiJoinOperator, _anti_join)
    ),
    "append-only distinct": Kind(
        "repeated", 40_000,
        _replaced(operators, "_distinct", lambda node, by, plan, tuning: distinct.RetractableDistinct(by, tuning)),
    ),
    "append-only output": Kind(
        "q3", 300_000, _replaced(operators, "make_output_operator", _output_operator), _no_snapshots
    ),
    "append-only solution output": Kind(
        "query", 100_000, _replaced(operators, "make_output_operator", _output_operator)
    ),
    "append-only closure": Kind(
        "chain", 400, _replaced(closure._AppendOnlyClosure, "accepts", lambda self, pairs: False), _no_snapshots
    ),
    "interval closure": Kind("chains", 8000, _initialised(closure.ClosureIndex, _timed_closure)),
    "closure of bit sets": Kind("chain", 1000, _of_sets(closure._HashSets)),
    "closure of hash sets": Kind("tree", 30_000, _of_sets(closure._BitSets)),
    "snapshots": Kind("rdfs", 100_000, _no_snapshots),
    "factored rows": Kind("rdfs", 100_000, _tuned(min_rows_to_factor=NEVER)),
    "facts grouped by object": Kind("rdfs", 100_000, _tuned(min_rows_per_object=NEVER)),
    "deferred steps of snapshot joins": Kind(
        "rdfs", 100_000, _replaced(snapshot.SnapshotDataflow, "_is_lazy", lambda self, node, port: False)
    ),
    "projections beside the key": Kind(
        "rdfs", 100_000, _replaced(snapshot.SnapshotDataflow, "_projects_beside_key", lambda self, node: False)
    ),
    "sets of facts that come once": Kind(
        "rdfs", 100_000, _replaced(snapshot, "_are_unique", lambda node, plan: False)
    ),
    "facts read without a set": Kind(
        "rdfs", 100_000, _initialised(state.ReadFacts, lambda self: setattr(self, "deduplicates", True))
    ),
    "outputs without a set": Kind(
        "rdfs", 100_000,
        _replaced(state.SnapshotOutput, "_fresh", lambda self, port, key, rows: self.set.fresh(key, rows)),
    ),
    "construct by constant": Kind(
        "many-1000", 20_000, _replaced(layout, "_take_constructs", lambda plan, filters, targets: iter(()))
    ),
    "columns": Kind(
        "q3", 300_000, _replaced(scan.ScanOperator, "read_columns", lambda self, columns: self.read(columns))
    ),
    "columns with a period": Kind("q3", 300_000, _replaced(Columns, "period", property(lambda self: 0))),
}  # fmt: skip


def outputs_of(kind: Kind, batches: Sequence[Sequence[Event]], task: Task) -> tuple[list[Output], float]:
    """Returns the outputs of a run, and its CPU seconds, as the patches in force let it be."""
    lexer = "sparql" if kind.work == "query" else "jena"
    program = QUERY if kind.work == "query" else task.files.program.read_text()
    plan = squall.plan(squall.compile(program, window=ours.window(task.work), lexer=lexer))
    run = squall.build(plan, "iterator")
    static = [Event(ALWAYS, tuple(map(ours.triple, task.static())))]
    gc.collect()
    began = time.process_time()
    outputs = list(run.run(batches, static))
    return outputs, time.process_time() - began


def measured(kind: Kind, size: int, repeat: int) -> tuple[list[float], list[float], bool]:
    """Returns the CPU seconds of runs with the kind and without it, and whether both derive the same facts."""
    work = EXTRA.get(kind.work) or WORKS["q3" if kind.work == "query" else kind.work]
    seconds: tuple[list[float], list[float]] = ([], [])
    facts: tuple[set[Any], set[Any]] = (set(), set())
    with tempfile.TemporaryDirectory() as folder:
        work.write(Path(folder), size)
        task = Task(work, work.files(Path(folder)), work.slide or 800)
        batches = list(ours.batched(task, columns=True))
        for number in range(repeat + 1):
            for without in (True, False) if number % 2 else (False, True):
                with ExitStack() as stack:
                    for context in (*kind.with_both(), *(kind.without() if without else ())):
                        stack.enter_context(context)
                    outputs, took = outputs_of(kind, batches, task)
                facts[without].update(output.fact for output in outputs)
                seconds[without].extend([took] if number else [])  # the first run warms up
    return *seconds, facts[0] == facts[1]


def main(given: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.kinds", description=__doc__)
    parser.add_argument("kinds", nargs="*", metavar="KIND", choices=[*KINDS, []], help="all, if none is named")
    parser.add_argument("--repeat", type=int, default=7)
    parser.add_argument("--share", type=int, default=1, help="one of so many triples")
    arguments = parser.parse_args(given)
    gc.set_threshold(100_000, 50, 100)
    print("| kind | workload | triples | CPU time without it |\n| --- | --- | ---: | ---: |")
    agree = True
    for name in arguments.kinds or KINDS:
        kind = replace(KINDS[name], size=KINDS[name].size // arguments.share)
        having, without, same = measured(kind, kind.size, arguments.repeat)
        ratio = f"{min(without) / min(having):.2f}, {median(without) / median(having):.2f}"
        print(f"| {name} | `{kind.work}` | {kind.size:,} | {ratio} |{'' if same else ' **other facts** |'}", flush=True)
        agree = agree and same
    return 0 if agree else 1


if __name__ == "__main__":
    sys.exit(main())
