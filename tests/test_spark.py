"""The Spark builder: restarts after kills, late and malformed statements, spooling, users' functions, several
batches."""

from __future__ import annotations

import gc
import gzip
import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from dataclasses import replace
from importlib import import_module
from importlib.util import find_spec
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import squall
from squall import functions
from squall.builders.spark.settings import DEFAULT_TUNING, SparkTuning
from squall.contracts import Interval, Job, Options, Output
from squall.errors import BuilderError, SourceError
from squall.plan.node_metrics import PlanMetrics
from squall.rdf import ALWAYS, Event, Term, Triple, iri
from squall.streams import DeadLetterFile, Sources, open_source, open_static

pyspark = pytest.importorskip("pyspark")
pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("in_tasks")]

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from squall.builders.spark.inputs import BatchInput

REACH = """
@prefix : <http://example.org/>.
[link: (?a :edge ?b) noValue(?a, :closed) -> (?a :link ?b)]
[path: (?a :link ?b) -> (?a :path ?b)]
[step: (?a :path ?b) (?b :path ?c) -> (?a :path ?c)]
"""
CUT = REACH.replace("noValue(?a, :closed) ", "") + "[cut: (?a :closed ?any) (?a :edge ?b) -> remove(1)]"
"""A program that one task runs as a whole."""
GRANDPARENTS = "@prefix : <http://example.org/>.\n(?a :parent ?b) (?b :parent ?c) -> (?a :grandparent ?c)."


def triple(subject: str, predicate: str, object: str) -> Triple:
    return Triple(*(iri(f"http://example.org/{name}") for name in (subject, predicate, object)))


