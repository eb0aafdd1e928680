"""The command line: what it prints where, its exit codes, and that it checks everything before it starts."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NoReturn

import pytest

from squall import explain
from squall.cli.explain import DRAWINGS
from squall.contracts import BuilderCapabilities, Options, Output, declare_capabilities
from squall.observe.progress import Tally, progress_bar
from squall.plan import Plan
from squall.plan.node_metrics import NodeMetric
from squall.rdf import ALWAYS, Event
from squall.streams import Sources, open_source
from tests.conftest import Squall
from tests.live import wait

ROOT = Path(__file__).parent.parent
GOLDEN = Path(__file__).parent / "golden" / "cli"

FAMILY = """\
@prefix : <http://example.org/>.
[anc1: (?a :parent ?b) -> (?a :ancestor ?b)]
[anc2: (?a :parent ?b) (?b :ancestor ?c) -> (?a :ancestor ?c)]
"""
ALARM = """\
@prefix : <http://example.org/>.
[hot: (?s :reads ?v) (?s :in ?r) greaterThan(?v, 30) -> (?r :alarm ?v)]
"""
PEOPLE = """\
@prefix : <http://example.org/> .
:ann :parent :bob . :bob :parent :cat .
"""
READINGS = """\
1000 <http://example.org/s1> <http://example.org/reads> "35"^^<http://www.w3.org/2001/XMLSchema#int> .
nonsense
1970-01-01T00:00:02Z <http://example.org/s1> <http://example.org/reads> "20"^^<http://www.w3.org/2001/XMLSchema#int> .
3000 <http://example.org/s1> <http://example.org/reads> "40"^^<http://www.w3.org/2001/XMLSchema#int> .
"""
ROOMS = "<http://example.org/s1> <http://example.org/in> <http://example.org/hall> .\n"
ANCESTORS = {
    "<http://example.org/ann> <http://example.org/ancestor> <http://example.org/bob> .",
    "<http://example.org/bob> <http://example.org/ancestor> <http://example.org/cat> .",
    "<http://example.org/ann> <http://example.org/ancestor> <http://example.org/cat> .",
}


@pytest.fixture(autouse=True)
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name, text in {
        "family.jena": FAMILY,
        "alarm.jena": ALARM,
        "people.ttl": PEOPLE,
        "readings.ntt": READINGS,
        "late.ntt": "".join(READINGS.splitlines(keepends=True)[number] for number in (2, 0)).replace('"20"', '"32"'),
        "rooms.nt": ROOMS,
        "names.rq": "SELECT ?who { ?who <http://example.org/parent> ?child }",
        "graphs.rq": "CONSTRUCT { GRAPH <urn:g> { ?s ?p ?o } } { ?s ?p ?o }",
        "missing.rq": "SELECT *\nFROM <nowhere.ttl> { ?s ?p ?o }",
        "broken.jena": "[r: (?a ?b -> (?a ?b ?c)]",
        "unsafe.jena": "[r: (?a ?b ?c) sum(?c ?d ?e) -> (?a ?b ?e)]",
    }.items():
        Path(name).write_text(text)


def process(*arguments: str, stdin: int | None = None) -> subprocess.Popen[str]:
    """Runs the command line in a process of its own."""
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "squall", *arguments]
    return subprocess.Popen(
        command, stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    )


# build


def test_outputs_go_to_standard_output_and_the_summary_to_standard_error(squall: Squall) -> None:
    code, out, err = squall("build", "family.jena", "--source", "people.ttl")
    assert code == 0
    assert set(out.splitlines()) == ANCESTORS
    assert err.startswith("2 statements read, 3 outputs, ")


def test_standard_output_has_a_format_that_fits_the_program(squall: Squall) -> None:
    _, out, _ = squall("build", "names.rq", "--source", "people.ttl")
    assert [line.split() for line in out.splitlines() if "example" not in line and line] == [
        ["0", "(1970-01-01T00:00:00Z)", "names"], ["who"], ["─" * 6], [":ann"], [":bob"],
    ]  # fmt: skip
    _, out, _ = squall("build", "graphs.rq", "--source", "rooms.nt")
    assert out == f"{ROOMS.rstrip(' .' + chr(10))} <urn:g> .\n"
    _, out, _ = squall("build", "names.rq", "family.jena", "--source", "people.ttl", "--sink", "-?format=csv")
    assert out.splitlines()[0] == "time,who"


def test_options_may_stand_among_the_programs(squall: Squall) -> None:
    Path("more.jena").write_text("@prefix : <http://example.org/>.\n[up: (?a :ancestor ?b) -> (?b :under ?a)]")
    code, out, _ = squall("build", "family.jena", "--source", "people.ttl", "more.jena")
    assert code == 0
    assert len(out.splitlines()) == 6


def test_a_stream_with_static_data(squall: Squall) -> None:
    code, out, err = squall("build", "alarm.jena", "--source", "readings.ntt", "--static", "rooms.nt", "--timed")
    assert code == 0
    assert [line.split()[0] for line in out.splitlines()] == ["1000", "3000"]
    assert "3 statements read, 2 outputs" in err
    assert "1 malformed in readings.ntt; line 2: `nonsense` is no time" in err
    assert "\n  dead letters are dropped; --dead-letters FILE keeps them" in err


def test_dead_letters_are_kept_in_a_file(squall: Squall) -> None:
    code, _, err = squall("build", "alarm.jena", "--source", "readings.ntt", "--dead-letters", "lost.ndjson")
    (entry,) = map(json.loads, Path("lost.ndjson").read_text().splitlines())
    assert code == 0
    assert (entry["source"], entry["line"], entry["text"]) == ("readings.ntt", 2, "nonsense")
    assert "kept in lost.ndjson" in err


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full")
def test_a_ledger_for_which_there_is_no_room_is_an_error(squall: Squall) -> None:
    Path("bad.nt").write_text("nonsense\n" * 2)
    code, _, err = squall("build", "family.jena", "--source", "bad.nt", "--dead-letters", "/dev/full")
    assert code == 1
    assert err.startswith("source error: the dead-letter file `/dev/full` cannot be written: No space left on device\n")


def test_strict_fails_the_run(squall: Squall) -> None:
    code, _, err = squall("build", "alarm.jena", "--source", "readings.ntt", "--strict")
    assert code == 1
    assert err.startswith("source error: readings.ntt:2: ")


def test_strict_makes_any_loss_a_failure(squall: Squall) -> None:
    arguments = ("build", "alarm.jena", "--source", "late.ntt", "--dead-letters", "lost.ndjson")
    assert squall(*arguments)[0] == 0
    code, out, err = squall(*arguments, "--strict", "--static", "rooms.nt")
    assert code == 1
    assert len(out.splitlines()) == 1
    assert "1 late in the default stream\n  dead letters are kept in lost.ndjson" in err


def test_disorder_within_the_lateness_is_no_loss(squall: Squall) -> None:
    late = ("build", "alarm.jena", "--static", "rooms.nt", "--strict", "--timed", "--source")
    for arguments in (("late.ntt", "--lateness", "1s"), ("late.ntt?lateness=1s",)):
        code, out, _ = squall(*late, *arguments)
        assert code == 0
        assert [line.split()[0] for line in out.splitlines()] == ["1000", "2000"]


def ends(squall: Squall, *arguments: str) -> list[str]:
    """Returns when the conclusions from the sensor values cease to hold."""
    command = ("build", "alarm.jena", "--static", "rooms.nt", "--output", "dstream", "--timed")
    code, out, _ = squall(*command, *arguments)
    assert code == 0
    return [line.split()[0] for line in out.splitlines()]


def test_windows(squall: Squall) -> None:
    assert ends(squall, "--source", "readings.ntt") == []
    assert ends(squall, "--source", "readings.ntt", "--window", "RANGE 1500ms") == ["2500", "4500"]
    assert ends(squall, "--source", "obs=readings.ntt?window=RANGE 2s", "--window", "RANGE 1h") == ["3000", "5000"]
    assert ends(squall, "--source", "readings.ntt?window=TRIPLES 1") == ["2000"]


def test_time_from_a_property(squall: Squall) -> None:
    when = '<http://example.org/s1> <http://example.org/at> "1970-01-02"^^<http://www.w3.org/2001/XMLSchema#date> .'
    reads = '<http://example.org/s1> <http://example.org/reads> "35"^^<http://www.w3.org/2001/XMLSchema#int> .'
    Path("at.nt").write_text(f"{reads}\n{when}\n")
    assert ends(squall, "--source", "at.nt?time=http://example.org/at&window=RANGE 1s") == ["86401000"]


def test_what_a_patch_removes_ends(squall: Squall) -> None:
    reads = '<http://example.org/s1> <http://example.org/reads> "35"^^<http://www.w3.org/2001/XMLSchema#int> .'
    Path("x.rdfp").write_text(f'H time "5" .\nA {reads}\nH time "9" .\nD {reads}\n')
    assert ends(squall, "--source", "x.rdfp") == ["9"]


def test_report_policies(squall: Squall) -> None:
    command = (
        "build",
        "alarm.jena",
        "--static",
        "rooms.nt",
        "--source",
        "readings.ntt",
        "--timed",
        "--output",
        "rstream",
    )
    results = []
    for policy in ("close", "change", "periodic:2s"):
        _, out, _ = squall(*command, "--report", policy)
        results.append([line.split()[0] for line in out.splitlines()])
    assert results == [["1000", "2000", "3000", "3000"], ["1000", "3000", "3000"], ["2000", "4000", "4000"]]


def test_a_profile(squall: Squall) -> None:
    window = ("--source", "readings.ntt", "--window", "RANGE 2s STEP 1s", "--static", "rooms.nt", "--timed")
    words = [line.split()[0] for line in squall("build", "alarm.jena", *window, "--profile", "csparql")[1].splitlines()]
    assert words == ["2000", "3000", "4000", "5000"]


def test_the_time_of_arrival(squall: Squall) -> None:
    arguments = ("--source", "readings.ntt", "--static", "rooms.nt", "--clock", "wall", "--timed")
    before = time.time_ns() // 1_000_000
    code, out, _ = squall("build", "alarm.jena", *arguments)
    assert code == 0
    assert len(out.splitlines()) == 2
    assert all(before <= int(line.split()[0]) < before + 60_000 for line in out.splitlines())


def test_statistics_are_collected_and_used(squall: Squall) -> None:
    files = ("--source", "readings.ntt", "--static", "rooms.nt")
    code, out, _ = squall("build", "alarm.jena", *files, "--collect-statistics", "counts.json")
    assert code == 0
    assert "http://example.org/in" in Path("counts.json").read_text()
    assert squall("build", "alarm.jena", *files, "--statistics", "counts.json")[:2] == (0, out)
    code, result, _ = squall("explain", "alarm.jena", "--statistics", "counts.json")
    assert code == 0
    assert "~3 rows" in result


@pytest.mark.more
def test_a_run_keeps_the_collector_from_static_data() -> None:
    code = "import gc, sys\nfrom squall import cli\nbefore = gc.get_threshold()\n"
    code += "try: cli.command(['build', 'family.jena', '--source', 'people.ttl'])\nexcept SystemExit: pass\n"
    code += "print(gc.get_threshold() > before, gc.get_freeze_count() > 1000)"
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    run = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert run.stdout.endswith("True True\n")


def test_the_summary_counts_each_source(squall: Squall) -> None:
    _, _, err = squall("build", "family.jena", "--source", "people.ttl", "--source", "rooms.nt")
    assert "  people.ttl: 2 statements\n  rooms.nt: 1 statement\n" in err


@pytest.mark.parametrize("name", ["out.nt", "out.ntt", "out.ndjson", "out.csv", "out.nt.gz"])
def test_a_sink_that_is_a_file(squall: Squall, name: str) -> None:
    code, out, err = squall("build", "family.jena", "--source", "people.ttl", "--sink", name)
    assert (code, out) == (0, "")
    assert Path(name).stat().st_size > 0
    assert "3 outputs" in err


def test_the_format_of_standard_output(squall: Squall) -> None:
    code, out, _ = squall("build", "family.jena", "--source", "people.ttl", "--format", "ndjson")
    assert code == 0
    assert {json.loads(line)["rule"] for line in out.splitlines()} == {"anc1", "anc2"}


def test_timed_quads_on_standard_output(squall: Squall) -> None:
    code, out, _ = squall("build", "alarm.jena", "--source", "readings.ntt", "--static", "rooms.nt", "--format", "nq",
                          "--timed")  # fmt: skip
    assert code == 0
    assert [line.split()[0] for line in out.splitlines()] == ["1000", "3000"]
    assert all(line.endswith(" <urn:x-squall:rule:hot> .") for line in out.splitlines())


def test_tables_on_standard_output(squall: Squall) -> None:
    code, out, _ = squall("build", "alarm.jena", "--source", "readings.ntt", "--static", "rooms.nt", "--format",
                          "table")  # fmt: skip
    assert code == 0
    titles = [line for line in out.splitlines() if line.endswith("  hot")]
    assert titles == ["1000 (1970-01-01T00:00:01Z)  hot", "3000 (1970-01-01T00:00:03Z)  hot"]
    assert out.count('  :hall     :alarm      "') == 2


def test_a_sink_that_is_a_file_for_each_evaluation(squall: Squall) -> None:
    arguments = ("--source", "readings.ntt", "--static", "rooms.nt", "--sink", "alarm-{time}.srj")
    code, out, _ = squall("build", "alarm.jena", *arguments)
    assert (code, out) == (0, "")
    assert sorted(path.name for path in Path().glob("*.srj")) == ["alarm-1000.srj", "alarm-3000.srj"]


def test_a_document_for_more_than_one_evaluation(squall: Squall) -> None:
    arguments = ("--source", "readings.ntt", "--static", "rooms.nt", "--format", "srx")
    code, out, err = squall("build", "alarm.jena", *arguments)
    assert code == 1
    assert out.count("<result>") == 1
    assert "`-?format=srx` holds one evaluation" in err
    assert "'results-{time}-{query}.srx'" in err


def test_output_by_another_operator(squall: Squall) -> None:
    arguments = ("--source", "readings.ntt", "--static", "rooms.nt", "--output", "rstream", "--timed")
    code, out, _ = squall("build", "alarm.jena", *arguments)
    assert code == 0
    assert [line.split()[0] for line in out.splitlines()] == ["1000", "2000", "3000", "3000"]


def test_progress_can_be_requested(squall: Squall) -> None:
    code, out, err = squall("build", "family.jena", "--source", "people.ttl", "--progress")
    assert code == 0
    assert set(out.splitlines()) == ANCESTORS
    assert "2 statements read" in err


def test_progress_is_shown_on_a_terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    (tmp_path / "a.nt").write_text("<urn:a> <urn:p> <urn:b> .\n" * 2)
    sources = Sources([open_source(str(tmp_path / "a.nt"))])
    with progress_bar(sources, Tally(outputs=3), start_delay=0):
        list(sources)
        wait(lambda: "2 statements" in capsys.readouterr().err)


WRONG = {
    "program-missing": ("build", "nope.jena"),
    "data-as-program": ("build", "people.ttl"),
    "syntax": ("build", "broken.jena"),
    "unsafe": ("build", "unsafe.jena"),
    "lexer-unknown": ("build", "family.jena", "--lexer", "jenna"),
    "planner-unknown": ("build", "family.jena", "--planner", "ret"),
    "builder-unknown": ("build", "family.jena", "--builder", "iterater"),
    "source-missing": ("build", "family.jena", "--source", "nope.nt"),
    "source-format": ("build", "family.jena", "--source", "family.jena"),
    "source-scheme": ("build", "family.jena", "--source", "gopher://host/topic"),
    "source-twice": ("build", "family.jena", "--source", "-?format=nt", "--static", "-?format=nt"),
    "static-timed": ("build", "family.jena", "--static", "readings.ntt"),
    "sink-format": ("build", "family.jena", "--sink", "out.foo"),
    "sink-unwritable": ("build", "family.jena", "--sink", "no/out.nt"),
    "sink-is-source": ("build", "family.jena", "--source", "rooms.nt", "--sink", "rooms.nt"),
    "dead-letters-in-source": ("build", "family.jena", "--source", "rooms.nt", "--dead-letters", "rooms.nt"),
    "ledger-unwritable": ("build", "family.jena", "--dead-letters", "no/lost"),
    "statistics-unwritable": ("build", "family.jena", "--collect-statistics", "no/counts"),
    "statistics-unused": ("build", "family.jena", "--planner", "greedy", "--statistics", "nope.json"),
    "window": ("build", "family.jena", "--window", "RANGE soon"),
    "windows": (
        "build",
        "family.jena",
        "--source",
        "people.ttl?window=RANGE 1s",
        "--source",
        "rooms.nt?window=RANGE 2s",
    ),
    "report": ("build", "family.jena", "--report", "always"),
    "profile": ("build", "family.jena", "--profile", "clips"),
    "lateness": ("build", "family.jena", "--lateness", "much"),
    "heartbeat": ("build", "family.jena", "--heartbeat", "0s"),
    "wall-and-lateness": ("build", "family.jena", "--source", "rooms.nt?lateness=1s", "--clock", "wall"),
    "wall-and-spark": ("build", "family.jena", "--clock", "wall", "--builder", "spark"),
    "explain-profile": ("explain", "family.jena", "--profile", "squall2003"),
    "explain-node-metrics": ("explain", "family.jena", "--stage", "tps", "--node-metrics", "figures.json"),
    "timed-and-sink": ("build", "family.jena", "--sink", "out.nt", "--timed"),
    "format-and-sink": ("build", "family.jena", "--sink", "out.nt", "--format", "csv"),
    "solutions-as-triples": ("build", "names.rq", "--sink", "out.rdfp"),
    "solutions-as-updates": ("build", "names.rq", "--format", "ru"),
    "graphs-as-triples": ("build", "graphs.rq", "--format", "nt"),
    "missing-document": ("build", "missing.rq"),
    "timed-and-format": ("build", "family.jena", "--format", "csv", "--timed"),
    "conf": ("build", "family.jena", "--conf", "spark.x"),
    "draw-tps": ("explain", "family.jena", "--stage", "tps", "--format", "dot"),
    "json-job": ("explain", "family.jena", "--stage", "job", "--format", "json"),
}


@pytest.mark.parametrize("name", WRONG)
def test_an_error_is_reported_before_anything_starts(squall: Squall, name: str) -> None:
    before = {path: path.read_bytes() for path in Path().iterdir()}
    code, out, err = squall(*WRONG[name])
    assert code == 2
    assert out == ""
    assert err == (GOLDEN / f"{name}.txt").read_text()
    assert {path: path.read_bytes() for path in Path().iterdir()} == before


@pytest.mark.parametrize("arguments", [("build",), ("build", "family.jena", "--sauce", "x.nt"), ("biuld",)])
def test_wrong_usage(squall: Squall, arguments: tuple[str, ...]) -> None:
    code, out, err = squall(*arguments)
    assert (code, out) == (2, "")
    assert "Usage: squall" in err


def test_a_checkpoint_goes_to_the_builder(squall: Squall, monkeypatch: pytest.MonkeyPatch) -> None:
    history: list[Options] = []

    class Job:
        def run(self, batches: Iterable[object], static: Iterable[Event]) -> Iterator[Output]:
            (rooms,) = static
            yield Output(rooms.facts[0], ALWAYS, "r")

    def build(plan: Plan, options: Options) -> Job:
        history.append(options)
        return Job()

    monkeypatch.setattr("squall.plugins.load", _instead("squall.builders", capable(build)))
    Path("state").mkdir()
    Path("state/offsets").touch()
    Path("out.nt").write_text("before\n")
    arguments = ("--checkpoint", "state", "--conf", "a=b=c", "--static", "rooms.nt", "--sink", "out.nt")
    code, _, _ = squall("build", "family.jena", *arguments)
    assert code == 0
    assert history[0].checkpoint == Path("state")
    assert history[0].conf == (("a", "b=c"),)
    assert history[0].sink is not None
    assert Path("out.nt").read_text() == "before\n" + ROOMS


class Measured:
    """A job that says what its first node did."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan

    def run(self, batches: Iterable[object], static: Iterable[Event]) -> Iterator[Output]:
        return iter(())

    def node_metrics(self) -> dict[str, NodeMetric]:
        return {self.plan.nodes[0].id: NodeMetric(rows=1234)}


