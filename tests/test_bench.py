"""The benchmark: reproducible data, engines that agree, and a harness that measures correctly."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from hashlib import sha256
from itertools import islice
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

import squall
from squall.builders.local.event_loop import EventLoop
from squall.model import System, rules
from squall.rdf import Columns, Event, Term
from squall.reasoning.schema import Schema
from tests import conformance
from tests.bench import __main__ as bench
from tests.bench import adaptive, codes, data, instructions, lars, ours, peers, report, sweep, waves
from tests.bench.child import digest, prepare, waits
from tests.bench.data import u
from tests.bench.entailment import facts
from tests.bench.soak import Soak, soak
from tests.bench.watch import Failed, Measured, measure
from tests.bench.works import Q3, WORKS, Answer, Task, Work, over_sensors

OURS = "rete:iterator"


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (lambda: data.sensors(1000), "8a38b32a1d40"),
        (lambda: data.skewed(1000), "74bb86db5f4a"),
        (data.platforms, "36643ec66403"),
        (lambda: data.university(1000), "99c0ebea6ede"),
        (data.hierarchy, "06c4b4db6faf"),
    ],
    ids=["sensors", "skewed", "platforms", "university", "hierarchy"],
)
def test_data_are_the_same_everywhere(lines: Callable[[], Iterator[str]], expected: str) -> None:
    assert sha256("\n".join(lines()).encode()).hexdigest()[:12] == expected


def test_data_of_one_size_begin_those_of_a_larger_one() -> None:
    assert list(data.sensors(100)) == list(islice(data.sensors(1000), 100))
    assert len(list(data.university(1234))) == 1234


def test_instructions_are_counted_of_works_that_there_are() -> None:
    assert {*instructions.SIZES} <= {*WORKS}
    assert 0 < instructions.evaluate("q3", 2000) == instructions.evaluate("q3", 2000, construction=True)


def test_adaptive_planning_is_measured_by_runs_with_the_same_outputs() -> None:
    for figures in (adaptive.measure("stable", 2, 1), adaptive.measure_short("q3", 4000, 1)):
        outputs = [count for _, count, _ in figures.values()]
        assert outputs[0]
        assert len({*outputs}) == 1


# -- engines -----------------------------------------------------------------------------------------------------------

SIZES = {"chain": 20, "tree": 100, "spark-entailment": 1500}
OTHERS = ("many-10", "many-1000", "many-10000", "spark-q4")  # as `many-100`, and `spark-q4-skewed`
AGREEING = [work for work in WORKS if work not in OTHERS]


def answer(run: str, work: Work, folder: Path) -> Answer:
    return prepare(run, Task(work, work.files(folder), work.slide, warm=0))()


def can(run: str, work: Work) -> None:
    if reason := peers.reason(run, work):
        pytest.skip(reason)


def pairs() -> Iterator[object]:
    """Yields each workload with each peer that is meant for it. Some of them take long."""
    for name in AGREEING:
        for run, peer in peers.PEERS.items():
            if run == peers.PARSING or not peers.does(run, WORKS[name]):
                continue
            slow = (bool(peer.tools) or run.startswith("rdflib")) and (name, run) != ("q3", "jena")
            yield pytest.param(name, run, marks=[pytest.mark.slow] if slow else [], id=f"{name}-{run}")


@pytest.mark.more
@pytest.mark.parametrize(("name", "run"), list(pairs()))
def test_peers_agree_with_us(name: str, run: str, tmp_path: Path) -> None:
    work = WORKS[name]
    can(run, work)
    work.write(tmp_path, SIZES.get(name, 400))
    expected = digest(answer(OURS, work, tmp_path).facts)
    assert expected["outputs"] > 0
    assert digest(answer(run, work, tmp_path).facts) == expected


@pytest.mark.parametrize("name", ["q3", "q9", "many-100", "rdfs"])
def test_a_stream_in_memory_is_given_as_columns_or_as_events(name: str, tmp_path: Path) -> None:
    work = WORKS[name]
    work.write(tmp_path, 4000)
    task = Task(work, work.files(tmp_path), work.slide)
    inputs, as_events = (list(ours.batched(task, columns)) for columns in (True, False))
    assert {isinstance(batch, Columns) for batch in inputs} == {work.timed}
    assert list(map(list, inputs)) == list(map(list, as_events))
    digests = [digest(answer(run, work, tmp_path).facts) for run in (OURS, ours.GIVEN_EVENTS)]
    assert digests[0] == digests[1]
    assert digests[0]["outputs"] > 0


@pytest.mark.parametrize("form", ["columns", "events"])
def test_the_form_of_a_run_names_its_input(form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []

    process = EventLoop.process

    def noted(loop: EventLoop, batch: Any) -> Any:
        read.append("columns" if isinstance(batch, Columns) else "events")
        return process(loop, batch)

    WORKS["q3"].write(tmp_path, 4000)
    monkeypatch.setattr(EventLoop, "process", noted)
    list(answer(OURS if form == "columns" else ours.GIVEN_EVENTS, WORKS["q3"], tmp_path).facts)
    assert read == [form] * 4


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", AGREEING)
def test_planners_agree(name: str, tmp_path: Path) -> None:
    WORKS[name].write(tmp_path, SIZES.get(name, 400))
    digests = [digest(answer(run, WORKS[name], tmp_path).facts) for run in (OURS, "greedy:iterator")]
    assert digests[0] == digests[1]


def test_the_codes_of_litemat() -> None:
    """The hierarchy is a part of LUBM's."""
    code_by_class = codes.encode(
        {
            "Thing": ["Schedule", "Organization", "Publication", "Work", "Person"],
            "Person": ["Employee", "Student"],
            "Employee": ["Faculty", "Chair", "Director", "Staff"],
            "Faculty": ["Lecturer", "PostDoc", "Professor"],
            "Professor": ["AssistantProfessor", "AssociateProfessor"],
        }
    )
    expected = {
        "Person": 6656, "Employee": 6784, "Faculty": 6800, "Lecturer": 6804, "PostDoc": 6808, "Professor": 6812,
        "AssistantProfessor": 6813, "AssociateProfessor": 6814,
    }  # fmt: skip
    assert {name: code_by_class[name].begin for name in expected} == expected
    assert code_by_class["Faculty"] == (6800, 6816)
    assert code_by_class["Professor"] == (6812, 6816)
    assert codes.below("Professor", code_by_class) == ["Professor", "AssistantProfessor", "AssociateProfessor"]


