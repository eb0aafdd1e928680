"""Checkpoints of programs that have lost rules since: what goes on does as if they had never been, or is refused."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import strategies as st

import squall
from squall.builders.local import checkpoint
from squall.builders.local.event_loop import EventLoop
from squall.builders.local.job import IteratorJob
from squall.builders.local.migration import state_kinds, without_removed_rules
from squall.builders.runtime.tuning import DEFAULT_TUNING, Tuning
from squall.contracts import Interval, Options, Output
from squall.errors import BuilderError
from squall.model import System
from squall.model.reports import CLOSE, Report
from squall.rdf import Event
from squall.streams import Sources, open_sink, open_source
from squall.testing import stream
from squall.testing.strategies import event_streams, static_data
from tests.conftest import Squall
from tests.laws import FEW_EXAMPLES, examples, examples_of, hold
from tests.test_durable import EACH, Kept, timed_lines

PROGRAM = {
    "hot": "[hot: (?s :reads ?v) greaterThan(?v, 30) -> (?s :is :Hot)]",
    "cold": "[cold: (?s :in ?r) noValue(?s :is :Hot) -> (?r :has :Cold)]",
    "alike": "[alike: (?s :reads ?v) (?t :reads ?v) notEqual(?s, ?t) -> (?s :like ?t)]",
    "warm": "[warm: (?s :reads ?v) (?s :in ?r) greaterThan(?v, 20) -> (?r :has ?v)]",
}


LESS = ("hot", "cold", "alike")


class Killed(Exception):
    """What ends a run of these tests."""


def given(batches: Sequence[Sequence[Event]], count: int) -> Iterator[Sequence[Event]]:
    """Yields some batches, and then kills the run."""
    yield from batches[:count]
    raise Killed


def until_killed(
    plan: Any,
    options: Options,
    batches: Sequence[Any],
    count: int,
    facts: Sequence[Event],
    tuning: Tuning = DEFAULT_TUNING,
) -> list[Output]:
    """Returns the outputs of a run until it is killed; its sink has received them."""
    sink = options.sink if isinstance(options.sink, Kept) else Kept()
    with suppress(Killed):
        for output in IteratorJob(plan, options, tuning).run(given(batches, count), facts):
            sink.outputs.append(output)
    return sink.outputs


POOL = {
    "one": "(?s :p ?o) -> (?s :made ?o)",
    "two": "(?s :q ?o) -> (?s :made ?o)",
    "three": "(?s :r ?o) -> (?s :made ?o)",
    "joined": "(?s :p ?o) (?o :q ?t) -> (?s :joined ?t)",
    "closed": "(?a :joined ?b) (?b :joined ?c) -> (?a :joined ?c)",
    "lacking": "(?s :q ?o) noValue(?s :p ?o) -> (?s :lacks ?o)",
    "star": "(?s :p ?o) (?s :q ?t) (?s :r ?u) -> (?s :star ?u)",
    "pair": "(?s :p ?o) (?s :q ?t) -> (?s :pair ?t)",
    "wide": "(?s :p ?o) (?s :q ?t) (?s :r ?u) (?s :n ?v) -> (?s :wide ?v)",
    "again": "(?s :made ?o) -> (?o :again ?s)",
}
"""Rules some of which share nodes, facts, fused joins and the instants of evaluation."""
WINDOWS = ("RANGE 20ms", "RANGE 12ms STEP 5ms", "TRIPLES 4 STEP 1", "LANDMARK")


def system_of(names: Collection[str], window: str, output: str, report: Report) -> System:
    text = "\n".join(["@prefix : <http://example.org/> .", *(f"[{name}: {POOL[name]}]" for name in names)])
    system = squall.compile(text, lexer="jena", window=window)
    return replace(system, output=output, report=report)


@examples(150)
def test_the_remaining_rules_resume(many: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    """This holds at whatever point rules are removed, and whether the log is rewritten each time or only appended
    to."""
    migrated = refused = 0

    def law(
        names: list[str], number: int, emitted: tuple[str, str, Report], events: list[Event], facts: list[Event],
        cuts: list[int], share: int, least: int,
    ) -> None:  # fmt: skip
        nonlocal migrated, refused
        tuning = Tuning(min_log_growth=least)
        left = names[: max(1, len(names) - number)]
        before, after = (squall.plan(system_of(some, *emitted)) for some in (sorted(names), sorted(left)))
        folder, sink = tmp_path_factory.mktemp("run"), Kept()
        places = [0, *sorted(min(cut, len(events)) for cut in cuts), len(events)]
        batches = [events[begin:end] for begin, end in pairwise(places) if begin < end]
        count = share % (len(batches) + 1)
        options = Options(checkpoint=folder, sink=sink, checkpoint_interval=EACH)
        until_killed(before, options, batches, count, facts, tuning)
        try:
            with closing(
                IteratorJob(after, replace(options, allow_removed_rules=True), tuning).run(batches, facts)
            ) as outputs:  # type: ignore[type-var]
                results = list(outputs)
        except BuilderError as error:
            if not re.search("another run|cannot resume from", error.message):
                raise
            refused += 1
            return
        migrated += 1
        while count and not any(event.facts for event in batches[count - 1]):
            count -= 1  # a checkpoint is written when statements have come
        existing = until_killed(after, Options(), batches, count, facts)
        full_result = list(squall.build(after, options=Options()).run(batches, facts))
        remainder = Counter(out[:2] for out in full_result)
        remainder.subtract(Counter(out[:2] for out in existing))
        assert Counter(out[:2] for out in results) == +remainder

    names = st.lists(st.sampled_from(sorted(POOL)), min_size=2, max_size=5, unique=True)
    ways = [("istream", CLOSE), ("dstream", CLOSE), ("rstream", CLOSE), ("rstream", Report("change"))]
    emitted = st.builds(lambda window, way: (window, *way), st.sampled_from(WINDOWS), st.sampled_from(ways))
    cuts, share = st.lists(st.integers(0, 12), max_size=4), st.integers(0, 9)
    least, features = st.sampled_from([-1, 1 << 20]), frozenset[str]()
    data = {"events": event_streams(features=features), "facts": static_data(features=features)}
    hold(law, many, names=names, number=st.integers(1, 3), emitted=emitted, cuts=cuts, share=share, least=least, **data)
    assert FEW_EXAMPLES or migrated > examples_of(many) / 4
    assert FEW_EXAMPLES or refused > examples_of(many) / 10


def run(folder: Path, *names: str, migrate: bool = False, **changes: Any) -> list[str]:
    """Returns the lines that a run adds to the output file."""
    text = "\n".join(["@prefix : <http://example.org/> .", *({**PROGRAM, **changes}[name] for name in names)])
    plan = squall.plan(squall.compile(text, lexer="jena", window="RANGE 300ms"))
    sink = open_sink(f"{folder}/out.ntt")
    options = Options(
        checkpoint=folder / "kept",
        sink=sink,  # type: ignore[arg-type]
        checkpoint_interval=Interval(statements=20),
        allow_removed_rules=migrate,
    )
    with closing(sink):
        sink.start(resume=(folder / "kept").exists())
        before = (folder / "out.ntt").stat().st_size
        for output in squall.build(plan, options=options).run(Sources([open_source(f"{folder}/in")])):
            sink.write(output)
    return (folder / "out.ntt").read_text()[before:].splitlines()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "in").mkdir()
    say(tmp_path, 0)
    return tmp_path


def say(folder: Path, number: int) -> None:
    text = "".join(
        line for line in timed_lines(60, number, first=1000 * number).splitlines(True) if "broken" not in line
    )
    (folder / "in" / f"{number}.ntt").write_text(text)


def test_a_rule_is_taken_away(folder: Path) -> None:
    run(folder, *PROGRAM)
    (folder / "other").mkdir()
    (folder / "other" / "in").symlink_to(folder / "in")
    run(folder / "other", *LESS)
    say(folder, 1)
    with pytest.raises(BuilderError, match=r"another run: without rules `warm`\n") as caught:
        run(folder, *LESS)
    assert caught.value.hint is not None
    assert "`--allow-removed-rules`" in caught.value.hint
    outputs = run(folder, *LESS, migrate=True)
    assert outputs
    assert Counter(outputs) == Counter(run(folder / "other", *LESS))
    for number in (2, 3):
        say(folder, number)
        assert Counter(run(folder, *LESS)) == Counter(run(folder / "other", *LESS))
    say(folder, 4)
    left = Counter(line for line in run(folder / "other", *LESS) if "like" not in line)
    assert Counter(run(folder, "hot", "cold", migrate=True)) == left


def test_a_killed_migration_is_repeated(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run(folder, *PROGRAM)
    say(folder, 1)
    existing = (folder / "kept" / checkpoint.CHECKPOINT_FILE).read_bytes()

    def fail(*_: Any) -> None:
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(checkpoint.Checkpoint, "_append", fail)
        with pytest.raises(Killed):
            run(folder, *LESS, migrate=True)
    assert (folder / "kept" / checkpoint.CHECKPOINT_FILE).read_bytes() == existing
    assert run(folder, *LESS, migrate=True)


@pytest.mark.parametrize(
    ("names", "changes", "message"),
    [
        (["hot", "cold", "alike"], {}, "without rules `warm`\n"),
        (["cold", "alike", "warm"], {}, "changed rules `cold`"),
        (["hot", "cold", "alike", "warm"], {"warm": PROGRAM["warm"].replace("20", "21")}, "changed rules `warm`"),
        (["hot", "cold", "alike", "warm", "new"], {"new": "[new: (?s :in ?r) -> (?r :of ?s)]"}, "with rules `new`"),
    ],
)
def test_what_cannot_be_migrated_exactly_is_refused(
    folder: Path, names: list[str], changes: dict[str, Any], message: str
) -> None:
    run(folder, *PROGRAM)
    with pytest.raises(BuilderError, match=message):
        run(folder, *names, **changes)
    if "without" in message:
        run(folder, *names, migrate=True, **changes)
    else:
        with pytest.raises(BuilderError, match=message):
            run(folder, *names, migrate=True, **changes)


@pytest.mark.parametrize("window", ["RANGE 3ms", "RANGE 3ms STEP 2ms"])
@pytest.mark.parametrize("count", [1, 2, 3, 4])
def test_events_of_an_incomplete_instant_are_kept(tmp_path: Path, count: int, window: str) -> None:
    """Only the query that is removed needs complete instants, for its negation."""
    query = "PREFIX : <http://example.org/> SELECT ?s { ?s :p ?o %s}"
    (tmp_path / "all.rq").write_text(query % "")
    (tmp_path / "lacking.rq").write_text(query % "FILTER NOT EXISTS { ?s :q ?t } ")
    before = squall.plan(squall.compile(tmp_path / "all.rq", tmp_path / "lacking.rq", window=window))
    after = squall.plan(squall.compile(tmp_path / "all.rq", window=window))
    batches = [[event] for event in stream("1 :a :p :b\n2 :b :p :c\n2 :c :p :c\n5 :d :p :c\n6 :a :p :b")]
    options = Options(checkpoint=tmp_path / "kept", sink=Kept(), checkpoint_interval=EACH)
    outputs = until_killed(before, options, batches, count, [])
    options = replace(options, allow_removed_rules=True)
    outputs += IteratorJob(after, options).run(batches)
    expected = squall.run(after, [event for batch in batches for event in batch])
    assert sorted(str(output) for output in outputs if output.rule == "all") == sorted(map(str, expected))


def test_what_updates_have_changed_is_refused(folder: Path) -> None:
    update = "[put: (?s :reads ?v) greaterThan(?v, 10) -> drop(0)]"
    run(folder, "hot", "alike", "put", put=update)
    with pytest.raises(BuilderError, match="updates have changed its data"):
        run(folder, "hot", "put", migrate=True, put=update)


def test_a_plan_with_other_state_is_another_one(folder: Path) -> None:
    """Another version might store other state."""
    run(folder, *LESS)
    path = folder / "kept" / checkpoint.CHECKPOINT_FILE
    head, words = path.read_text().split("\n", 1)
    path.write_text(head.replace('"anti-join"', '"other"') + "\n" + words)
    for migrate in (False, True):
        with pytest.raises(BuilderError, match="another run: the state of its nodes"):
            run(folder, *LESS, migrate=migrate)
    with pytest.raises(BuilderError, match="does not hold the state of"):
        run(folder, "hot", "cold", migrate=True)


def test_there_has_to_be_a_checkpoint(squall: Squall, folder: Path) -> None:
    (folder / "x.jena").write_text("[(?a <urn:p> ?b) -> (?b <urn:p> ?a)]")
    code, _, err = squall("build", f"{folder}/x.jena", "--source", f"{folder}/in", "--allow-removed-rules")
    assert code == 2
    assert "`--allow-removed-rules` goes with `--checkpoint`" in err


def test_joins_that_are_done_as_one_keep_what_they_join() -> None:
    """The same node may be the last join of other fused joins, and then stores rows of other inputs."""
    plan = squall.plan(system_of(["wide"], "RANGE 20ms", "istream", CLOSE))
    (star,) = [kind for kind in state_kinds(EventLoop(plan, Options())).values() if kind.startswith("multiway-join")]
    assert "multiway-join ((2, 1, 1, 1)," in star
    with pytest.raises(BuilderError, match="does not hold the state of `join`"):
        without_removed_rules({}, {"join": star.replace("(2, 1, 1, 1)", "(2, 1, 1)")}, {"join": star}, ())