def test_what_nodes_do_is_measured_and_shown(squall: Squall, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "squall.plugins.load", _instead("squall.builders", capable(lambda plan, options: Measured(plan)))
    )
    semantics = ("--window", "RANGE 5s", "--profile", "cqels")
    assert squall("build", "family.jena", *semantics, "--profile-nodes", "figures.json")[0] == 0
    code, out, _ = squall("explain", "family.jena", *semantics, "--node-metrics", "figures.json")
    assert code == 0
    assert "1,234 rows" in out


@pytest.mark.parametrize("asked", [[], ["--batch"]])
def test_the_builder_gets_the_option_for_one_batch(
    asked: list[str], squall: Squall, monkeypatch: pytest.MonkeyPatch
) -> None:
    history: list[Options] = []

    def build(plan: Plan, options: Options) -> Measured:
        history.append(options)
        return Measured(plan)

    monkeypatch.setattr("squall.plugins.load", _instead("squall.builders", capable(build)))
    assert squall("build", "family.jena", *asked)[0] == 0
    assert [options.run_as_one_batch for options in history] == [bool(asked)]


def test_a_builder_that_measures_nothing(squall: Squall, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("squall.plugins.load", _instead("squall.builders", lambda plan, options: object()))
    code, _, err = squall("build", "family.jena", "--profile-nodes", "figures.json")
    assert code == 2
    assert "the builder `iterator` does not measure nodes" in err
    assert not Path("figures.json").exists()


def test_a_missing_extra_met_by_the_builder(squall: Squall, monkeypatch: pytest.MonkeyPatch) -> None:
    def build(plan: Plan, options: Options) -> NoReturn:
        raise ModuleNotFoundError("No module named 'pyspark'", name="pyspark")

    monkeypatch.setattr("squall.plugins.load", _instead("squall.builders", build))
    code, out, err = squall("build", "family.jena", "--builder", "spark")
    assert (code, out) == (2, "")
    assert err == (
        "plug-in error: the builder `spark` needs `pyspark`, which is not installed\n"
        "hint: pip install 'squall[spark]' (in a checkout: pip install '.[spark]')\n"
    )


def capable(builder: Callable[[Plan, Options], Any]) -> Callable[[Plan, Options], Any]:
    """Declares all capabilities for the builder."""
    capabilities = BuilderCapabilities(**dict.fromkeys(BuilderCapabilities.__dataclass_fields__, True))
    return declare_capabilities(capabilities)(builder)


def _instead(group: str, thing: object) -> Callable[[str, str], Any]:
    from squall import plugins

    load = plugins.load
    return lambda where, name: thing if where == group else load(where, name)


# Processes: pipes, signals, start-up


@pytest.mark.more
def test_lines_are_output_as_they_come() -> None:
    run = process("build", "family.jena", "--source", "-?format=nt", stdin=subprocess.PIPE)
    assert run.stdin
    assert run.stdout
    run.stdin.write("<http://e/a> <http://example.org/parent> <http://e/b> .\n")
    run.stdin.flush()
    assert run.stdout.readline() == "<http://e/a> <http://example.org/ancestor> <http://e/b> .\n"
    run.stdin.write("<http://e/b> <http://example.org/parent> <http://e/c> .\n")
    out, err = run.communicate(timeout=20)
    assert len(out.splitlines()) == 2
    assert "2 statements read, 3 outputs" in err
    assert run.returncode == 0


@pytest.mark.more
def test_a_reader_that_has_enough_ends_the_run_quietly() -> None:
    triples = (f"<http://e/{n}> <http://example.org/parent> <http://e/b> .\n" for n in range(20_000))
    Path("big.nt").write_text("".join(triples))
    run = process("build", "family.jena", "--source", "big.nt")
    assert run.stdout
    run.stdout.readline()
    run.stdout.close()
    assert run.stderr
    assert run.stderr.read() == ""
    run.stderr.close()
    assert run.wait(20) == 0


@pytest.mark.sampled(2)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_live_run_ends_by_a_signal_as_if_its_sources_had_ended(number: signal.Signals) -> None:
    run = process("build", "family.jena", "--source", "-?format=nt", "--sink", "out.nt", stdin=subprocess.PIPE)
    assert run.stdin
    run.stdin.write("<http://e/a> <http://example.org/parent> <http://e/b> .\n")
    run.stdin.flush()
    wait(lambda: Path("out.nt").exists() and Path("out.nt").stat().st_size > 0)
    run.send_signal(number)
    run.wait(20)
    _, err = run.communicate(timeout=20)
    assert run.returncode == 0
    assert err.startswith("1 statement read, 1 output,")
    assert Path("out.nt").read_text() == "<http://e/a> <http://example.org/ancestor> <http://e/b> .\n"


@pytest.mark.more
def test_a_live_run_that_waits_for_readers_ends_by_a_signal() -> None:
    listens = "unix:out?listen=yes&connections=1"
    run = process("build", "family.jena", "--source", "-?format=nt", "--sink", listens, stdin=subprocess.PIPE)
    wait(Path("out").exists)
    run.send_signal(signal.SIGTERM)
    run.wait(20)
    _, err = run.communicate(timeout=20)
    assert run.returncode == 0
    assert err.startswith("0 statements read, 0 outputs")
    assert not Path("out").exists()


def test_help_loads_nothing_heavy() -> None:
    code = "import sys\nfrom squall.cli import command\n"
    code += "try: command(['--help'])\nexcept SystemExit: pass\n"
    code += "print('heavy', {'rdflib', 'lark', 'rich', 'networkx', 'pyspark'} & set(sys.modules))"
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    run = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert run.stdout.endswith("heavy set()\n")
    assert "squall run family.jena --source people.ttl" in run.stdout


def test_a_run_over_files_loads_neither_clients_nor_engines() -> None:
    """Each takes megabytes of memory, which are a tenth of what a small run takes."""
    Path("in.ntt").write_text("1000 <urn:a> <urn:p> <urn:b> .\n")
    code = "import sys\nfrom squall.cli import command\n"
    code += "try: command(['run', 'family.jena', '--source', 'in.ntt', '--sink', 'out.nt'])\nexcept SystemExit: pass\n"
    heavy = {"http.client", "urllib3", "ssl", "ctypes", "rdflib", "rich", "networkx", "pyarrow"}
    heavy |= {"html", "multiprocessing", "squall.functions.rif.guards", "squall.streams.mappings.evaluation"}
    code += f"print('heavy', sorted({heavy} & set(sys.modules)))"
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    run = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert run.stdout.endswith("heavy []\n")
    assert run.stderr.startswith("1 statement read")


# explain and list


@pytest.mark.parametrize("stage", ["tree", "tps", "pps"])
def test_explain(squall: Squall, stage: str) -> None:
    code, out, err = squall("explain", "family.jena", "--stage", stage)
    assert (code, err) == (0, "")
    assert out == (GOLDEN / f"explain-{stage}.txt").read_text()


def test_explain_shows_the_plan_by_default(squall: Squall) -> None:
    assert squall("explain", "family.jena") == squall("explain", "family.jena", "--stage", "pps")


def test_explain_the_job(squall: Squall) -> None:
    code, out, _ = squall("explain", "family.jena", "--stage", "job")
    assert code == 0
    assert "iterator" in out


@pytest.mark.parametrize("builder", ["iterator", "spark", "beam"])
def test_explain_shows_the_plan_and_the_job_of_a_builder_that_is_named(squall: Squall, builder: str) -> None:
    names = "explain", "family.jena", "--builder", builder
    plan, job = (squall(*names, "--stage", stage)[1] for stage in ("pps", "job"))
    assert job
    assert squall(*names) == (0, f"{plan}\njob for {builder}:\n\n{job}", "")
    drawn = squall("explain", "family.jena", "--format", "dot")
    assert squall("explain", "family.jena", "--format", "dot", "--builder", builder) == drawn


def test_explain_shows_the_plan_alone_where_jobs_tell_nothing(squall: Squall, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr("squall.builders.local.job.IteratorJob.describe")
    result = squall("explain", "family.jena", "--builder", "iterator")
    assert result == squall("explain", "family.jena")
    assert squall("explain", "family.jena", "--builder", "iterator", "--stage", "job")[0] == 2


def test_explain_names_the_builder_that_there_is_not(squall: Squall) -> None:
    code, _, err = squall("explain", "family.jena", "--builder", "sparc")
    assert code == 2
    assert "`spark`" in err


@pytest.mark.parametrize("format", ["mermaid", "dot", "json", "svg", "html"])
@pytest.mark.parametrize("planner", ["greedy", "rete"])
def test_explain_in_other_formats(squall: Squall, format: str, planner: str) -> None:
    code, out, err = squall("explain", "family.jena", "--format", format, "--planner", planner)
    assert (code, err) == (0, "")
    signs = {"mermaid": "flowchart", "dot": "digraph", "json": '"kind": "Plan"', "svg": "<svg", "html": "<html"}
    assert signs[format] in out


def test_a_plan_is_shown_in_all_formats() -> None:
    assert {"text", "json", *DRAWINGS} == set(explain.FORMATS)


def test_explain_writes_a_tree_in_another_syntax(squall: Squall) -> None:
    text = "Document(Group(<urn:p>(1)))"
    Path("rules.rifps").write_text(text, encoding="utf-8")
    code, xml, err = squall("explain", "rules.rifps", "--stage", "tree", "--format", "rif")
    assert (code, err) == (0, "")
    Path("rules.rif").write_text(xml, encoding="utf-8")
    _, again, _ = squall("explain", "rules.rif", "--stage", "tree", "--format", "rifps")
    assert again.split() == squall("explain", "rules.rifps", "--stage", "tree")[1].split()
    assert again.split() == ["Document(", "Group(", "<urn:p>(1)", ")", ")"]


def test_the_tree_of_jena_rules_as_text_of_the_language(squall: Squall) -> None:
    Path("main.jena").write_text("@include <family.jena>\n[all: -> table(rdf:type)]", encoding="utf-8")
    code, out, err = squall("explain", "main.jena", "--rules", "rhodf", "--stage", "tree", "--format", "jena")
    assert (code, err) == (0, "")
    Path("printed.jena").write_text(out, encoding="utf-8")
    assert squall("explain", "printed.jena", "--stage", "tree")[1].split() == out.split()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--stage", "tree", "--format", "rif"), "a program in `jena` cannot be written as `rif`"),
        (("--stage", "tree", "--format", "dot"), "draws plans"),
        (("--format", "rif"), "`--format rif` does not go with `--stage pps`"),
        (("--format", "htm"), "did you mean `html`?"),
        (("--stage", "tree", "--format", "nothing"), "there is no lexer `nothing`"),
    ],
)
def test_forms_that_do_not_fit_are_refused(squall: Squall, arguments: tuple[str, ...], message: str) -> None:
    code, out, err = squall("explain", "family.jena", *arguments)
    assert (code, out) == (2, "")
    assert message in err


