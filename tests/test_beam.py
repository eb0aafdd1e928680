"""The Beam builder: runners, retried work, splits of files, dead letters, options, descriptions."""

from __future__ import annotations

import gzip
import logging
import os
import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

import squall
from squall import functions
from squall.contracts import Job, Options, Output
from squall.errors import BuilderError
from squall.plan import Plan
from squall.rdf import Event, Term, Triple, iri
from squall.streams import DeadLetterFile, Sources, open_source, open_static

pytestmark = [pytest.mark.beam, pytest.mark.skipif(find_spec("apache_beam") is None, reason="Beam is not installed")]

GOLDEN = Path(__file__).parent / "golden" / "beam"
IMPORTING = {**os.environ, "PYTHONPATH": str(Path(squall.__file__).parent.parent)}
PREFIX = "@prefix : <http://example.org/>.\n"
GRAND = "[grand: (?a :parent ?b) (?b :parent ?c) -> (?a :grandparent ?c)]"
GRANDPARENTS = PREFIX + GRAND
REACH = (
    PREFIX
    + """
[link: (?a :parent ?b) noValue(?a, :closed) -> (?a :link ?b)]
[step: (?a :link ?b) (?b :link ?c) -> (?a :link ?c)]
"""
)
LAST = "[last: (?a :parent ?b) -> (?a :known ?b)]"


def triple(subject: str, predicate: str, object: str) -> Triple:
    return Triple(*(iri(f"http://example.org/{name}") for name in (subject, predicate, object)))