def edges(count: int, seed: int) -> list[tuple[int, Triple]]:
    """Edges between few nodes at successive times; now and then a node is closed."""
    draw = random.Random(seed)
    nodes = [f"n{number}" for number in range(12)]
    facts = []
    for number in range(count):
        closes = draw.random() < 0.1
        item, other = draw.choice(nodes), draw.choice(nodes)
        facts.append((number // 3, triple(item, "closed", "yes") if closes else triple(item, "edge", other)))
    return facts


def write(folder: Path, facts: list[tuple[int, Triple]], files: int) -> None:
    """Writes the facts as timed N-Triples into several files, whose names and modification times are in the order of
    time."""
    folder.mkdir(parents=True, exist_ok=True)
    share = -(-len(facts) // files)
    for number in range(files):
        path = folder / f"part{number:03d}.ntt"
        part = facts[number * share : (number + 1) * share]
        path.write_text("".join(f"{time} {fact}\n" for time, fact in part))
        os.utime(path, (1_700_000_000 + number, 1_700_000_000 + number))


def reference(program: str, facts: list[tuple[int, Triple]]) -> list[tuple[int, str]]:
    plan = squall.plan(squall.compile(program, lexer="jena"))
    return plain(squall.run(plan, [Event(time, (fact,)) for time, fact in facts]))


def plain(outputs: Iterator[Output]) -> list[tuple[int, str]]:
    return sorted((output.time, str(output.fact)) for output in outputs)


def run_folder(program: str, folder: Path, options: Options, tuning: SparkTuning = DEFAULT_TUNING) -> Iterator[Output]:
    from squall.builders.spark.job import SparkJob

    plan = squall.plan(squall.compile(program, lexer="jena"))
    return SparkJob(plan, options, tuning).run(Sources([open_source(str(folder), options.ledger)]))


@pytest.fixture
def one_file_per_batch() -> Iterator[None]:
    from squall.builders.spark import MAX_FILES_PER_TRIGGER, session

    spark = session()
    spark.conf.set(MAX_FILES_PER_TRIGGER, "1")
    yield
    spark.conf.unset(MAX_FILES_PER_TRIGGER)


@pytest.mark.more
@pytest.mark.usefixtures("one_file_per_batch")
def test_java_objects_are_released(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Python's garbage collector would release them late, since it does not know how much memory they use in Java."""
    from squall.builders.spark.sink_commit import SinkCommitter

    numbers: list[int] = []
    commit = SinkCommitter.commit

    def counted(self: SinkCommitter) -> None:
        numbers.append(sum(type(object).__name__ == "JavaObject" for object in gc.get_objects()))
        commit(self)

    monkeypatch.setattr(SinkCommitter, "commit", counted)
    facts = edges(20, seed=1)
    write(tmp_path / "in", facts, files=10)
    gc.disable()
    try:
        outputs = run_folder(REACH, tmp_path / "in", Options(), SparkTuning(compaction_interval=2))
        assert plain(outputs) == reference(REACH, facts)
    finally:
        gc.enable()
    assert max(numbers) < 2 * max(numbers[:2]), "no more than what two batches take"


@pytest.mark.usefixtures("one_file_per_batch")
def test_many_batches_give_what_one_gives(tmp_path: Path) -> None:
    facts = edges(30, seed=1)
    write(tmp_path / "in", facts, files=3)
    assert plain(run_folder(REACH, tmp_path / "in", Options())) == reference(REACH, facts)


@pytest.fixture
def passed_on(monkeypatch: pytest.MonkeyPatch) -> list[DataFrame]:
    """Collects the micro-batches whose lines Spark passes to the driver."""
    from squall.builders.spark.batch_processor import BatchProcessor

    data_frames: list[DataFrame] = []
    process = BatchProcessor.process

    def noted(self: BatchProcessor, batch_input: BatchInput, **options: bool) -> None:
        data_frames.extend(batch_input.texts)
        process(self, batch_input, **options)

    monkeypatch.setattr(BatchProcessor, "process", noted)
    return data_frames


@pytest.mark.more
@pytest.mark.usefixtures("one_file_per_batch")
def test_workers_read_the_files_of_a_micro_batch_by_themselves(tmp_path: Path, passed_on: list[DataFrame]) -> None:
    """They read the parts that Spark makes of the files. There are several sources, of which some may have no file in a
    micro-batch."""
    from squall.builders.spark import session

    facts = edges(60, seed=1)
    folder = tmp_path / "a [b] {c}%20 d"
    write(folder, facts[20:], files=2)
    write(tmp_path / "rest", facts[:20], files=1)
    (tmp_path / "rest" / "part000.ntt").rename(tmp_path / "rest.ntt")
    size = "spark.sql.files.maxPartitionBytes"
    before = str(session().conf.get(size))
    session().conf.set(size, "500")
    try:
        plan = squall.plan(squall.compile(GRANDPARENTS.replace("parent ", "edge "), lexer="jena"))
        sources = Sources([open_source(str(place)) for place in (folder, tmp_path / "rest.ntt")])
        result = plain(squall.build(plan, "spark").run(sources))
    finally:
        session().conf.set(size, before)
    assert {fact for _, fact in result} == {
        str(out.fact) for out in squall.run(plan, [Event(0, (f,)) for _, f in facts])
    }
    assert [source.reading.statements for source in sources.sources] == [40, 20]
    assert not passed_on


@pytest.mark.more
@pytest.mark.usefixtures("one_file_per_batch")
@pytest.mark.parametrize(("names", "most"), [(["one", "two"], 1000), (["one"], 0)], ids=["of two sources", "many"])
def test_lines_of_files_come_from_spark_where_these_are(
    tmp_path: Path, passed_on: list[DataFrame], names: list[str], most: int
) -> None:
    from squall.builders.spark.job import SparkJob

    write(tmp_path / "in", edges(30, seed=1), files=2)
    streams = " ".join(f"FROM STREAM :{name} [RANGE 1000s]" for name in names)
    query = f"REGISTER QUERY q AS PREFIX : <http://example.org/> SELECT ?a ?b {streams} WHERE {{ ?a :edge ?b }}"
    plan = squall.plan(squall.compile(query, lexer="csparql"))

    def answers(job: Job) -> set[str]:
        sources = Sources([open_source(f"http://example.org/{name}={tmp_path / 'in'}") for name in names])
        return {fact for _, fact in plain(job.run(sources))}

    job = SparkJob(plan, Options(), SparkTuning(max_listed_splits=most))
    assert answers(job) == answers(squall.build(plan)) != set()
    assert len(passed_on) == 2


@pytest.mark.usefixtures("always_by_levels")
def test_a_key_may_have_half_of_all_rows(tmp_path: Path) -> None:
    program = "@prefix : <http://example.org/>.\n(?a :to ?b) (?b :on ?c) noValue(?c, :closed) -> (?a :reaches ?c)."
    facts = [(time, triple(f"n{time}", "to", "hub" if time % 2 else f"h{time}")) for time in range(100)]
    facts += [(time, triple("hub" if time % 2 else f"h{time}", "on", f"m{time}")) for time in range(100)]
    facts += [(50, triple("m7", "closed", "yes"))]
    facts.sort(key=itemgetter(0))
    write(tmp_path / "in", facts, files=2)
    result = plain(run_folder(program, tmp_path / "in", Options()))
    assert result == reference(program, facts)
    assert len(result) > 50 * 49


@pytest.mark.more
def test_a_restart_resumes_from_the_checkpoint(tmp_path: Path) -> None:
    options = Options(checkpoint=tmp_path / "checkpoint")
    write(tmp_path / "in", [(1, triple("ann", "parent", "bob"))], files=1)
    assert plain(run_folder(GRANDPARENTS, tmp_path / "in", options)) == []
    assert plain(run_folder(GRANDPARENTS, tmp_path / "in", options)) == []
    (tmp_path / "in" / "later.ntt").write_text(f"2 {triple('bob', 'parent', 'cat')}\n")
    assert plain(run_folder(GRANDPARENTS, tmp_path / "in", options)) == [(2, str(triple("ann", "grandparent", "cat")))]
    assert plain(run_folder(GRANDPARENTS, tmp_path / "in", options)) == []


@pytest.mark.parametrize(
    "content", [b"", b"no archive", gzip.compress(b"1 <urn:a> <urn:b> <urn:c> .", mtime=0)[:15] + b"nonsense" * 9]
)
def test_of_a_file_that_cannot_be_read_nothing_is_seen(tmp_path: Path, content: bytes) -> None:
    """The error is reported where the run reads the file."""
    from squall.builders.spark.executor_sources import ExecutorSource
    from squall.builders.spark.inputs import Inputs, document_of, heads

    path = tmp_path / "a.ntt.gz"
    path.write_bytes(content)
    source = open_source(str(path))
    inputs = Inputs((document_of(source, ExecutorSource()),), (source,), False, False)
    assert [list(head.events) for head in heads(inputs)] == [[]]
    path.unlink()
    assert [list(head.events) for head in heads(inputs)] == [[]]


def test_the_beginning_of_a_file_stands_for_its_source(tmp_path: Path) -> None:
    from squall.builders.spark.executor_sources import ExecutorSource
    from squall.builders.spark.inputs import Inputs, batch_heads, document_of, heads

    for number in range(2):
        lines = (f"{time} <urn:{number}> <urn:p> <urn:{time:020}> .\n" for time in range(10_000))
        (tmp_path / f"{number}.ntt").write_text("".join(lines))
    source = open_source(str(tmp_path))
    size = (tmp_path / "0.ntt").stat().st_size
    documents = (document_of(source, ExecutorSource()),)
    (head,) = heads(Inputs(documents, (source,), False, False))
    assert 0 < len(head.events) < 10_000
    assert head.share == pytest.approx(len(head.events) / 20_000, rel=0.05)
    parts = [(0, str(tmp_path / "0.ntt"), size // 2, -1), (0, str(tmp_path / "1.ntt"), 0, size - 1)]
    (head,) = batch_heads(documents, parts)
    assert str(head.events[0].facts[0][0]) == "<urn:1>"
    assert head.share == pytest.approx(len(head.events) / 15_000, rel=0.05)
    assert not list(batch_heads(documents, parts[:1]))  # no file begins with this batch


@pytest.mark.more
@pytest.mark.parametrize("most", [None, "0"])
def test_the_static_side_of_a_join_goes_to_all_tasks(tmp_path: Path, most: str | None) -> None:
    """It is broadcast as long as it is small, also where streams add to it later, in another run."""
    from squall.builders.spark import session

    program = "@prefix : <http://example.org/>.\n[r: (?o :by ?s) (?s :in ?r) (?r :at ?f) -> (?o :on ?f)]"
    plan = squall.plan(squall.compile(program, lexer="jena"))
    existing = "".join(f"{triple(f's{n}', 'in', f'r{n % 2}')}\n" for n in range(5)) + f"{triple('r0', 'at', 'f0')}\n"
    (tmp_path / "known.nt").write_text(existing)
    options = Options(checkpoint=tmp_path / "checkpoint")
    write(tmp_path / "in", [(n, triple(f"o{n}", "by", f"s{n % 5}")) for n in range(100)], files=2)
    more = [(100 + n, triple(f"o{100 + n}", "by", "s1")) for n in range(10)] + [(105, triple("r1", "at", "f1"))]
    conf, result = session().conf, []
    if most is not None:
        conf.set("spark.squall.maxBroadcastRows", most)
    try:
        for part in ([], more):
            lines = [f"{time} {fact}\n" for time, fact in sorted(part, key=itemgetter(0))]
            if lines:
                (tmp_path / "in" / "later.ntt").write_text("".join(lines))
            sources = Sources([open_source(str(tmp_path / "in"))])
            job = squall.build(plan, "spark", options)
            result += plain(job.run(sources, open_static(str(tmp_path / "known.nt"))))
            assert ("in every task" in job.describe()) is (most is None)  # type: ignore[attr-defined]
    finally:
        conf.unset("spark.squall.maxBroadcastRows")
    assert sorted(result) == sorted(set(result))
    assert len(result) == 60 + 40 + 10
    assert (tmp_path / "checkpoint" / "broadcast.json").exists() is (most is None)


def test_a_vocabulary_goes_to_all_tasks_though_rules_and_streams_add_to_it(tmp_path: Path) -> None:
    """In a recursion, `:likes` comes to imply a predicate at once, and `:meets` later."""
    program = """
    @prefix : <http://example.org/>.
    [(?p :implies ?q) (?s ?p ?o) -> (?s ?q ?o)]
    [(?p :range ?c) (?s ?p ?o) -> (?o :is ?c)]
    [(?p :near ?q) -> (?p :implies ?q)]
    """
    plan = squall.plan(squall.compile(program, lexer="jena"))
    existing = [("loves", "implies", "likes"), ("near", "implies", "implies"), ("likes", "near", "knows")]
    existing += [("knows", "range", "person")]
    (tmp_path / "known.nt").write_text("".join(f"{triple(*fact)}\n" for fact in existing))
    facts = [(n, triple(f"s{n}", ["loves", "likes", "meets"][n % 3], f"s{n + 1}")) for n in range(60)]
    write(tmp_path / "in", facts, files=2)
    options = Options(checkpoint=tmp_path / "checkpoint")
    results = []
    for part in ("", f"100 {triple('meets', 'near', 'likes')}\n"):
        if part:
            (tmp_path / "in" / "later.ntt").write_text(part)
        job = squall.build(plan, "spark", options)
        results += plain(job.run(Sources([open_source(str(tmp_path / "in"))]), open_static(str(tmp_path / "known.nt"))))
        assert "in every task, for itself" in job.describe()  # type: ignore[attr-defined]
    events = [Event(time, (fact,)) for time, fact in [*facts, (100, triple("meets", "near", "likes"))]]
    static = [Event(ALWAYS, (triple(*fact),)) for fact in existing]
    assert sorted(results) == sorted(plain(squall.build(plan).run([events], static)))
    assert len(results) > 150


@pytest.mark.more
@pytest.mark.parametrize("share", [None, "0"])
def test_a_skewed_key_is_split_over_tasks(tmp_path: Path, share: str | None) -> None:
    """The key is found when the run begins. A run that resumes from its checkpoint keeps it, and does not split keys
    that become skewed later."""
    from squall.builders.spark import session

    program = "@prefix : <http://example.org/>.\n[r: (?o :by ?s) (?s :in ?r) -> (?o :on ?r)]"
    plan = squall.plan(squall.compile(program, lexer="jena"))
    options = Options(checkpoint=tmp_path / "checkpoint")
    message = [(n, triple(f"o{n}", "by", f"s{n if n % 2 else 0}")) for n in range(100)]
    write(tmp_path / "in", [*message, *((n, triple(f"s{n}", "in", f"r{n % 3}")) for n in range(100))], files=1)
    more = [(100 + n, triple(f"o{100 + n}", "by", "s1")) for n in range(50)] + [(150, triple("s0", "in", "r9"))]
    conf, result = session().conf, []
    conf.set("spark.squall.maxSingleTaskRows", "0")
    if share is not None:
        conf.set("spark.squall.skewThreshold", share)
    try:
        for part in ([], more):
            if part:
                (tmp_path / "in" / "later.ntt").write_text("".join(f"{time} {fact}\n" for time, fact in part))
            job = squall.build(plan, "spark", options)
            result += plain(job.run(Sources([open_source(str(tmp_path / "in"))])))
            description = job.describe()  # type: ignore[attr-defined]
            assert ("; of the skewed keys <http://example.org/s0>: input" in description) is (share is None)
            assert "s1>" not in description
    finally:
        conf.unset("spark.squall.maxSingleTaskRows")
        conf.unset("spark.squall.skewThreshold")
    assert sorted(result) == sorted(set(result))
    assert len(result) == 100 + 50 + 50
    assert (tmp_path / "checkpoint" / "skewed_keys.json").exists() is (share is None)


@pytest.mark.more
def test_a_checkpoint_may_have_any_name(tmp_path: Path) -> None:
    """Spark reads a path as a pattern, and Hadoop decodes no escapes."""
    folder = tmp_path / "a b, {c} [d]%20^"
    options = Options(checkpoint=folder / "checkpoint")
    plan = squall.plan(squall.compile(GRANDPARENTS, lexer="jena"))
    (tmp_path / "known.ttl").write_text("@prefix : <http://example.org/> . :bob :parent :cat .")
    results = []
    for at, name in enumerate(("ann", "eve")):
        write(folder / "in", [(at, triple(name, "parent", "bob"))], files=1)
        (folder / "in" / "part000.ntt").rename(folder / "in" / f"{name}.ntt")
        sources = Sources([open_source(str(folder / "in"))])
        results += plain(squall.build(plan, "spark", options).run(sources, open_static(str(tmp_path / "known.ttl"))))
    assert results == [(at, str(triple(name, "grandparent", "cat"))) for at, name in enumerate(("ann", "eve"))]
    assert sorted(path.name for path in tmp_path.iterdir()) == [folder.name, "known.ttl"]


def test_a_session_that_is_there_is_left_as_it_is_in_any_thread() -> None:
    from squall.builders.spark import session

    spark = session()
    name = "spark.sql.shuffle.partitions"
    before = str(spark.conf.get(name))
    spark.conf.set(name, "77")
    with ThreadPoolExecutor() as pool:
        result = pool.submit(session).result()
    assert result is spark
    assert spark.conf.get(name) == "77"
    spark.conf.set(name, before)


def test_workers_do_not_look_for_cycles_all_the_time() -> None:
    from squall.builders.distributed.io.records import STATE_HANDLE, Record, constant_step
    from squall.builders.spark import session
    from squall.builders.spark.workers import by_workers

    def step(batches: Iterator[Any]) -> Iterator[Any]:
        return constant_step([Record(STATE_HANDLE, 0, 0, 0, 0, str(gc.get_threshold()), 0, 0, 0)])(batches)

    (rows,) = by_workers(session().range(0, 1, 1, 1), step).collect()
    assert rows["row"] == "(100000, 50, 100)"


@pytest.mark.parametrize("partitions", [2, 5, 64, 100])
def test_buckets_are_dealt_out_evenly(tmp_path: Path, partitions: int, monkeypatch: pytest.MonkeyPatch) -> None:
    from pyspark.sql import functions as f

    from squall.builders.distributed.plan.buckets import BUCKET_COUNT, bucket_partitions
    from squall.builders.spark import engine, session
    from squall.builders.spark.store import Store

    spark = session()
    spark_engine = engine.SparkEngine(spark, Store(tmp_path))
    spark_engine.partitions = partitions
    monkeypatch.setattr(engine, "by_workers", lambda records, step: records)
    rows = spark.range(-1, BUCKET_COUNT).selectExpr("cast(id as int) as bucket")
    shuffled = spark_engine.shuffle(rows, iter).withColumn("place", f.spark_partition_id())
    lies = {row.bucket: row.place for row in shuffled.collect()}
    assert lies.pop(-1) in range(partitions), "what is for all, but for a later step, is kept"
    assert [lies[bucket] for bucket in range(BUCKET_COUNT)] == list(bucket_partitions(partitions))
    many = Counter(bucket_partitions(partitions)).values()
    assert len(many) == min(partitions, BUCKET_COUNT)
    assert max(many) - min(many) <= 1


def test_a_session_of_our_own_has_our_settings() -> None:
    from squall.builders.spark import DEFAULTS, session

    spark = session()
    existing = dict(spark.sparkContext.getConf().getAll())
    java = spark._jvm.java.lang.management.ManagementFactory.getRuntimeMXBean().getInputArguments()  # type: ignore[union-attr]
    assert existing["spark.ui.retainedJobs"] == DEFAULTS["spark.ui.retainedJobs"] == "50"
    assert "-XX:TieredStopAtLevel=1" in list(java), "it compiles quickly"
    assert existing["spark.python.daemon.module"] == "squall.builders.spark_daemon"
    assert existing["spark.python.unix.domain.socket.enabled"] == "true", "nothing waits for acknowledgements"
    logs = str(spark.conf.get("spark.sql.streaming.checkpointFileManagerClass"))
    assert spark._jvm.java.lang.Class.forName(logs).getSimpleName() == "FileSystemBasedCheckpointFileManager"  # type: ignore[union-attr]


@pytest.mark.more
def test_sockets_go_with_the_process(tmp_path: Path) -> None:
    """The sockets are used where their names may be as long as in a folder for temporary files; elsewhere there are
    none."""
    script = """
from squall.builders.spark import session
spark = session()
known = dict(spark.sparkContext.getConf().getAll())
print(known.get("spark.python.unix.domain.socket.dir"), spark.sparkContext.range(0, 4, 1, 2).map(str).collect())
"""
    long = tmp_path / ("long" * 12)
    long.mkdir()
    with tempfile.TemporaryDirectory(dir="/tmp") as short:
        for place, has_sockets in ((short, True), (str(long), False)):
            environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "TMPDIR": place}
            command = [sys.executable, "-c", script]
            text = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout
            folder, _, answer = text.partition(" ")
            assert folder.startswith(f"{short}/squall-") is has_sockets
            assert answer == "['0', '1', '2', '3']\n"
            assert not list(Path(place).glob("squall-*"))


@pytest.mark.parametrize(("letter", "has_sockets"), [("e", True), ("é", False)])
def test_the_name_of_a_socket_is_as_long_as_its_bytes(
    monkeypatch: pytest.MonkeyPatch, letter: str, has_sockets: bool
) -> None:
    result = import_module("squall.builders.spark.session")
    monkeypatch.setattr(result, "_socket_folder", lambda: f"/tmp/{letter * 40}")
    assert bool(result._sockets()) is has_sockets


def test_workers_take_the_files_of_pyspark_and_not_its_archive() -> None:
    from squall.builders.distributed.io.records import STATE_HANDLE, Record, constant_step
    from squall.builders.spark import session
    from squall.builders.spark.workers import by_workers

    def step(batches: Iterator[Any]) -> Iterator[Any]:
        files = [sys.modules["pyspark.worker"].__file__, sys.modules["py4j"].__file__]
        importers = [str(place) for place in sys.path_importer_cache if "pyspark" in str(place)]
        return constant_step([Record(STATE_HANDLE, 0, 0, 0, 0, str([*files, *sys.path, *importers]), 0, 0, 0)])(batches)

    (rows,) = by_workers(session().range(0, 1, 1, 1), step).collect()
    assert "site-packages" in rows["row"]
    assert "pyspark.zip" not in rows["row"]
    assert ".jar" not in rows["row"], "each task would read its directory, when it invalidates the caches of importers"


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="the number of threads is unknown")
def test_workers_are_forked_from_a_process_without_other_threads() -> None:
    """PyArrow and NumPy would start threads."""
    if pyspark.__version__ < "4.1":
        pytest.skip("PySpark 4.0 loads NumPy itself")
    archive = Path(find_spec("pyspark").origin).parent / "python" / "lib" / "pyspark.zip"  # type: ignore[union-attr, arg-type]
    script = f"""
import os, sys
sys.path.insert(0, {str(archive)!r})
import squall.builders.spark_daemon, pyspark
print(pyspark.__file__, {{"pyarrow", "numpy"}} & {{*sys.modules}}, len(os.listdir("/proc/self/task")))
"""
    text = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    assert text == f"{archive.parents[2] / '__init__.py'} set() 1\n"


NOTED = """
@prefix : <http://example.org/>.
[(?x :parent ?y) noValue(?x, :gone) now(?t) -> (?x :noted ?t)]
"""


@pytest.mark.more
def test_a_restart_knows_when_the_first_run_began(tmp_path: Path) -> None:
    """Outputs of time functions over static data are retracted with the time of the first run."""
    plan = squall.plan(replace(squall.compile(NOTED, lexer="jena"), output="dstream"))
    always = [Event(ALWAYS, (triple("ann", "parent", "bob"),))]
    facts = [(1, triple("eve", "parent", "dan")), (5, triple("ann", "gone", "yes"))]

    def outputs(now: int, fact: tuple[int, Triple]) -> list[tuple[int, str]]:
        write(tmp_path / str(now), [fact], files=1)
        os.rename(tmp_path / str(now) / "part000.ntt", _into(tmp_path) / f"part{now}.ntt")
        options = Options(checkpoint=tmp_path / "checkpoint", now=now)
        return plain(squall.build(plan, "spark", options).run(Sources([open_source(str(tmp_path / "in"))]), always))

    events = [Event(time, (fact,)) for time, fact in facts]
    undisturbed = squall.build(plan, options=Options(now=1000)).run([events], always)
    taken_back = plain(undisturbed)
    assert len(taken_back) == 1
    assert outputs(1000, facts[0]) == []
    assert outputs(2000, facts[1]) == taken_back


@pytest.mark.more
def test_the_state_survives_its_compaction(tmp_path: Path) -> None:
    options = Options(checkpoint=tmp_path / "checkpoint")
    facts = edges(24, seed=3)
    outputs: list[tuple[int, str]] = []
    for number, part in enumerate([facts[:9], facts[9:15], facts[15:]]):
        write(tmp_path / f"in{number}", part, files=1)
        os.rename(tmp_path / f"in{number}" / "part000.ntt", _into(tmp_path) / f"part{number}.ntt")
        outputs += plain(run_folder(REACH, tmp_path / "in", options, SparkTuning(compaction_interval=2)))
    assert (tmp_path / "checkpoint" / "base").is_dir()
    assert sorted(outputs) == reference(REACH, facts)


def _into(folder: Path) -> Path:
    (folder / "in").mkdir(exist_ok=True)
    return folder / "in"


def test_a_checkpoint_is_one_programs_own(tmp_path: Path) -> None:
    options = Options(checkpoint=tmp_path / "checkpoint")
    write(tmp_path / "in", [(1, triple("ann", "parent", "bob"))], files=1)
    list(run_folder(GRANDPARENTS, tmp_path / "in", options))
    with pytest.raises(BuilderError, match="is that of another run: without rules "):
        squall.build(squall.plan(squall.compile(REACH, lexer="jena")), "spark", options)


def test_a_checkpoint_of_another_version_is_refused(tmp_path: Path) -> None:
    (tmp_path / "checkpoint").mkdir()
    (tmp_path / "checkpoint" / "meta.json").write_text('{"plan": "", "buckets": 64}')
    with pytest.raises(BuilderError, match="has the format 1: an older version of squall wrote it"):
        squall.build(
            squall.plan(squall.compile(REACH, lexer="jena")), "spark", Options(checkpoint=tmp_path / "checkpoint")
        )


def test_what_a_worker_finds_wrong_is_an_error_as_in_process(tmp_path: Path) -> None:
    program = "@prefix : <http://example.org/>.\n[grows: (?x :parent ?y) -> (?x :parent child(?y)) (?x :is :parent)]"
    write(tmp_path / "in", [(1, triple("ann", "parent", "bob"))], files=1)
    plan, options = squall.plan(squall.compile(program, lexer="jena")), Options(max_depth=3)
    message = []
    for builder in ("iterator", "spark"):
        with pytest.raises(BuilderError, match="grows") as caught:
            list(squall.build(plan, builder, options).run(Sources([open_source(str(tmp_path / "in"))])))
        message.append(str(caught.value))
    assert message[0] == message[1]


@pytest.mark.more
def test_late_statements_go_to_the_ledger(tmp_path: Path) -> None:
    with closing(DeadLetterFile(tmp_path / "lost.ndjson")) as ledger:
        options = Options(checkpoint=tmp_path / "checkpoint", ledger=ledger)
        write(tmp_path / "in", [(5, triple("ann", "parent", "bob"))], files=1)
        assert plain(run_folder(GRANDPARENTS, tmp_path / "in", options)) == []
        (tmp_path / "in" / "late.ntt").write_text(f"4 {triple('bob', 'parent', 'cat')}\n")
        assert plain(run_folder(GRANDPARENTS, tmp_path / "in", options)) == []
        assert ledger.total("late") == 1
    assert "its time 4 has passed" in (tmp_path / "lost.ndjson").read_text()


@pytest.mark.more
def test_a_dead_letter_has_its_line_number_in_every_split(tmp_path: Path) -> None:
    from squall.builders.spark import session

    lines = [str(triple(f"p{number}", "parent", f"p{number + 1}")) for number in range(300)]
    lines[7] = "one that is broken ."
    lines[250] = '<http://example.org/s> "no predicate" .'
    path = tmp_path / "family.nt"
    path.write_text("\n".join(lines))
    spark = session()
    spark.conf.set("spark.sql.files.maxPartitionBytes", str(path.stat().st_size // 3))
    spark.conf.set("spark.sql.files.openCostInBytes", "1")
    try:
        with closing(DeadLetterFile(tmp_path / "lost.ndjson")) as ledger:
            source = open_source(str(path), ledger)
            plan = squall.plan(squall.compile(GRANDPARENTS, lexer="jena"))
            outputs = list(squall.build(plan, "spark", Options(ledger=ledger)).run(Sources([source])))
            assert source.reading.statements == 298
    finally:
        spark.conf.unset("spark.sql.files.maxPartitionBytes")
        spark.conf.unset("spark.sql.files.openCostInBytes")
    assert len(outputs) == 299 - 4
    text = (tmp_path / "lost.ndjson").read_text()
    assert '"line": 8,' in text
    assert '"line": 251,' in text


def test_strict_makes_a_malformed_line_an_error(tmp_path: Path) -> None:
    (tmp_path / "family.nt").write_text("broken\n")
    with closing(DeadLetterFile(tmp_path / "lost.ndjson", strict=True)) as ledger:
        source = open_source(str(tmp_path / "family.nt"), ledger)
        plan = squall.plan(squall.compile(GRANDPARENTS, lexer="jena"))
        outputs = squall.build(plan, "spark", Options(ledger=ledger)).run(Sources([source]))
        with pytest.raises(SourceError, match=r"family\.nt"):
            list(outputs)


@pytest.mark.more
def test_an_error_is_reported_once_and_without_stack_traces(tmp_path: Path) -> None:
    """The test has a session of its own, in which Spark logs by squall's settings. Other processes may write to the
    same stream."""
    (tmp_path / "family.jena").write_text(GRANDPARENTS)
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "family.nt").write_text("broken\n")
    command = [sys.executable, "-m", "squall", "build", "family.jena", "--builder", "spark", "--source", "in/"]
    settings = ["--strict", "--conf", "spark.squall.maxFilesPerTrigger=1", "--conf", "spark.master=local[1]"]
    root = Path(squall.__file__).parents[1]
    process = subprocess.run(
        [*command, *settings], cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(root)}, capture_output=True, text=True
    )
    assert process.returncode == 1
    (message,) = re.findall("source error: (.*)", process.stderr)
    assert process.stderr.count(message) == 1, "no Python traceback of this error ends with its message"
    assert "SourceError" not in process.stderr
    assert "PythonException" not in process.stderr, "by this Java reports an error of a Python worker"


def test_other_sources_are_spooled_and_static_data_hold_always(tmp_path: Path) -> None:
    (tmp_path / "family.ttl").write_text("@prefix : <http://example.org/> . :ann :parent :bob . :old :parent _:x .")
    (tmp_path / "known.ttl").write_text("@prefix : <http://example.org/> . :bob :parent :cat .")
    plan = squall.plan(squall.compile(GRANDPARENTS, lexer="jena"))
    results = [
        plain(
            squall.build(plan, builder).run(
                Sources([open_source(str(tmp_path / "family.ttl"))]), open_static(str(tmp_path / "known.ttl"))
            )
        )
        for builder in ("spark", "iterator")
    ]
    assert results[0] == results[1] == [(0, str(triple("ann", "grandparent", "cat")))]


@pytest.mark.more
def test_a_live_stream_ends_when_it_ends() -> None:
    plan = squall.plan(squall.compile(GRANDPARENTS, lexer="jena"))
    events = (Event(time, (triple(f"p{time}", "parent", f"p{time + 1}"),)) for time in range(4))
    times = [output.time for output in squall.run(plan, events, builder="spark")]
    assert times == [1, 2, 3]


@pytest.mark.usefixtures("one_file_per_batch")
def test_run_as_one_batch_starts_no_streaming_query(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from squall.builders.spark.query import QueryRun

    facts = edges(30, seed=1)
    write(tmp_path / "in", facts, files=3)
    monkeypatch.setattr(QueryRun, "outputs", lambda *_: pytest.fail("it streams"))
    assert plain(run_folder(REACH, tmp_path / "in", Options(run_as_one_batch=True))) == reference(REACH, facts)


def test_one_batch_ends_and_has_no_checkpoint(tmp_path: Path) -> None:
    plan = squall.plan(squall.compile(GRANDPARENTS, lexer="jena"))
    (tmp_path / "in").mkdir()
    for builder, options, message in (
        ("spark", Options(run_as_one_batch=True, checkpoint=tmp_path), "keeps no checkpoint"),
        ("iterator", Options(run_as_one_batch=True), "has no batches"),
    ):
        with pytest.raises(BuilderError, match=message):
            squall.build(plan, builder, options)
    job = squall.build(plan, "spark", Options(run_as_one_batch=True))
    follows = f"{tmp_path / 'in'}?follow=yes"
    with pytest.raises(BuilderError, match=r"in\?follow=yes` is live"):
        next(job.run(Sources([open_source(follows)])))
    with pytest.raises(BuilderError, match="what events come from is live"):
        next(job.run(iter([[]])))


@pytest.mark.parametrize(
    ("option", "why"),
    [
        (Options(allow_removed_rules=True), "resumes only from a checkpoint of the same program"),
        (Options(checkpoint_interval=Interval(statements=5)), "decides itself when a checkpoint is saved"),
    ],
)
def test_options_of_another_builder_are_refused(option: Options, why: str) -> None:
    with pytest.raises(BuilderError, match=why):
        squall.build(squall.plan(squall.compile(GRANDPARENTS, lexer="jena")), "spark", option)


def test_nodes_are_measured_in_all_tasks(tmp_path: Path) -> None:
    write(tmp_path / "in", [(time, triple(f"p{time}", "parent", f"p{time + 1}")) for time in range(9)], files=2)
    event = [Event(ALWAYS, (triple("old", "parent", "p0"), triple("p5", "parent", "new")))]
    plan = squall.plan(squall.compile(GRANDPARENTS, lexer="jena"))
    rows = []
    for builder in ("spark", "iterator"):
        job = squall.build(plan, builder, Options(measure=True))
        list(job.run(Sources([open_source(str(tmp_path / "in"))]), event))
        figures: PlanMetrics = job.node_metrics()  # type: ignore[attr-defined]
        rows.append({id: figure.rows for id, figure in figures.items() if figure.rows})
    assert rows[0] == rows[1]


@pytest.mark.more
@pytest.mark.usefixtures("one_file_per_batch")
def test_a_listener_of_sparks_hears_what_nodes_have_done(tmp_path: Path) -> None:
    from pyspark.sql.streaming.listener import StreamingQueryListener

    from squall.builders.spark import session

    heard: list[Any] = []

    class Listener(StreamingQueryListener):
        def onQueryStarted(self, event: Any) -> None:
            pass

        def onQueryProgress(self, event: Any) -> None:
            heard.extend(event.progress.observedMetrics.values())

        def onQueryTerminated(self, event: Any) -> None:
            pass

    write(tmp_path / "in", [(time, triple(f"p{time}", "parent", f"p{time + 1}")) for time in range(9)], files=3)
    existing = [Event(ALWAYS, (triple("old", "parent", "p0"), triple("p5", "parent", "new")))]
    plan = squall.plan(squall.compile(GRANDPARENTS, lexer="jena"))
    job = squall.build(plan, "spark", Options(measure=True))
    spark, listener = session(), Listener()
    spark.streams.addListener(listener)
    try:
        list(job.run(Sources([open_source(str(tmp_path / "in"))]), existing))
        spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty()
    finally:
        spark.streams.removeListener(listener)
    figures: PlanMetrics = job.node_metrics()  # type: ignore[attr-defined]
    node, _ = plan.sink
    assert figures[node.id].rows == 8 + 1 + 1
    last = heard[-1]
    assert last["batch"] == 3, "static data, and three files"
    assert last["rows"] == {id: figure.rows for id, figure in figures.items()}
    assert last["seconds"] == {id: figure.seconds for id, figure in figures.items() if figure.seconds is not None}
    assert heard[0]["rows"].get(node.id, 0) < 10


@pytest.mark.more
def test_an_error_of_the_stream_reaches_the_caller() -> None:
    def events() -> Iterator[Event]:
        yield Event(1, (triple("ann", "parent", "bob"),))
        raise OSError("the sensor has gone")

    plan = squall.plan(squall.compile(GRANDPARENTS, lexer="jena"))
    with pytest.raises(OSError, match="the sensor has gone"):
        list(squall.run(plan, events(), builder="spark"))


def test_a_run_may_be_closed_before_its_end() -> None:
    plan = squall.plan(squall.compile("@prefix : <http://example.org/>.\n(?a :p ?b) -> (?b :q ?a).", lexer="jena"))
    outputs = squall.run(plan, [Event(0, tuple(triple(f"s{n}", "p", "o") for n in range(500)))], builder="spark")
    assert next(outputs).time == 0
    outputs.close()
    assert list(squall.run(plan, [], builder="spark")) == []


@pytest.mark.more
def test_outputs_that_were_not_read_are_not_committed(tmp_path: Path) -> None:
    program = "@prefix : <http://example.org/>.\n(?a :p ?b) -> (?b :q ?a)."
    options = Options(checkpoint=tmp_path / "checkpoint")
    write(tmp_path / "in", [(1, triple(f"s{number}", "p", "o")) for number in range(500)], files=1)
    outputs = run_folder(program, tmp_path / "in", options)
    next(outputs)
    time.sleep(3)  # until all the others wait to be taken
    outputs.close()  # type: ignore[attr-defined]
    assert len(list(run_folder(program, tmp_path / "in", options))) == 500


@pytest.mark.more
def test_a_spool_that_cannot_be_written_ends_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError("no space left")

    plan = squall.plan(squall.compile(GRANDPARENTS, lexer="jena"))
    events = (Event(number, (triple("ann", "parent", "bob"),)) for number in range(3))
    job = squall.build(plan, "spark")
    monkeypatch.setattr("squall.builders.spark.spool.write_lines", full)
    with pytest.raises(BuilderError, match=r"cannot be saved in .*: no space left"):
        list(job.run([event] for event in events))


def test_a_users_function_runs_in_the_workers() -> None:
    @functions.function("shout", languages=("jena",))
    def shout(name: Term) -> Term:
        return Term(name.upper())

    @functions.function("again", languages=("jena",), vectorised=True)
    def again(names: list[Term]) -> list[Term]:
        return [Term(f"{name[:-1]} {name[1:]}") for name in names]

    program = "@prefix : <http://example.org/>.\n(?a :says ?b) shout(?b, ?c) again(?c, ?d) -> (?a :shouts ?d)."
    plan = squall.plan(squall.compile(program, lexer="jena"))
    message = Triple(iri("http://example.org/a"), iri("http://example.org/says"), Term('"hello"'))
    (output,) = squall.run(plan, [Event(1, (message,))], builder="spark")
    assert str(output.fact).endswith('"HELLO HELLO" .')


# Kills


MASTER = "local[2]"


WAYS = pytest.mark.parametrize("few", ["0", "16777216"], ids=["in tasks", "in one task"])
"""The most bytes of a micro-batch that one task processes."""


def command(sink: str, checkpoint: str, master: str, few: str) -> list[str]:
    options = [
        "--source",
        "in",
        "--sink",
        sink,
        "--dead-letters",
        "lost.ndjson",
        "--builder",
        "spark",
        "--checkpoint",
        checkpoint,
    ]
    settings = ["spark.squall.maxFilesPerTrigger=1", f"spark.squall.maxSingleTaskBytes={few}", f"spark.master={master}"]
    conf = [word for setting in settings for word in ("--conf", setting)]
    return [sys.executable, "-m", "squall", "build", "reach.jena", *options, *conf]


def start(folder: Path, sink: str, checkpoint: str, few: str, master: str = MASTER) -> subprocess.Popen[bytes]:
    environment = {**os.environ, "PYTHONPATH": str(Path(squall.__file__).parent.parent)}
    with open(folder / "log", "ab") as log:
        return subprocess.Popen(
            command(sink, checkpoint, master, few),
            cwd=folder,
            env=environment,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )


def kill_in_the_middle(folder: Path, sink: str, checkpoint: str, few: str, commits: int, more: float) -> None:
    """Starts a run and kills it, JVM and workers and all, some time after it has committed so many batches in all."""
    process = start(folder, sink, checkpoint, few)
    limit = time.monotonic() + 120
    while process.poll() is None and time.monotonic() < limit:
        if len(list((folder / checkpoint / "commits").glob("[0-9]*.json"))) >= commits:
            break
        time.sleep(0.05)
    time.sleep(more)
    assert process.poll() is None, (folder / "log").read_text()
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def workers_of(process: subprocess.Popen[bytes]) -> list[int]:
    """Returns the ids of the Python workers of a run. A daemon forks them, and is in the session of the run as they
    are."""
    result = {}
    for place in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it may be gone by now
            parent, _, session = (place / "stat").read_text().rpartition(")")[2].split()[1:4]
            if int(session) == process.pid and b"pyspark.worker" in (place / "cmdline").read_bytes():
                result[int(place.name)] = int(parent)
    return [id for id, parent in result.items() if parent in result]


def prepared(folder: Path, files: int, program: str = REACH) -> list[tuple[int, Triple]]:
    """Prepares the run that is killed: a program and its source, each file of which has a malformed line. The facts."""
    facts = edges(max(45, 3 * files), seed=files)
    write(folder / "in", facts, files)
    for number, path in enumerate(sorted((folder / "in").iterdir())):
        with path.open("a") as file:
            file.write(f"broken in {path.name}\n")
        os.utime(path, (1_700_000_000 + number, 1_700_000_000 + number))
    (folder / "reach.jena").write_text(program)
    return facts


def assert_undisturbed(folder: Path, facts: list[tuple[int, Triple]], program: str = REACH) -> None:
    """Checks that each output and each dead letter is there once."""
    lines = (folder / "killed.ntt").read_text().splitlines()
    expected = reference(program, facts)
    assert sorted(lines) == sorted(f"{time} {fact}" for time, fact in expected)
    document = [json.loads(line)["text"] for line in (folder / "lost.ndjson").read_text().splitlines()]
    assert sorted(document) == sorted(f"broken in {path.name}" for path in (folder / "in").iterdir())


@pytest.mark.more
@WAYS
@pytest.mark.parametrize("kills", [1, pytest.param(20, marks=pytest.mark.slow)])
def test_a_killed_run_resumes_from_the_checkpoint(tmp_path: Path, kills: int, few: str) -> None:
    killed_again_and_again(tmp_path, kills, few, REACH, files=kills + 4)


@pytest.mark.more
@WAYS
@pytest.mark.parametrize("kills", [pytest.param(20, marks=pytest.mark.slow)])
def test_a_killed_run_with_updates_resumes_from_the_checkpoint(tmp_path: Path, kills: int, few: str) -> None:
    killed_again_and_again(tmp_path, kills, few, CUT, files=3 * kills)  # micro-batches take little time


def killed_again_and_again(tmp_path: Path, kills: int, few: str, program: str, files: int) -> None:
    facts = prepared(tmp_path, files, program)
    draw = random.Random(kills)
    for number in range(kills):
        kill_in_the_middle(tmp_path, "killed.ntt", "checkpoint", few, commits=2 + number, more=draw.random() * 3)
    assert start(tmp_path, "killed.ntt", "checkpoint", few).wait() == 0, (tmp_path / "log").read_text()
    assert_undisturbed(tmp_path, facts, program)


@pytest.mark.more
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="the workers of a run are found in /proc")
@WAYS
@pytest.mark.parametrize("kills", [2, pytest.param(20, marks=pytest.mark.slow)])
def test_killed_workers_are_not_missed(tmp_path: Path, kills: int, few: str) -> None:
    """The memory of workers holds only a cache."""
    facts = prepared(tmp_path, files=kills + 4)
    process = start(tmp_path, "killed.ntt", "checkpoint", few, master="local[2,100]")
    draw = random.Random(kills)
    killed = 0
    while killed < kills and process.poll() is None:
        time.sleep(draw.random())
        if workers := workers_of(process):
            with suppress(ProcessLookupError):
                os.kill(draw.choice(workers), signal.SIGKILL)
                killed += 1
    assert process.wait() == 0, (tmp_path / "log").read_text()
    assert killed == kills
    assert_undisturbed(tmp_path, facts)