def test_documents_that_programs_import_are_found_by_their_iris(squall: Squall) -> None:
    Path("main.rifps").write_text("Document(Import(<http://e.org/other>))", encoding="utf-8")
    Path("other.rifps").write_text("Document(Group(<urn:a>[<urn:p> -> <urn:b>]))", encoding="utf-8")
    outputs = ("--graph", "http://e.org/other=other.rifps")
    assert squall("build", "main.rifps", *outputs)[:2] == (0, "<urn:a> <urn:p> <urn:b> .\n")
    assert "construct" in squall("explain", "main.rifps", *outputs)[1]
    assert "is not loaded from there" in squall("build", "main.rifps")[2]


def test_what_rules_print_goes_to_standard_error(squall: Squall) -> None:
    Path("prints.jena").write_text(
        "[(?x <http://example.org/parent> ?y) print('saw' ?x) -> (?x <urn:q> ?y)]", encoding="utf-8"
    )
    for _ in range(2):
        code, out, err = squall("build", "prints.jena", "--source", "people.ttl")
        assert (code, len(out.splitlines())) == (0, 2)
        message = [line for line in err.splitlines() if line.startswith('"saw"')]
        assert sorted(message) == ['"saw" <http://example.org/ann>', '"saw" <http://example.org/bob>']