def parents(count: int) -> list[Event]:
    draw = random.Random(count)
    pairs = [(draw.randrange(count), draw.randrange(count)) for _ in range(count)]
    return [Event(n // 2, (triple(f"p{item}", "parent", f"p{other}"),)) for n, (item, other) in enumerate(pairs)]


def planned(program: str) -> Plan:
    return squall.plan(squall.compile(program, lexer="jena"))


def plain(outputs: Iterator[Output]) -> list[tuple[int, str]]:
    return sorted((output.time, str(output.fact)) for output in outputs)


def beam_job(plan: Plan, options: Options, **tuning: Any) -> Job:
    """Returns a job on Beam with tuning values."""
    from squall.builders.beam.job import BeamJob
    from squall.builders.beam.options import BeamTuning, Runner

    return BeamJob(plan, options, Runner(options.conf), BeamTuning(**tuning))


def run(program: str, batches: Any, *conf: tuple[str, str], builder: str = "beam") -> list[tuple[int, str]]:
    return plain(squall.build(planned(program), builder, Options(conf=conf, now=0)).run(batches))


# Runners


RUNNERS = {
    "bundles": (("runner", "BundleBasedDirectRunner"),),
    "threads": (("direct_num_workers", "2"), ("direct_running_mode", "multi_threading")),
    "portable": (("runner", "PortableRunner"), ("job_endpoint", "embed"), ("environment_type", "LOOPBACK")),
    "processes": (("direct_num_workers", "2"), ("direct_running_mode", "multi_processing")),
}
SLOW = pytest.mark.slow


@pytest.mark.more
@pytest.mark.parametrize("name", [*list(RUNNERS)[:-1], pytest.param("processes", marks=SLOW)])
@pytest.mark.parametrize("program", [GRANDPARENTS, pytest.param(REACH, marks=SLOW)], ids=["keys", "one"])
def test_every_runner_gives_the_same(program: str, name: str) -> None:
    events = parents(40)
    outputs = run(program, [events], *RUNNERS[name])
    assert outputs == run(program, [events], builder="iterator")
    assert len(outputs) > 10


@pytest.mark.more
def test_a_repeated_bundle_outputs_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The worker fails just before its output gets its final name, and then just after; its bundle is retried."""
    from squall.builders.beam import files

    rename, dead_letters = files._FILES.rename, list[list[str]]()

    def shaky(sources: list[str], destinations: list[str]) -> None:
        fails = "answers" in destinations[0] and len(dead_letters) < 2
        if not fails or dead_letters:
            rename(sources, destinations)
        if fails:
            dead_letters.append(sources)
            raise OSError("the worker was lost")

    monkeypatch.setattr(files._FILES, "rename", shaky)
    events = parents(40)
    outputs = run(GRANDPARENTS, [events], ("runner", "BundleBasedDirectRunner"))
    assert outputs == run(GRANDPARENTS, [events], builder="iterator")
    assert len(dead_letters) == 2


@pytest.mark.more
def test_rows_are_processed_key_by_key(monkeypatch: pytest.MonkeyPatch) -> None:
    from squall.builders.beam import files

    names, write = [], files.write

    def noted(folder: str, name: str, batches: Any) -> None:
        names.append(name)
        write(folder, name, batches)

    monkeypatch.setattr(files, "write", noted)
    run(GRANDPARENTS, [parents(40)])
    assert len([name for name in names if name.startswith("answers")]) > 10


def test_what_does_not_recur_is_apart_from_a_recursion_beside_it() -> None:
    events = parents(30)
    outputs = run(REACH + GRAND, [events])
    assert outputs == run(REACH + GRAND, [events], builder="iterator")
    assert {fact.split()[1] for _, fact in outputs} == {
        f"<http://example.org/{name}>" for name in ("link", "grandparent")
    }


def test_what_a_worker_finds_wrong_is_an_error_as_in_process() -> None:
    program = PREFIX + "[grows: (?x :parent ?y) -> (?x :parent child(?y)) (?x :is :parent)]"
    message = []
    for builder in ("iterator", "beam"):
        with pytest.raises(BuilderError, match="grows") as caught:
            list(squall.build(planned(program), builder, Options(max_depth=3)).run([parents(2)]))
        message.append(str(caught.value))
    assert message[0] == message[1]


@pytest.mark.more
def test_an_error_of_a_worker_is_reported_alone(tmp_path: Path) -> None:
    (tmp_path / "family.nt").write_text(f"{triple('ann', 'parent', 'bob')}\n")
    (tmp_path / "grows.jena").write_text(PREFIX + "[grows: (?x :parent ?y) -> (?x :parent child(?y)) (?x :is :parent)]")
    command = [sys.executable, "-m", "squall", "build", "grows.jena", "--source", "family.nt", "--builder", "beam"]
    outputs = subprocess.run(command, cwd=tmp_path, env=IMPORTING, capture_output=True, text=True)
    assert outputs.returncode == 1
    assert outputs.stderr.startswith("build error: ")
    assert "Traceback" not in outputs.stderr


def test_a_users_function_runs_in_the_workers() -> None:
    @functions.function("cry", languages=("jena",))
    def cry(name: Term) -> Term:
        return Term(name.upper())

    program = PREFIX + "(?a :says ?b) cry(?b, ?c) -> (?a :cries ?c)."
    message = Triple(iri("http://example.org/a"), iri("http://example.org/says"), Term('"hello"'))
    ((_, fact),) = run(program, [[Event(1, (message,))]])
    assert fact.endswith('"HELLO" .')


@pytest.mark.more
def test_the_root_logger_keeps_its_handlers() -> None:
    before = logging.getLogger().handlers[:]
    run(GRANDPARENTS, [parents(4)], ("runner", "BundleBasedDirectRunner"))
    assert logging.getLogger().handlers == before
    code = "import logging, squall.builders.beam; print(logging.getLogger().handlers)"
    outputs = subprocess.run([sys.executable, "-c", code], env=IMPORTING, capture_output=True, text=True, check=True)
    assert (outputs.stdout, outputs.stderr) == ("[]\n", "")


# Sources


@pytest.mark.more
def test_a_file_is_read_in_splits_and_dead_letters_have_their_line(tmp_path: Path) -> None:
    lines = [str(triple(f"p{number}", "parent", f"p{number + 1}")) for number in range(300)]
    lines[7] = "one that is broken ."
    lines[250] = '<http://example.org/s> "no predicate" .'
    path = tmp_path / "family #1.nt"
    path.write_text("\n".join(lines))
    for size in range(59, 62):  # among these, one that ends where a line does
        with closing(DeadLetterFile(tmp_path / f"lost{size}.ndjson")) as ledger:
            source = open_source(str(path), ledger)
            job = beam_job(planned(GRANDPARENTS), Options(ledger=ledger), split_bytes=size * 100)
            assert len(list(job.run(Sources([source])))) == 299 - 4
            assert source.reading.statements == 298
        text = (tmp_path / f"lost{size}.ndjson").read_text()
        assert '"line": 8,' in text
        assert '"line": 251,' in text
        assert text.count("\n") == 2


def test_workers_read_what_they_can_and_the_rest_is_spooled(tmp_path: Path) -> None:
    (tmp_path / "known.ttl").write_text("@prefix : <http://example.org/> . :cat :parent :dan .")
    (tmp_path / "family.ttl").write_text("@prefix : <http://example.org/> . :ann :parent :bob . :old :parent _:x .")
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.nt").write_text(f"{triple('bob', 'parent', 'cat')}\n_:x <http://example.org/parent> _:y .\n")
    with gzip.open(tmp_path / "in" / "b.nt.gz", "wt") as file:
        file.write(f"{triple('eve', 'parent', 'ann')}\n")
    results = []
    for builder in ("iterator", "beam"):
        sources = Sources([open_source(str(tmp_path / name)) for name in ("family.ttl", "in")])
        static = open_static(str(tmp_path / "known.ttl"))
        outputs = squall.build(planned(GRANDPARENTS + LAST), builder).run(sources, static)
        results.append((plain(outputs), [source.reading.statements for source in sources.sources]))
    assert results[0] == results[1]
    assert len(results[0][0]) == 3 + 6
    assert results[0][1] == [2, 3]


def test_a_file_that_is_cut_off_is_an_error(tmp_path: Path) -> None:
    full_result = gzip.compress("".join(f"{triple(f'p{n}', 'parent', 'x')}\n" for n in range(1000)).encode())
    (tmp_path / "cut.nt.gz").write_bytes(full_result[: len(full_result) // 2])
    sources = Sources([open_source(str(tmp_path / "cut.nt.gz"))])
    with pytest.raises(BuilderError, match=r"cut\.nt\.gz` cannot be read: Compressed file ended"):
        list(squall.build(planned(GRANDPARENTS), "beam").run(sources))


@pytest.mark.parametrize("live", [False, True])
def test_late_statements_go_to_the_ledger(tmp_path: Path, live: bool) -> None:
    batches = [[Event(5, (triple("ann", "parent", "bob"),))], [Event(4, (triple("bob", "parent", "cat"),))]]
    with closing(DeadLetterFile(tmp_path / "lost.ndjson")) as ledger:
        job = squall.build(planned(GRANDPARENTS), "beam", Options(ledger=ledger))
        assert list(job.run(iter(batches) if live else batches)) == []
        assert ledger.total("late") == 1
    assert "its time 4 has passed" in (tmp_path / "lost.ndjson").read_text()
    with pytest.raises(BuilderError, match="its time 4 has passed"):
        list(squall.build(planned(GRANDPARENTS), "beam").run(batches))


def test_a_job_runs_once() -> None:
    job = squall.build(planned(GRANDPARENTS), "beam")
    assert list(job.run([])) == []
    with pytest.raises(BuilderError, match="the job has run"):
        list(job.run([]))


def test_one_batch_is_nothing_live() -> None:
    job = squall.build(planned(GRANDPARENTS), builder="beam", options=Options(run_as_one_batch=True))
    with pytest.raises(BuilderError, match="what events come from is live"):
        next(job.run(iter([parents(1)])))


# Options


@pytest.mark.parametrize(
    ("conf", "message"),
    [
        (("runner", "FlinkRuner"), "there is no runner `FlinkRuner`.*did you mean `FlinkRunner`"),
        (("direct_num_workers", "many"), "Beam does not take an option: .*invalid int value: 'many'"),
        (("direct_num_worker", "2"), "Beam has no option `direct_num_worker`.*did you mean `direct_num_workers`"),
    ],
)
def test_options_that_are_wrong(conf: tuple[str, str], message: str) -> None:
    with pytest.raises(BuilderError, match=f"(?s){message}"):
        squall.build(planned(PREFIX + LAST), "beam", Options(conf=(conf,)))


def test_options_of_the_command_line(squall: Callable[..., tuple[int, str, str]], tmp_path: Path) -> None:
    (tmp_path / "rule.jena").write_text(GRANDPARENTS)
    command = ("build", str(tmp_path / "rule.jena"), "--builder", "beam")
    code, _, result = squall(*command, "--conf", "direct_num_worker=2")
    assert (code, result.splitlines()[0]) == (2, "build error: Beam has no option `direct_num_worker`")
    code, _, result = squall(*command, "--conf", "runner=BundleBasedDirectRunner", "--conf", "streaming=true")
    assert (code, result.splitlines()[-1].partition(",")[0]) == (0, "0 statements read")


def test_a_folder_is_no_sink(squall: Callable[..., tuple[int, str, str]], tmp_path: Path) -> None:
    (tmp_path / "rule.jena").write_text(GRANDPARENTS)
    sink = f"{tmp_path / 'out'}/?format=parquet"
    code, _, result = squall("build", str(tmp_path / "rule.jena"), "--builder", "beam", "--sink", sink)
    assert (code, result.splitlines()[0]) == (2, "build error: the builder `beam` writes no folder")


def test_a_runner_elsewhere_knows_its_options_itself() -> None:
    conf = (("runner", "PortableRunner"), ("parallelism_of_that_engine", "7"))
    squall.build(planned(PREFIX + LAST), "beam", Options(conf=conf))


def test_a_checkpoint_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BuilderError, match="keeps no checkpoint"):
        squall.build(planned(PREFIX + LAST), "beam", Options(checkpoint=tmp_path))


def test_without_beam_the_error_names_the_extra() -> None:
    code = "import sys; sys.modules['apache_beam'] = None\nfrom squall.__main__ import main\nmain()"
    command = [sys.executable, "-c", code, "build", "--builder", "beam", "--rules", "rdfs"]
    outputs = subprocess.run(command, env=IMPORTING, capture_output=True, text=True)
    assert outputs.returncode == 2
    assert outputs.stderr == (
        "plug-in error: the builder `beam` needs `apache_beam`, which is not installed\n"
        "hint: pip install 'squall[beam]' (in a checkout: pip install '.[beam]')\n"
    )


# What it shows


PROGRAMS = {
    "keys": GRANDPARENTS,
    "recursion": REACH + GRAND,
    "order": PREFIX + "[once: (?a :parent ?b) -> remove(0)]",
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_steps_are_shown(name: str) -> None:
    description = squall.build(planned(PROGRAMS[name]), "beam").describe()  # type: ignore[attr-defined]
    assert description + "\n" == (GOLDEN / f"{name}.txt").read_text()


def test_the_steps_of_the_pipeline_have_the_names_that_are_shown() -> None:
    import apache_beam

    from squall.builders.beam.graph import graph
    from squall.builders.beam.pipeline import Input, KeyedPipeline
    from squall.builders.distributed.exec.program import Program
    from squall.builders.distributed.io.parsing import lines_parser
    from squall.builders.distributed.plan.physical_plan import physical_plan

    plan = planned(GRANDPARENTS)
    physical = physical_plan(plan, in_one_job=True)
    pipeline = apache_beam.Pipeline(runner="FnApiRunner")
    KeyedPipeline(pipeline, graph(physical), Program(physical), Input([], lines_parser(()), "")).build()
    text = squall.build(plan, "beam").describe()  # type: ignore[attr-defined]
    steps = text.partition("steps of the pipeline\n")[2].partition("where a source is live")[0]
    names = {name.partition("/")[0] for name in pipeline.applied_labels}
    ours = [rows.element_type for rows in _groupings(pipeline) if rows.producer.full_label.endswith(": rows")]
    assert ours == [apache_beam.typehints.Tuple[int, bytes]] * 4
    shown = {line.strip() for line in steps.splitlines() if not line.startswith("   ")}
    assert len(shown) == 4
    assert shown <= names
    assert any("join-" in name for name in names)


def _groupings(pipeline: Any) -> list[Any]:
    """Returns the inputs of the GroupByKey steps of a pipeline."""
    from apache_beam import GroupByKey
    from apache_beam.pipeline import PipelineVisitor

    anys: list[Any] = []

    class Visitor(PipelineVisitor):  # type: ignore[misc]
        def visit_transform(self, node: Any) -> None:
            if isinstance(node.transform, GroupByKey):
                anys.extend(node.inputs)

    pipeline.visit(Visitor())
    return anys