def test_the_codes_of_the_hierarchy_are_its_subclasses() -> None:
    schema = Schema(facts(data.hierarchy()))
    code_by_class = codes.encode(codes.hierarchy())
    for name in code_by_class:
        if name != codes.ROOT:
            assert {*map(u, codes.below(name, code_by_class))} == schema.subclasses(Term(u(name))), name


def test_a_rule_set_agrees_with_compiled_entailment(tmp_path: Path) -> None:
    name = "spark-entailment"
    WORKS[name].write(tmp_path, SIZES[name])
    compiled, by_rules = (digest(answer(run, WORKS[name], tmp_path).facts) for run in (OURS, f"{OURS}:{ours.RULES}"))
    assert compiled == by_rules
    assert compiled["outputs"] > 0


WINDOW = 160


def delayed(size: int) -> Iterator[str]:
    """Yields the sensor stream, in which the number of every second observation comes more than a window later."""
    lines = list(data.sensors(size))
    times, triples = zip(*(line.split(" ", 1) for line in lines), strict=True)
    moved = list(triples)
    for slot in range(14, size, 16):
        moved[slot] = triples[slot - WINDOW - 32] if slot >= WINDOW + 32 else "<urn:a> <urn:b> <urn:c> ."
    return map(" ".join, zip(times, moved, strict=True))


KEEPING = [OURS, *(name for name, peer in peers.PEERS.items() if "join" in peer.kinds and name != peers.PARSING)]