def test_the_maximal_nesting_depth_is_an_option(squall: Squall) -> None:
    program = "Document(Group(<urn:p>(1) Forall ?x (<urn:p>(<urn:f>(?x)) :- <urn:p>(?x))))"
    Path("deep.rifps").write_text(program, encoding="utf-8")
    code, _, err = squall("build", "deep.rifps", "--max-depth", "7")
    assert code == 1
    assert "the rule `rule2` nests terms more than 7 levels deep" in err


def test_explain_shows_windows_and_the_profile(squall: Squall) -> None:
    arguments = ("--source", "obs=rooms.nt?window=RANGE 10s STEP 5s", "--window", "RANGE 1m", "--profile", "csparql")
    code, out, _ = squall("explain", "family.jena", *arguments)
    assert code == 0
    assert out.startswith("profile csparql: ")
    assert "RANGE 1m" in out
    assert "<obs> [RANGE 10s STEP 5s" in out


def test_list_says_where_each_comes_from(squall: Squall) -> None:
    code, out, _ = squall("list")
    rows = [line.split("\t") for line in out.splitlines()]
    assert code == 0
    assert ["planner", "rete"] in [row[:2] for row in rows]
    assert {row[0] for row in rows} == {
        "language", "planner", "builder", "rule set", "profile", "format", "source", "sink", "check"
    }  # fmt: skip
    assert all(len(row) == 5 and row[2].startswith("squall ") and row[4] for row in rows)
    _, out, _ = squall("list", "aggregates")
    assert "sum\tsquall 0.1.0\tsparql\tthe exact sum of numbers" in out.splitlines()


