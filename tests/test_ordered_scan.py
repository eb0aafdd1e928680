"""The ordered scan, sequential per key, and derived streams in a distributed builder."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume

import squall
from squall.builders.distributed.exec import micro_batch
from squall.builders.distributed.exec.program import Program
from squall.builders.distributed.io.records import StateHandle, from_arrow
from squall.builders.distributed.plan.buckets import ORDERED_SCAN
from squall.builders.distributed.plan.physical_plan import physical_plan
from squall.builders.distributed.plan.strategy import BatchLimits, strategy_of
from squall.builders.runtime.operators.scan import ScanOperator
from squall.builders.runtime.operators.state import SnapshotDiff
from squall.contracts import Output
from squall.errors import BuilderError, SourceError
from squall.model import (
    Ask,
    AtomPattern,
    Construct,
    Pattern,
    Report,
    Source,
    System,
    Variable,
    derived_streams,
    with_windows,
)
from squall.model.profiles import apply_profile
from squall.model.windows import LANDMARK, CountWindow, FirstTriple, HoppingWindow, OpenHoppingWindow, SlidingWindow
from squall.plan import Node, Plan
from squall.plan.operators import DerivedStream
from squall.rdf import QUAD, Event, Term, Triple, iri
from squall.streams import Sources, open_source
from squall.testing import assert_as_oracle, stream
from squall.testing.strategies import systems
from tests import in_memory
from tests.file_by_file import PREFIX, file_by_file
from tests.laws import PLANNERS, examples, hold_with_outputs
from tests.trials import APART, Trial, trials

X, Y, Z = map(Variable, "xyz")
P, Q, R, S = (iri(f"http://example.org/{name}") for name in "pqrs")
RULES = "@prefix : <http://example.org/>.\n[(?x :p ?y) (?y :p ?z) -> (?x :q ?z)]"


def makes(subject: Variable, predicate: Term, object: Variable) -> tuple[Construct]:
    return (Construct((Pattern(subject, predicate, object),)),)


def made(output: str, report: Report | None = None, window: Any = LANDMARK) -> System:
    """Returns a rule that derives a stream from the input, and a rule that joins this stream with the input."""
    copy = System("m", joinables=(Pattern(X, P, Y),), consequences=makes(Y, Q, X), reentrant=False)
    maker = System(subsystems=(copy,), stream="urn:s", output=output, report=report)
    reads = System(
        "r", (Source("urn:s", window), Source()), (Pattern(X, Q, Y), Pattern(Y, P, Z)),
        consequences=makes(X, R, Z),
    )  # fmt: skip
    return System(subsystems=(maker, reads))


def copied(output: str, name: str = "m", into: str = "urn:s") -> System:
    """Returns a query that copies the last three milliseconds into a stream."""
    copy = System(
        name, (Source(window=SlidingWindow(3)),), (Pattern(X, P, Y),), consequences=makes(X, R, Y), reentrant=False
    )
    return System(subsystems=(copy,), stream=into, output=output)


# Laws


@pytest.mark.more
@examples(25)
def test_derived_streams_agree_with_the_oracle(many: int) -> None:
    def law(trial: Trial) -> list[Output]:
        plan = squall.plan(trial.system, PLANNERS[trial.seed % 2])
        derives_streams = any(isinstance(node.op, DerivedStream) for node in plan.nodes)
        assume(derives_streams and strategy_of(plan).is_staged)
        return trial.outputs_as_oracle(plan, **in_memory.any_engine(trial.seed))

    programs = systems(features=APART).filter(lambda system: bool(derived_streams(system)))
    hold_with_outputs(law, many, trial=trials(APART, programs))


@pytest.mark.sampled(12)
@pytest.mark.parametrize("output", ["istream", "dstream", "rstream"])
@pytest.mark.parametrize("stream_output", ["istream", "dstream", "rstream"])
@pytest.mark.parametrize("report", [None, Report("change"), Report("periodic", 3)], ids=str)
def test_derived_streams_are_written_and_read_with_all_outputs(
    stream_output: str, output: str, report: Report | None
) -> None:
    system = replace(made(stream_output, report, SlidingWindow(4)), output=output)
    plan = squall.plan(with_windows(system, window=SlidingWindow(5)))
    assert strategy_of(plan).is_staged
    events = stream("".join(f"{time} :n{time % 3} :p :n{time * 7 % 3}\n" for time in range(12)))
    for size in (1, 5, 12):
        batches = [events[at : at + size] for at in range(0, 12, size)]
        assert_as_oracle(with_windows(system, window=SlidingWindow(5)), in_memory.run(plan, batches), events)


def test_a_stream_derived_from_a_derived_stream_is_on_time() -> None:
    """Each stream has snapshot output, at evaluation times of the one before."""
    of_first, of_second = (Source("urn:a", SlidingWindow(3)),), (Source("urn:b", SlidingWindow(2)),)
    first = System("a", joinables=(Pattern(X, P, Y),), consequences=makes(X, Q, Y), reentrant=False)
    second = System("b", of_first, (Pattern(X, Q, Y),), consequences=makes(X, R, Y), reentrant=False)
    last = System("c", of_second, (Pattern(X, R, Y),), consequences=makes(X, S, Y), reentrant=False)
    system = System(
        subsystems=(
            System(subsystems=(first,), stream="urn:a", output="rstream"),
            System(subsystems=(second,), stream="urn:b", output="rstream"),
            last,
        ),
        output="rstream",
    )
    events = stream("1 :a :p :b\n3 :b :p :c\n8 :c :p :d")
    plan = squall.plan(system)
    assert (
        len(
            {
                level.number
                for level in physical_plan(plan).stages
                for id in level.nodes
                if isinstance(plan.by_id[id].op, DerivedStream)
            }
        )
        == 2
    )
    for batches in ([events], [[event] for event in events]):
        assert_as_oracle(system, in_memory.run(plan, batches), events)


@pytest.mark.parametrize(
    ("window", "max_single_task_bytes"),
    [(CountWindow(3, 2), -1), (CountWindow(4, 4), -1), (CountWindow(2), -1), (CountWindow(3), 1_000_000)],
    ids=str,
)
def test_an_answer_is_evaluated_when_a_window_of_triples_moves_on(
    window: CountWindow, max_single_task_bytes: int
) -> None:
    query = PREFIX + "SELECT ?y (COUNT(*) AS ?often) { ?x :p ?y } GROUP BY ?y"
    system = apply_profile(squall.compile(query, lexer="sparql"), window=window, output="rstream")
    events = stream("".join(f"{time} :n{time} :p :m{time % 2}\n" for time in range(11)))
    for size in (1, 3, 11):
        batches = [events[at : at + size] for at in range(0, 11, size)]
        outputs = in_memory.run(squall.plan(system), batches, max_single_task_bytes=max_single_task_bytes)
        assert outputs
        assert_as_oracle(system, outputs, events)


@pytest.mark.parametrize("max_single_task_bytes", [-1, 1_000_000])
def test_removals_reach_the_task_that_has_the_fact(max_single_task_bytes: int) -> None:
    """No worker has a cache, so all state is read back."""
    system = replace(squall.compile(RULES, lexer="jena", removals=True, window=SlidingWindow(100)), output="dstream")
    events = [Event(time, (_fact(time),)) for time in range(20)]
    removals = [Event(30 + time, (), removed=(_fact(time),)) for time in range(20)]
    outputs = in_memory.run(
        squall.plan(system), [events, removals[:10], removals[10:]], max_single_task_bytes=max_single_task_bytes
    )
    assert [output.time for output in outputs] == [event.time for event in removals]
    assert_as_oracle(system, outputs, [*events, *removals])


@pytest.mark.parametrize("max_single_task_bytes", [-1, 1_000_000])
def test_the_watermark_passes_the_end_of_derived_streams_when_all_sources_have_ended(
    max_single_task_bytes: int,
) -> None:
    """Events that arrive then are late, because they would change outputs that have been emitted."""
    plan = squall.plan(with_windows(made("istream", window=SlidingWindow(50)), window=SlidingWindow(2)))
    files = in_memory.MemoryFiles()
    job = micro_batch.MicroBatches(
        in_memory.MemoryEngine(files),
        files,
        Program(physical_plan(plan)),
        BatchLimits(max_single_task_bytes=max_single_task_bytes),
    )
    parts = in_memory.in_files(stream("1 :a :p :b\n3 :b :p :c"))
    if job.is_unshuffled(0):
        job.process_unshuffled(lambda *_: iter(parts), job.initial_records(), last=True)
    else:
        job.process([*in_memory.start(job), *in_memory.read(job, parts)], last=True)
    job.commit(None)
    assert job.progress.processed_until == 53


# Which task


def placed(plan: Plan, events: Sequence[Event]) -> dict[str, set[int]]:
    """Returns the partitions that run ordered scans, by their streams."""
    files = in_memory.MemoryFiles()
    engine = in_memory.MemoryEngine(files)
    job = micro_batch.MicroBatches(engine, files, Program(physical_plan(plan)), BatchLimits())
    results: dict[str, set[int]] = {}
    for part in in_memory.in_files(events):
        for message in from_arrow(job.source_step(lambda *_, part=part: iter([part]))(iter(()))):
            if message.stage == ORDERED_SCAN:
                results.setdefault(message.row.split("\n")[1], set()).add(message.bucket % engine.partitions)
    return results


def test_events_of_one_fact_go_to_one_task() -> None:
    plan = squall.plan(squall.compile(RULES, lexer="jena", removals=True))
    events = [Event(time, (_fact(time),)) for time in range(30)]
    assert placed(plan, events) == {"": {0, 1, 2}}
    again = [Event(time, (), removed=(_fact(7),)) for time in range(30)]
    assert len(placed(plan, [Event(0, (_fact(7),)), *again])[""]) == 1


def test_a_stream_with_a_count_window_is_scanned_by_one_task() -> None:
    plan = squall.plan(
        squall.compile(RULES, lexer="jena", windows={f"urn:{name}": CountWindow(3) for name in range(20)})
    )
    events = [Event(time, (_fact(time),), f"urn:{time % 20}") for time in range(100)]
    result = placed(plan, events)
    assert {len(partitions) for partitions in result.values()} == {1}
    assert set().union(*result.values()) == {0, 1, 2}


def test_the_levels_behind_are_spread() -> None:
    plan = squall.plan(squall.compile(RULES, lexer="jena", window=CountWindow(40)))
    files = in_memory.MemoryFiles()
    job = micro_batch.MicroBatches(in_memory.MemoryEngine(files), files, Program(physical_plan(plan)), BatchLimits())
    events = [Event(time, (Triple(_node(time), P, _node(time + 1)),)) for time in range(60)]
    job.process([message for part in in_memory.in_files(events) for message in in_memory.read(job, [part])])
    tasks = {handle.name.split("/")[0] for handle in job.report.all(StateHandle)}
    assert {"-1", "1"} <= tasks
    assert len([handle for handle in job.report.all(StateHandle) if handle.name.startswith("-1/")]) == 1
    assert len([handle for handle in job.report.all(StateHandle) if handle.name.startswith("1/")]) == 3


def test_the_ordered_scan_is_explained() -> None:
    pytest.importorskip("pyspark")

    def described(**how: Any) -> str:
        return str(squall.build(squall.plan(squall.compile(RULES, lexer="jena", **how)), "spark").describe())  # type: ignore[attr-defined]

    assert "ordered scan, all of a stream in one task: scan-" in described(window=CountWindow(5))
    assert "reads through the window TRIPLES 5" in described(window=CountWindow(5))
    assert "ordered scan, each by the task of its own: scan-" in described(removals=True)
    assert "in turn" not in described()


def _node(number: int) -> Term:
    return iri(f"http://example.org/n{number}")


def _fact(number: int) -> Triple:
    return Triple(_node(number), P, _node(number))


# What is kept


def test_a_reader_resumes_with_what_others_have_read_since() -> None:
    """A removal that another reader has read retracts a fact of this one."""
    readers = [ScanOperator(Source(removals=True), (P,), False, False, True) for _ in range(2)]
    for reader in readers:
        reader.enable_changelog()
    readers[0].read([Event(1, (_fact(1), _fact(2)))])
    before = _kept(readers[0])
    readers[1].restore(0, before)
    readers[1].enable_changelog()
    readers[1].read([Event(2, (_fact(3),), removed=(_fact(1),))])
    readers[0].restore(0, _kept(readers[1]))
    assert readers[0].valid_facts.arrivals.keys() == readers[1].valid_facts.arrivals.keys() == {_fact(2), _fact(3)}


def _kept(reader: ScanOperator) -> list[Any]:
    return [delta for slot, deltas in reader.drain_changelog() if slot == 0 for delta in deltas]


def test_differences_resume_with_what_has_been_output_since() -> None:
    ones, other_items = SnapshotDiff(), SnapshotDiff()
    first = ones.update([("a", 1, 2, 1), ("b", 1, 2, 1)])
    other_items.restore(first)
    since = ones.update([("b", 1, 2, 2)])
    assert other_items.restore(since) == [("b", 1, 2, 2)]
    assert other_items.update([("b", 1, 2, 2)]) == []


# On Spark


SAYS = iri("http://example.org/says")


def stream_of_triples(window: CountWindow | HoppingWindow, output: str) -> System:
    maker = System("m", (Source(),), (Pattern(X, SAYS, Y),), consequences=makes(Y, P, X), reentrant=False)
    reads = System("r", (Source("urn:s", window),), (Pattern(Y, P, X),), consequences=makes(X, Q, Y))
    return System(subsystems=(System(subsystems=(maker,), stream="urn:s", output="rstream"), reads), output=output)


def read_later(window: SlidingWindow | HoppingWindow, what: Term = P) -> System:
    """Builds the derived stream and a rule that reads it through a window that begins later."""
    maker = System("m", joinables=(Pattern(X, what, Y),), consequences=makes(Y, Q, X), reentrant=False)
    reads = System("r", (Source("urn:s", window),), (Pattern(Y, Q, X),), consequences=makes(X, R, Y), reentrant=False)
    return System(subsystems=(System(subsystems=(maker,), stream="urn:s"), reads))


@pytest.mark.sampled(24)
@pytest.mark.parametrize("max_single_task_bytes", [-1, 1_000_000])
@pytest.mark.parametrize("window", [SlidingWindow(4, 2), HoppingWindow(3, 3), HoppingWindow(4, 2, delay=3)], ids=str)
def test_a_derived_fact_that_begins_later_is_output_then(
    window: SlidingWindow | HoppingWindow, max_single_task_bytes: int
) -> None:
    """It is not output in the batch that derives it, whichever task processes the later one."""
    system = read_later(window)
    events = stream("".join(f"{time} :n{time % 3} :p :n{time // 3 % 3}\n" for time in (0, 1, 2, 5, 6, 8, 10, 11)))
    for cuts in ([1], [3], [5], [2, 4], [*range(8)]):
        outputs = in_memory.run(
            squall.plan(system), in_memory.cut(events, cuts), max_single_task_bytes=max_single_task_bytes
        )
        assert len([output for output in outputs if output.rule == "r"]) > 3
        assert_as_oracle(system, outputs, events)


QUERY = PREFIX + "SELECT ?what (COUNT(*) AS ?often) { ?room :says ?what } GROUP BY ?what ORDER BY ?what"
PROGRAMS = {
    "the last three triples": apply_profile(
        squall.compile(QUERY, lexer="sparql"), window=CountWindow(3), output="rstream"
    ),
    "steps from the first triple on": apply_profile(
        squall.compile(QUERY, lexer="sparql"), window=HoppingWindow(5, 3, FirstTriple(2)), output="rstream"
    ),
    "an open window": apply_profile(
        squall.compile(QUERY, lexer="sparql"), window=OpenHoppingWindow(5, 3, FirstTriple(2)), output="rstream"
    ),
    "a stream that is read from its first triple on": stream_of_triples(HoppingWindow(5, 3, FirstTriple(2)), "rstream"),
    "a stream that is read again": stream_of_triples(CountWindow(4), "dstream"),
    "a stream that is read by steps": stream_of_triples(CountWindow(4, 3), "rstream"),
    "a stream that is read later": read_later(HoppingWindow(4, 2, delay=3), SAYS),
}


def _rows_and_programs() -> Iterator[Any]:
    """Yields the number of rows up to which one task processes a batch, with each program; half of them slow tests."""
    for number, (name, rows) in enumerate(product(PROGRAMS, ("0", "50000"))):
        yield pytest.param(rows, name, marks=[pytest.mark.slow] if number % 4 in (1, 2) else [])


@pytest.mark.spark
@pytest.mark.parametrize(("rows", "name"), [*_rows_and_programs()])
@pytest.mark.more
def test_spark_agrees_with_the_iterator_builder(name: str, rows: str, tmp_path: Path) -> None:
    """Spark reads file by file, with a restart in between, and compacts the state."""
    pytest.importorskip("pyspark")
    from squall.builders.spark import MAX_SINGLE_TASK_ROWS, session

    session().conf.set(MAX_SINGLE_TASK_ROWS, rows)
    result, expected = file_by_file(squall.plan(PROGRAMS[name]), tmp_path)
    session().conf.unset(MAX_SINGLE_TASK_ROWS)
    assert result
    assert result == expected


@pytest.mark.spark
@pytest.mark.more
def test_removals_are_spooled_for_spark(tmp_path: Path) -> None:
    pytest.importorskip("pyspark")
    path = tmp_path / "in.rdfp"
    fact = "<http://example.org/a> <urn:p> <http://example.org/b>"
    rows = ['H time "1" .', f"A {fact} .", 'H time "4" .', f"D {fact} .", 'H time "6" .', f"A {fact} ."]
    path.write_text("".join(f"{row}\n" for row in rows))
    system = squall.compile("[(?x <urn:p> ?y) -> (?x <urn:q> ?y)]", lexer="jena", removals=True)
    outputs: dict[str, list[Output]] = {}
    for builder in ("iterator", "spark"):
        plan = squall.plan(replace(system, output="dstream"))
        outputs[builder] = list(squall.build(plan, builder).run(Sources([open_source(str(path))])))
    assert [output.time for output in outputs["spark"]] == [4]
    assert outputs["spark"] == outputs["iterator"]


@pytest.mark.sampled(12)
@pytest.mark.parametrize("cuts", [[], [3, 5], [*range(9)]], ids=str)
@pytest.mark.parametrize("read", [True, False], ids=["read", "not read"])
@pytest.mark.parametrize("answer", ["istream", "rstream"])
@pytest.mark.parametrize("output", ["istream", "rstream"])
def test_a_snapshot_is_output_when_a_window_of_triples_moves(
    output: str, answer: str, read: bool, cuts: list[int]
) -> None:
    """The program derives a stream, and has an answer whose source does not read that stream."""
    blocks = (Source(window=CountWindow(3, 3), removals=True),)
    body = (Pattern(X, P, Y),)
    maker = System("m", blocks, body, consequences=makes(X, Q, X), reentrant=False)
    ask_query = System("asks", blocks, body, consequences=(Ask(),))
    reader = System(
        "r",
        (Source("urn:s", window=SlidingWindow(5)),),
        (Pattern(X, Q, Y),),
        consequences=makes(X, R, Y),
        reentrant=False,
    )
    parts = (ask_query, reader) if read else (ask_query,)
    answers = (System(subsystems=(part,), output=answer) for part in parts)
    system = System(subsystems=(System(subsystems=(maker,), output=output, stream="urn:s"), *answers))
    events = stream("".join(f"{time} :a :p :b{time % 2}\n" * (1 + time % 3) for time in range(9)))
    outputs = in_memory.run(squall.plan(system), in_memory.cut(events, cuts))
    assert_as_oracle(system, outputs, events)
    assert outputs


@pytest.mark.parametrize("removals", [True, False])
@pytest.mark.parametrize("predicate", "pz")
@pytest.mark.parametrize("snapshot_kind", ["an answer", "a stream"])
def test_an_unread_window_of_triples_triggers_snapshots(snapshot_kind: str, predicate: str, removals: bool) -> None:
    """The conclusions of the rule are unread, so no pattern reads its source; it counts nevertheless. Triples that
    nobody reads count, too."""
    blocks = (Source(window=CountWindow(3, 2), removals=True),)
    unread = System("r", blocks, (Pattern(X, P, Y),), consequences=(replace(makes(X, R, X)[0], internal=True),))
    other = System("o", (Source("urn:one", removals=removals),), (Pattern(X, P, Y),), consequences=makes(X, Q, Y))
    system = System(subsystems=(unread, other), output="rstream")
    if snapshot_kind == "a stream":
        reader = System("s", (Source("urn:s"),), (Pattern(X, Q, Y),), consequences=makes(X, S, Y), reentrant=False)
        system = System(subsystems=(replace(system, stream="urn:s"), System(subsystems=(reader,), output="rstream")))
    events = stream("".join(f"{time} :a :{predicate} :b\n" * 2 for time in range(5)))
    events += [Event(5, (Triple(P, P, P),), "urn:one")]
    events += stream("".join(f"{time} :a :{predicate} :b\n" * 2 for time in range(6, 12)))
    plan = squall.plan(system)
    assert strategy_of(plan).is_staged
    outputs = in_memory.run(plan, [events[:3], events[3:]])
    assert outputs
    assert_as_oracle(system, outputs, events)


@pytest.mark.sampled(8)
@pytest.mark.parametrize("report", [None, Report("change"), Report("periodic", 3)], ids=str)
@pytest.mark.parametrize("stream_output", ["istream", "dstream", "rstream"])
@pytest.mark.parametrize(("window", "planner"), [(CountWindow(4, 2), "rete"), (CountWindow(3, 3), "greedy")], ids=str)
def test_a_derived_stream_moves_its_windows_of_triples(
    window: CountWindow, planner: str, stream_output: str, report: Report | None
) -> None:
    """The snapshot output of its readers follows: an answer, and another stream that count windows read again."""
    again = System("a", (Source("urn:s", window),), (Pattern(X, R, Y),), consequences=makes(X, S, Y), reentrant=False)
    last = System("l", (Source("urn:t", window),), (Pattern(X, S, Y),), consequences=makes(X, Q, Y), reentrant=False)
    other = System("o", (Source("urn:t", window),), (Pattern(Y, S, X),), consequences=makes(X, R, Y), reentrant=False)
    system = System(
        subsystems=(
            copied(stream_output),
            System(subsystems=(again,), stream="urn:t", output="rstream"),
            System(subsystems=(last, other), output="rstream", report=report),
        )
    )
    plan = squall.plan(system, planner)
    assert strategy_of(plan).is_staged
    events = stream("".join(f"{time} :n{time} :p :m{time % 3}\n" * (1 + time % 2) for time in range(12)))
    for cuts in ([], [3, 5], [*range(12)]):
        outputs = in_memory.run(plan, in_memory.cut(events, cuts))
        assert any(output.rule == "l" for output in outputs)
        assert_as_oracle(system, outputs, events)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("window", [CountWindow(3, 2), SlidingWindow(4)], ids=str)
@pytest.mark.parametrize("snapshot_kind", ["an answer", "a stream"])
@pytest.mark.parametrize("read", [True, False], ids=["read", "not read"])
def test_an_unread_derived_stream_triggers_evaluations(
    window: CountWindow | SlidingWindow, snapshot_kind: str, read: bool
) -> None:
    """The conclusions of the rule that reads the stream are unread; others may read it through another window."""
    nobody = (replace(makes(X, R, X)[0], internal=True),)
    unread = System("u", (Source("urn:s", window),), (Pattern(X, R, Y),), consequences=nobody)
    other = System("o", (Source("urn:one"),), (Pattern(X, P, Y),), consequences=makes(X, Q, Y), reentrant=False)
    program_system = System(
        subsystems=(unread, other), output="rstream", stream="" if snapshot_kind == "an answer" else "urn:t"
    )
    body, again = (Pattern(X, R, Y),), (Pattern(X, Q, Y),)
    reader = System("r", (Source("urn:s", SlidingWindow(2)),), body, consequences=makes(X, S, Y), reentrant=False)
    derived_reader = System(
        "t", (Source("urn:t", CountWindow(1)),), again, consequences=makes(X, S, Y), reentrant=False
    )
    request = System(subsystems=(derived_reader,), output="rstream")
    parts = (
        copied("istream"),
        program_system,
        *([request] if snapshot_kind == "a stream" else []),
        *([reader] if read else []),
    )
    system = System(subsystems=parts)
    plan = squall.plan(system)
    assert strategy_of(plan).is_staged
    events = [Event(0, (Triple(P, P, P),), "urn:one")]
    events += stream("".join(f"{time} :n{time} :p :m{time % 3}\n" for time in range(1, 12)))
    for cuts in ([], [3, 5], [*range(12)]):
        outputs = in_memory.run(plan, in_memory.cut(events, cuts))
        assert len([output for output in outputs if output.rule == "o"]) > 2
        assert_as_oracle(system, outputs, events)


def test_a_stream_with_events_of_its_own_is_no_snapshot() -> None:
    """No planner makes such a plan, which would not terminate."""

    def of_itself(node: Node) -> Node:
        op = node.op
        return replace(node, op=replace(op, sources=(op.source,))) if isinstance(op, DerivedStream) else node

    plan = squall.plan(stream_of_triples(CountWindow(4), "rstream"))
    assert physical_plan(plan).stages
    with pytest.raises(BuilderError, match="outputs a snapshot when a stream has events that depend on it"):
        physical_plan(replace(plan, nodes=tuple(map(of_itself, plan.nodes))))


@pytest.mark.sampled(24)
@pytest.mark.parametrize("planner", ["rete", "greedy"])
@pytest.mark.parametrize("window", [SlidingWindow(5), CountWindow(4, 2), CountWindow(3)], ids=str)
@pytest.mark.parametrize("read", [True, False], ids=["read", "not read"])
def test_two_streams_derived_from_the_same_both_trigger_evaluations(
    read: bool, window: CountWindow | SlidingWindow, planner: str
) -> None:
    """The streams share the nodes that derive them. `read` says whether the conclusions of the second one are read."""
    body = (Pattern(X, R, Y),)
    first = System("f", (Source("urn:s", SlidingWindow(5)),), body, consequences=makes(X, Q, Y), reentrant=False)
    head = makes(X, S, Y) if read else (replace(makes(X, S, Y)[0], internal=True),)
    second = System("u", (Source("urn:t", window),), body, consequences=head, reentrant=False)
    other = System("o", (Source("urn:one"),), (Pattern(X, P, Y),), consequences=makes(X, Q, X), reentrant=False)
    outputs = (System(subsystems=(first,), output="rstream"), System(subsystems=(second, other), output="rstream"))
    system = System(subsystems=(copied("istream"), copied("istream", "n", "urn:t"), *outputs))
    events = [Event(0, (Triple(P, P, P),), "urn:one")]
    events += stream("".join(f"{time} :n{time} :p :m{time % 3}\n" for time in range(1, 12)))
    plan = squall.plan(system, planner)
    results = list(squall.build(plan).run([events]))
    assert len([output for output in results if output.rule == "o"]) > 2
    for item in (results, in_memory.run(plan, [events[:5], events[5:]])):
        assert_as_oracle(system, item, events)


OTHER = Event(5, (Triple(P, R, P),), "urn:s")
GONE = Event(5, (), "urn:s", (Triple(P, R, P),))


@pytest.mark.parametrize(
    ("event", "source", "problem"),
    [
        (OTHER, Source("urn:s", CountWindow(3)), "brings an event from elsewhere at 5"),
        (OTHER, Source(window=CountWindow(3)), "brings an event from elsewhere at 5"),
        (OTHER, Source("urn:s", SlidingWindow(3)), None),
        (GONE, Source("urn:s", CountWindow(3), removals=True), "carries a removal at 5"),
        (GONE, Source("urn:s", SlidingWindow(3), removals=True), "carries a removal at 5"),
    ],
    ids=str,
)
@pytest.mark.parametrize("predicate", [R, S], ids=["read", "not read"])
def test_fact_shapes_of_a_derived_stream(event: Event, source: Source, problem: str | None, predicate: Term) -> None:
    """Derived facts count whether patterns read them or not."""
    reads = System("r", (source,), (Pattern(X, predicate, Y),), consequences=makes(X, Q, Y), reentrant=False)
    system = System(subsystems=(copied("istream"), reads))
    events = [*stream("1 :a :p :b\n3 :b :p :c"), event, *stream("6 :c :p :d")]
    plan = squall.plan(system)
    runs: list[Callable[[], Sequence[Output]]] = [
        lambda: list(squall.build(plan).run([events])),
        lambda: in_memory.run(plan, [events[:2], events[2:]]),
    ]
    for run in runs:
        if problem is None:
            assert_as_oracle(system, run(), events)
            continue
        with pytest.raises(SourceError, match=f"the derived stream `urn:s` {problem}"):
            run()


@pytest.mark.sampled(4)
@pytest.mark.parametrize("within", [X, iri("http://example.org/g")], ids=["in graphs", "in one graph"])
@pytest.mark.parametrize("planner", ["rete", "greedy"])
def test_quads_of_a_derived_stream_meet_their_join_partners(planner: str, within: Variable | Term) -> None:
    """The quads are read as triples, in the tasks that have the facts about their subjects."""
    quads = (Construct((AtomPattern(QUAD, (within, Y, Q, X)),)),)
    copy = System("m", joinables=(Pattern(X, P, Y),), consequences=quads, reentrant=False)
    maker = System(subsystems=(copy,), stream="urn:s", output="istream")
    body = (Pattern(X, Q, Y), Pattern(X, S, Z))
    reads = System("r", (Source("urn:s", SlidingWindow(50)), Source()), body, consequences=makes(X, R, Z))
    system = System(subsystems=(maker, reads))
    lines = (f"{time} :n{time} :p :m{time % 7}\n{time} :m{time % 5} :s :k{time}\n" for time in range(20))
    events = stream("".join(lines))
    for size in (4, 40):
        batches = [events[at : at + size] for at in range(0, len(events), size)]
        outputs = in_memory.run(squall.plan(system, planner), batches)
        assert_as_oracle(system, outputs, events)
        assert any(output.rule == "r" for output in outputs)