@pytest.mark.parametrize(
    "run", [pytest.param(run, marks=[pytest.mark.slow] if "jena" in run else []) for run in KEEPING]
)
def test_expired_facts_are_not_joined(run: str, tmp_path: Path) -> None:
    work = replace(over_sensors("q3", Q3, window=WINDOW), stream=delayed)
    if run in peers.PEERS:
        can(run, work)
    work.write(tmp_path, 1600)
    outputs = {line for number, line in reads(1600) if number % 2 == 0}
    assert set(answer(run, work, tmp_path).facts) == outputs


def reads(size: int) -> Iterator[tuple[int, str]]:
    """Yields the number of each observation that is a SensorOutput, and the fact that follows from it."""
    for number, lines in enumerate(islice(data.observations(), size // 8)):
        if lines[0].endswith(f"{data.s('SensorOutput')} ."):
            degrees = lines[6].split(" ")[2]
            yield number, f"{data.s(f'o{number}')} {data.s('reads')} {degrees} ."


def test_each_event_is_timed(tmp_path: Path) -> None:
    WORKS["latency"].write(tmp_path, 400)
    result = answer(OURS, WORKS["latency"], tmp_path)
    assert len(result.latencies) == len(list(result.facts)) == len(list(reads(400)))
    assert 0 < min(result.latencies) <= max(result.latencies) < 5


def test_waits_are_in_microseconds() -> None:
    result = waits(tuple(number / 1e6 for number in range(1, 100)))
    assert result == {"median_us": pytest.approx(50), "p99_us": pytest.approx(99)}
    assert waits(()) == {}


def test_why_a_peer_is_left_out(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setitem(peers.PEERS, "absent", replace(peers.PEERS["rdflib"], needs="no_such_package"))
    monkeypatch.setitem(peers.PEERS, "toolless", replace(peers.PEERS["rdflib"], tools=("no-such-tool",)))
    request = ["reasonable", "rdflib-tumbling", "absent", "toolless", "pyoxigraph"]
    assert bench.able(request, "rdfs")[-1:] == ["pyoxigraph"]
    assert bench.able(request, "q3") == ["rdflib-tumbling", "pyoxigraph"]
    message = capsys.readouterr().err
    assert "left out: rdflib-tumbling: does not do `rdfs`" in message
    assert "left out: absent: the package `no_such_package` is not installed" in message
    assert "left out: toolless: there is no `no-such-tool` on the path" in message
    assert "left out: reasonable: does not do `q3`" in message


# -- measuring ---------------------------------------------------------------------------------------------------------

SPENDING = """
import json, time
print(json.dumps({"at": "start"}), flush=True)
held = bytearray(b"x") * 80_000_000
end = time.process_time() + 0.4
while time.process_time() < end:
    pass
time.sleep(0.3)
print(json.dumps({"at": "end"}), flush=True)
time.sleep(0.5)
print(json.dumps({"at": "found", "outputs": 7}), flush=True)
"""
IN_A_CHILD = f"import subprocess, sys; sys.exit(subprocess.run([sys.executable, '-c', {SPENDING!r}]).returncode)"

needs_proc = pytest.mark.skipif(not Path("/proc/self/smaps_rollup").exists(), reason="measures with Linux's /proc")


@needs_proc
@pytest.mark.parametrize("code", [SPENDING, IN_A_CHILD], ids=["itself", "in a child"])
def test_a_run_is_measured(code: str, tmp_path: Path) -> None:
    measured = measure([sys.executable, "-c", code], tmp_path)
    assert measured.said == {"outputs": 7}
    assert 0.25 < measured.cpu < 1.5
    assert measured.wall >= 0.7
    assert measured.total > measured.wall + 0.5
    assert 80e6 < measured.peak < 300e6


@needs_proc
def test_a_run_may_measure_itself(tmp_path: Path) -> None:
    code = SPENDING.replace('{"at": "end"}', '{"at": "end", "wall": 7, "cpu": 5}')
    measured = measure([sys.executable, "-c", code], tmp_path)
    assert (measured.wall, measured.cpu) == (7, 5)


@needs_proc
def test_a_failing_run_reports_its_error(tmp_path: Path) -> None:
    with pytest.raises(Failed, match="it is broken"):
        measure([sys.executable, "-c", "raise SystemExit('it is broken')"], tmp_path)
    with pytest.raises(Failed, match="exit code 0"):
        measure([sys.executable, "-c", ""], tmp_path)
    with pytest.raises(Failed, match="no end after 0 s"):
        measure([sys.executable, "-c", "import time; time.sleep(60)"], tmp_path, limit=0.2)


@pytest.mark.more
@needs_proc
def test_the_command_prints_and_saves_its_measurements(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    state = tmp_path / "figures.json"
    command = ["tree", "plans", "--size", "20", "--repeat", "1", "--peer", "pyoxigraph", "--json", str(state)]
    assert bench.main(command) == 0
    rows = json.loads(state.read_text())
    assert [row.get("run", row.get("planner")) for row in rows] == [OURS, "pyoxigraph", "greedy", "rete"]
    assert rows[0]["outputs"] == rows[1]["outputs"] > 0
    assert rows[1]["same"] is True
    assert rows[2]["nodes"] > rows[3]["nodes"]
    text = capsys.readouterr().out
    assert "same answer" in text
    assert OURS in text


@needs_proc
def test_a_peer_that_fails_is_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("bytewax")
    rows = bench.compare("many-10", [OURS, "bytewax"], 80, 1)  # it takes one rule only
    assert [row["run"] for row in rows] == [OURS]
    assert "left out: bytewax: Traceback" in capsys.readouterr().err
    with pytest.raises(Failed):
        bench.compare("tree", ["rete:nothing"], 20, 1)


def test_a_peer_that_takes_long_is_run_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The runs of squall are repeated as often as requested, however long they take."""

    def measured(command: list[str], *_: object) -> Measured:
        return Measured(1, 1, {"clingo": 1}.get(command[4], bench.LONG), 1, {"digest": "", "outputs": 0})

    monkeypatch.setattr(bench, "measure", measured)
    rows = bench.compare("tree", [OURS, "clingo", "polars"], 20, 3)
    assert [row["repetitions"] for row in rows] == [3, 3, 1]


def test_an_unknown_run_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        bench.main(["tree", "--run", "rete:nothing"])
    assert caught.value.code == 2
    assert "no `nothing` among" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        bench.main(["tree", "--run", "rete:iterator:rows"])
    assert "no `rows` behind a builder" in capsys.readouterr().err
    assert bench.pair(ours.GIVEN_EVENTS) == ours.GIVEN_EVENTS


# -- what is written ---------------------------------------------------------------------------------------------------


def row(run: str, rate: float, own: float = 1000) -> dict[str, object]:
    return {
        "work": "q3-small", "run": run, "triples": 100_000, "repetitions": 3, "outputs": 7, "peak_mb": 50.2,
        "triples_per_s": rate, "triples_per_cpu_s": rate, "ratio": rate / own, "cpu_ratio": rate / own, "same": True,
    }  # fmt: skip


FIGURES = {
    "machine": "Measured.",
    "parts": [
        {
            "title": report.PARTS[0].title,
            "rows": [row(OURS, 1000), row(ours.GIVEN_EVENTS, 800), row("jena", 200)],
            "left_out": {"bytewax": "why"},
        }
    ],
}


ENGINES, SPARK = report.CHAPTERS


def test_a_chapter_has_a_table_for_each_part() -> None:
    lines = report.tables(ENGINES, FIGURES).splitlines()
    assert "| **squall** | 1,000 | 1,000 |  |  |  | 50 | yes |" in lines
    assert "| squall, given events | 800 | 800 | 1.25 | 1.25 |  | 50 | yes |" in lines
    assert "| jena | 200 | 200 | 5.00 | 5.00 | 5 | 50 | yes |" in lines
    assert "| *C-SPARQL* |  | 62 |  | 16.1 | 10 |  | not run |" in lines
    assert "Left out: bytewax, because: why." in lines


def test_a_part_without_figures_gives_the_reason() -> None:
    part = {"title": report.PARTS[0].title, "rows": [], "left_out": {"squall": "Traceback\nit is broken"}}
    lines = list(report.section(part))
    assert lines == [f"### {report.PARTS[0].title}", "", "Left out: squall, because: it is broken.", ""]


def test_only_what_is_between_the_marks_is_written(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    begin, end = ENGINES.marks
    page.write_text(f"before\n{begin}old\n{end}\nafter\n")
    report.put(page, "new", ENGINES.marks)
    assert page.read_text() == f"before\n{begin}\nnew\n{end}\nafter\n"
    with pytest.raises(SystemExit, match="has no marks"):
        report.put(page, "new", SPARK.marks)


@pytest.fixture
def page(tmp_path: Path) -> Path:
    """Writes a page, with files of the measurements of its chapters beside it."""
    page = tmp_path / "page.md"
    page.write_text("\n".join("".join(chapter.marks) for chapter in report.CHAPTERS))
    (tmp_path / "page").mkdir()
    for chapter in report.CHAPTERS:
        (tmp_path / "page" / f"{chapter.name}.json").write_text(json.dumps(FIGURES))
    return page


def test_saved_measurements_can_be_written_again(page: Path) -> None:
    pytest.importorskip("matplotlib")
    plots = []
    for _ in range(2):
        assert report.main(["engines", "--kept", "--page", str(page)]) == 0
        plots.append((page.parent / "page" / "engines.svg").read_text())
    assert plots[0] == plots[1]
    assert "squall" in plots[0]
    assert report.tables(ENGINES, FIGURES) in page.read_text()
    assert "".join(SPARK.marks) in page.read_text()


def test_an_unknown_chapter_is_reported(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        report.main(["engines", "others"])
    assert "no `others` among engines, spark" in capsys.readouterr().err


def test_some_workloads_are_run_and_the_figures_of_others_stay(page: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("matplotlib")
    rows = [row(OURS, 3000)]
    monkeypatch.setattr(report, "compare", lambda *_: rows)
    monkeypatch.setattr(report, "machine", lambda _: "Measured.")
    assert report.main(["engines", "--only", "tree", "--page", str(page)]) == 0
    parts = json.loads((page.parent / "page" / "engines.json").read_text())["parts"]
    first, *trees = report.PARTS[0], *(part for part in ENGINES.parts if part.work == "tree")
    assert [part["title"] for part in parts] == [part.title for part in (first, *trees)]
    assert parts[0] == FIGURES["parts"][0]
    assert all(part["rows"] == rows for part in parts[1:])
    monkeypatch.setattr(report, "machine", lambda _: "Measured elsewhere.")
    with pytest.raises(SystemExit, match="of another machine"):
        report.main(["engines", "--only", "tree", "--page", str(page)])


def test_on_spark_what_takes_long_is_run_once(page: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("matplotlib")
    request = []

    def compare(work: str, runs: list[str], size: int, repeat: int, *_: object) -> list[dict[str, object]]:
        request.append((work, runs[0], size, repeat))
        return [row("rete:spark", 3000) | {"repetitions": repeat}]

    monkeypatch.setattr(report, "compare", compare)
    assert report.main(["spark", "--repeat", "5", "--page", str(page)]) == 0
    assert request == [
        (part.work, "rete:spark", part.size, 1 if part.size > 1_000_000 or part.once else 5) for part in SPARK.parts
    ]
    assert "7 facts derived, medians of 5 runs." in page.read_text()
    assert "7 facts derived, one run." in page.read_text()
    assert "| **squall** | 3,000 | 3,000 |" in page.read_text()


def test_bars_far_apart_are_on_a_logarithmic_axis(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    from tests.bench import plots

    for name, most in (("near", 39.0), ("far", 41.0)):
        plots.seconds([("4 queries", {"squall, one job": 1.0, "as many jobs": most})], tmp_path / name)
    assert ">seconds<" in (tmp_path / "near").read_text()
    assert ">seconds (logarithmic)<" in (tmp_path / "far").read_text()
    assert plots.OURS in (tmp_path / "near").read_text()


def test_parts_name_existing_works() -> None:
    assert len({part.title for part in report.PARTS}) == len(report.PARTS)
    assert {part.work for part in report.PARTS} <= set(WORKS)
    for part in report.PARTS:
        assert all(peers.does(name, WORKS[part.work]) for name in part.peers)


# -- soaking -----------------------------------------------------------------------------------------------------------


@needs_proc
def test_a_soak_looks_at_memory_as_it_goes() -> None:
    result = soak(1000, 125, "q3", OURS, looks=4)
    assert [events for events, _, _ in result.samples] == [250, 500, 750, 1000]
    assert all(used >= result.before * 0.9 for _, used, _ in result.samples)


def test_growth_and_state_are_computed_from_samples() -> None:
    steady = Soak(100, 1000, [(number * 100, 9000, 10.0) for number in range(1, 9)])
    assert (steady.growth, steady.state) == (1.0, 10.0)
    leaking = Soak(100, 1000, [(number * 100, number * 1000, float(number)) for number in range(1, 9)])
    assert (leaking.growth, leaking.state) == (2.0, 8.0)


def test_the_queries_of_strider_are_measured_window_by_window(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(waves, "SENSORS", 10)
    events = waves.events_of(waves.STREAMS["unstable"], 1)
    sizes = [sum(len(event.facts) for event in events if event.time // 10_000 == window) for window in range(3)]
    result = waves.run("Q7", events, 3, adapt=True)
    assert result.triples == sizes
    assert result.outputs == 3 * waves.VALUES**2  # one sensor has a value of the rare kind in each window
    assert all(len({event.time // 10_000 for event in batch}) == 1 for batch in waves.batches(events))
    of_subclasses = waves.events_of(waves.STREAMS["unstable"], 1, subclasses=True)
    assert waves.run("Q8", of_subclasses, 3, adapt=False).outputs == result.outputs
    assert waves.run("Q7", of_subclasses, 3, adapt=False).outputs == 0
    waves.main(["--windows", "1", "--repeat", "1", "--query", "Q4"])
    rows = [line.split("|") for line in capsys.readouterr().out.splitlines()[2:]]
    assert [(row[1].strip(), row[2].strip(), int(row[9])) for row in rows] == [
        ("Q4", "stable", 30), ("Q4", "unstable", 30)
    ]  # fmt: skip


def test_lars_programs_are_measured(capsys: pytest.CaptureFixture[str]) -> None:
    lars.main(["--triples", "800", "--repeat", "1", "--program", "Q1", "--builder", "iterator"])
    (row,) = [line.split("|") for line in capsys.readouterr().out.splitlines()[2:]]
    kinds = [line.split()[3] for line in data.sensors(800)]
    assert (row[1].strip(), int(row[-2])) == ("Q1", kinds.count(data.s("SensorOutput")))


def test_a_sweep_compares_planners(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "near.jena").write_text("[(?x <urn:p> ?y) (?y <urn:q> <urn:c>) -> (?x <urn:r> ?y)]")
    (tmp_path / "wrong.jena").write_text("[(?x <urn:p> ?y) -> ")
    (tmp_path / "notes.txt").write_text("no program")
    assert sweep.main([str(tmp_path), "--triples", "200", "--json", str(tmp_path / "costs.json")]) == 0
    (costs,) = json.loads((tmp_path / "costs.json").read_text())
    assert costs["program"].endswith("near.jena")
    assert costs["greedy"][2] == costs["rete"][2] > 0
    assert "1 programs are refused" in capsys.readouterr().err


def test_a_sweep_finds_the_more_expensive_plan() -> None:
    cheap, expensive = sweep.Cost(1, 1e8, 5), sweep.Cost(1.5, 1e8, 5)
    assert sweep.Comparison("p", greedy=cheap, rete=expensive).ratios == (1.5, 1, 1)
    assert sweep.Comparison("p", greedy=cheap, rete=sweep.TOO_MUCH).ratios == (math.inf, math.inf, math.inf)
    assert sweep.Comparison("p", greedy=sweep.Cost(0.01, 0, 5), rete=sweep.Cost(0.15, 1e6, 5)).ratios == (1, 1, 1)
    many = sweep.Comparison("p", greedy=cheap._replace(rows=40_000), rete=cheap._replace(rows=60_000))
    assert max(many.ratios) == many.ratios[2] == 1.5
    assert not sweep.Comparison("p", greedy=cheap, rete=cheap._replace(outputs=4)).is_same


def test_a_sweep_measures_only_plans_that_differ(monkeypatch: pytest.MonkeyPatch) -> None:
    measured: list[bool] = []

    def cost(system: System, planner: str, events: Sequence[Event], count_rows: bool = False) -> sweep.Cost:
        measured.append(not count_rows)
        return sweep.Cost(1, 1, 1, {"rete": 40_000 if len(list(rules(system))) > 1 else 30_000}.get(planner, 30_000))

    monkeypatch.setattr(sweep, "cost", cost)
    rule = "[(?x <urn:p> ?y) -> (?x <urn:q> ?y)]"
    same = sweep.compared("same", squall.compile(rule, lexer="jena"), 10)
    assert max(same.ratios) == 1
    assert not any(measured)
    measured.clear()
    system = squall.compile(f"{rule} [(?x <urn:r> ?y) -> (?x <urn:q> ?y)]", lexer="jena")
    assert sweep.compared("other", system, 10).ratios == (1, 1, 4 / 3)
    assert measured == [False, False] + [True] * 2 * sweep.REPETITIONS


def test_an_interrupted_sweep_shows_what_it_has(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def compared(name: str, system: System, triples: int) -> sweep.Comparison:
        if "second" in name:
            raise KeyboardInterrupt
        return sweep.Comparison(name, sweep.Cost(1, 0, 1), sweep.Cost(2, 0, 1))

    monkeypatch.setattr(sweep, "compared", compared)
    for name in ("first", "second"):
        (tmp_path / f"{name}.jena").write_text(f"[(?x <urn:p> ?y) -> (?x <urn:{name}> ?y)]")
    assert sweep.main([str(tmp_path)]) == 1
    output, errors = capsys.readouterr()
    assert "1 programs; rete takes over 1.2 times as much in 1" in output
    assert "first.jena: CPU, memory and rows 2.00, 1.00, 1.00" in errors


def test_a_run_of_a_sweep_that_fails_otherwise_is_reported(capfd: pytest.CaptureFixture[str]) -> None:
    system = squall.compile("[(?x <urn:p> ?y) -> (?x <urn:q> ?y)]", lexer="jena")
    with patch.object(sweep, "_run", side_effect=ZeroDivisionError), pytest.raises(RuntimeError, match="has failed"):
        sweep.cost(system, "rete", [])
    assert "Traceback" in capfd.readouterr().err


def test_a_sweep_takes_what_the_cases_of_a_suite_plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    system = squall.compile("[(?x <urn:p> ?y) -> (?x <urn:q> ?y)]", lexer="jena")
    names = ["a", "b", "c"]

    def run(stages: conformance.Stages) -> None:
        squall.plan(system, stages.planner)

    def cases(folder: Path) -> list[conformance.Case]:
        return [conformance.Case(name, run) for name in names]

    monkeypatch.setattr(conformance, "SUITES", {"cqels": "tests.conformance.cqels_suite"})
    monkeypatch.setattr("tests.conformance.cqels_suite.cases", cases)
    (tmp_path / "cqels").mkdir()
    assert list(sweep.conformance_systems(tmp_path, every=2)) == [("cqels a", system), ("cqels c", system)]


def test_a_run_of_a_sweep_that_takes_too_much_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sweep, "MAX_SECONDS", 1)
    system = squall.compile("[(?x <urn:p> ?y) (?z <urn:p> ?w) -> (?x ?z ?w)]", lexer="jena")
    assert sweep.cost(system, "rete", sweep.random_events(system, 5000)) == sweep.TOO_MUCH