def test_rule_sets(squall: Squall, tmp_path: Path) -> None:
    text = "@prefix : <http://example.org/>. @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#>.\n"
    (tmp_path / "parents.ttl").write_text(text + ":mother rdfs:subPropertyOf :parent . :ann :mother :bob .")
    mother = "<http://example.org/ann> <http://example.org/{}> <http://example.org/bob> .\n"
    code, out, _ = squall("build", "--rules", "rhodf", "--source", "parents.ttl")
    assert (code, out) == (0, mother.format("parent"))
    code, out, _ = squall("build", "family.jena", "--rules", "rhodf", "--source", "parents.ttl")
    assert (code, out) == (0, mother.format("ancestor"))
    assert "rdfs7" in squall("explain", "--rules", "rhodf")[1]
    assert "rdfs7" in squall("explain", "--rules", "rhodf", "--stage", "tree")[1]
    assert "rhodf" in [line.split("\t")[0] for line in squall("list", "rule-sets")[1].splitlines()]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [(["--rules", "rdf"], "there is no rule set `rdf`"), ([], "or a rule set (--rules)")],
)
def test_a_rule_set_that_there_is_not(squall: Squall, arguments: list[str], message: str) -> None:
    for name in ("build", "explain"):
        code, _, err = squall(name, *arguments)
        assert (code, message in err) == (2, True)


def test_version(squall: Squall) -> None:
    from squall import __version__

    assert squall("--version") == (0, f"squall {__version__}\n", "")


def test_the_time_of_static_data(squall: Squall) -> None:
    Path("now.rq").write_text("SELECT (YEAR(NOW()) AS ?year) {}")
    assert squall("build", "now.rq", "--format", "srcsv", "--now", "2013-05-01T12:00:00Z")[1].split() == [
        "year",
        "2013",
    ]
    assert int(squall("build", "now.rq", "--format", "srcsv")[1].split()[1]) >= 2026
    code, _, err = squall("build", "now.rq", "--now", "soon")
    assert (code, err.splitlines()[0]) == (
        2,
        "usage error: `--now soon`: `soon` is no time (integer milliseconds, ISO 8601 or -infinity)",
    )


COUNTER = """PREFIX : <http://example.org/>
INSERT DATA { :c :n 0 } ;
DELETE { ?c :n ?n } INSERT { ?c :n ?m } WHERE { ?x :p ?c . ?c :n ?n BIND (?n + 1 AS ?m) } ;
DELETE WHERE { ?x :p ?c } ;
SELECT ?n { :c :n ?n }
"""


@pytest.mark.parametrize(
    ("format", "expected"),
    [("srcsv", None), ("csv", "time,n\n,0\n2,1\n"), ("tsv", "time\tn\n\t0\n2\t1\n")],
)
def test_a_table_holds_the_solutions_of_a_program_with_updates(
    squall: Squall, format: str, expected: str | None
) -> None:
    Path("counter.rq").write_text(COUNTER)
    Path("p.ntt").write_text("1 <http://example.org/x> <http://example.org/p> <http://example.org/c> .\n")
    code, out, err = squall("build", "counter.rq", "--source", "p.ntt", "--format", format)
    if expected is None:
        assert (code, out.split()) == (1, ["n", "0"])  # one evaluation fits
        return
    assert code == 0
    assert out.replace("\r", "").startswith(expected)
    assert len(out.splitlines()) == 3
    assert "  2 facts left out: the table has solutions; --format ndjson holds both" in err.splitlines()
    assert squall("build", "counter.rq", "--source", "p.ntt", "--format", "ndjson")[1].count("\n") == 4


SLIP = "PREFIX ex: <https://example.org/> SELECT ?room {{ {pattern} }}"


@pytest.mark.fault("P7")
@pytest.mark.parametrize(
    ("pattern", "hint"),
    [
        ("?room ex:reads ?t", "did you mean `<http://example.org/reads>`?"),
        ("?room a ex:Room", "did you mean `<http://example.org/Room>`?"),
        (
            "?room <http://example.org/flow> ?t",
            "predicates of the data: <http://example.org/reads>, <http://www.w3.org",
        ),
        ("?room a <http://example.org/Hydrant>", "classes of the data: <http://example.org/Room>"),
        ("?room <http://example.org/reads> 2000", None),
    ],
)
def test_a_run_without_outputs_names_what_the_input_does_not_have(
    pattern: str, hint: str | None, squall: Squall, tmp_path: Path
) -> None:
    """P7 of the reported faults: a slip in a prefix ended with "0 outputs"."""
    query, data = tmp_path / "slip.rq", tmp_path / "data.nt"
    query.write_text(SLIP.format(pattern=pattern))
    room = "<http://example.org/hall>"
    data.write_text(
        f'{room} <http://example.org/reads> "20" .\n{room} a <http://example.org/Room> .\n'.replace(
            " a ", " <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> "
        )
    )
    code, _, err = squall("run", str(query), "--source", str(data))
    assert code == 0
    assert ("never-fires warning" in err) is (hint is not None)
    assert hint is None or hint in err
    assert "never-fires" not in squall("run", str(query), "--source", str(data), "-q")[2]
