"""The R2S operator `changes`: a log of it, replayed up to an instant, is the answer at that instant."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pyoxigraph
import pytest
from hypothesis import strategies as st

import squall
from squall.builders.distributed.plan.strategy import strategy_of
from squall.builders.runtime.serde import pack_output, pack_outputs, unpack_output, unpack_outputs
from squall.contracts import Options, Output
from squall.errors import BuilderError, PlannerError, SinkError, SquallError
from squall.model import System, output_specs
from squall.rdf import ALWAYS, Atom, Boolean, Event, Quad, Solution, Term, Triple, iri, literal
from squall.streams import open_sink
from squall.streams.formats.event_json import as_json, output_of
from squall.streams.formats.output_formats import BINARY, CHANGES, LINES, LOGS, MESSAGES, NAMES
from squall.streams.formats.results import DOCUMENTS
from squall.streams.sinks.folders import FolderSink
from squall.testing import assert_as_oracle, oracle, stream
from squall.testing.strategies import ALL, event_streams, static_data, systems
from tests import in_memory
from tests.conftest import Squall
from tests.laws import PLANNERS, examples, hold, on_engines
from tests.test_live_http import serving, status

FEATURES = ALL - {"reports", "output specs"}
"""What a program may have: without report policies, which may skip an instant, and with one answer."""
ALARM = """@prefix : <http://example.org/>.
[alarm: (?room :smoke ?level) noValue(?room, :watched) -> (?room :state :alarm)]"""
ROOMS = """1000 :hall :smoke "high"
2000 :cellar :smoke "low" ; :watched "yes"
3000 :hall :watched "yes"
3000 :attic :smoke "high"
4000 :cave :smoke "high" """
E = "http://example.org/"


def alarms(name: str) -> Triple:
    return Triple(iri(f"{E}{name}"), iri(f"{E}state"), iri(f"{E}alarm"))


EXPECTED = [
    Output(alarms("hall"), 1000, "alarm", "insert"),
    Output(alarms("hall"), 3000, "alarm", "delete"),
    Output(alarms("attic"), 3000, "alarm", "insert"),
    Output(alarms("cave"), 4000, "alarm", "insert"),
]


# The laws


def replayed(outputs: Sequence[Output], until: int) -> Counter[object]:
    """Returns what there is after the changes up to a time (integer ms). Nothing may be deleted that is not there."""
    state: Counter[object] = Counter()
    for output in outputs:
        if output.time <= until:
            state[output.fact] += 1 if output.change == "insert" else -1
            assert state[output.fact] >= 0, output
    return +state


def answer_at(answer: oracle.Answer) -> Counter[object]:
    return Counter([*answer.facts, *(solution for solution, _ in answer.solutions)])


def check_log(system: System, outputs: Sequence[Output], events: Sequence[Event], facts: Sequence[Event]) -> None:
    """Fails unless the outputs, replayed, are the oracle's answer at each instant, and deletions come first."""
    for time, answer in oracle.answers(system, events, facts).items():
        assert replayed(outputs, time) == answer_at(answer), time
    order = [(output.time, output.change) for output in outputs]
    assert order == sorted(order), "of an instant, deletions come before insertions"
    if system.output == "changes":
        assert_as_oracle(system, outputs, events, facts)


@examples(60)
@pytest.mark.parametrize("planner", PLANNERS)
def test_a_replayed_log_is_the_answer_at_each_instant(planner: str, many: int) -> None:
    def law(system: System, events: list[Event], facts: list[Event]) -> None:
        check_log(system, list(squall.run(squall.plan(system, planner), events, static=facts)), events, facts)

    events, facts = event_streams(features=FEATURES), static_data(features=FEATURES)
    hold(law, many, system=systems("changes", FEATURES), events=events, facts=facts)


@on_engines
def test_engines_agree(builder: str, number: int) -> None:
    def law(system: System, events: list[Event], facts: list[Event], seed: int) -> None:
        check_log(system, in_memory.outputs_on(builder, squall.plan(system), events, seed, facts), events, facts)

    events, facts = event_streams(features=FEATURES), static_data(features=FEATURES)
    hold(law, number, system=systems("changes", FEATURES), events=events, facts=facts, seed=st.integers(0, 1000))


def test_deletions_come_first_among_the_outputs_of_all_shards() -> None:
    """Each shard numbers its outputs: those that had outputs before delete with higher numbers than others insert."""
    updates = """PREFIX : <http://example.org/>
    INSERT { ?x :is :Here } WHERE { ?x :comes ?d } ; DELETE { ?x :is :Here } WHERE { ?x :goes ?d }"""
    plan = squall.plan(squall.compile(updates, lexer="sparql", output="changes"))
    assert strategy_of(plan).division == "shards"
    lines = [f"1 :s{number} :comes :now" for number in range(8)]
    lines += [f"5 :s{number} :goes :now\n5 :t{number} :comes :now" for number in range(8)]
    outputs = in_memory.run(plan, [stream("\n".join(lines))], [])
    assert [(output.time, output.change) for output in outputs] == (
        [(2, "insert")] * 8 + [(6, "delete")] * 8 + [(6, "insert")] * 8
    )


def test_solutions_are_deleted_and_inserted_as_often_as_they_are_there() -> None:
    query = "PREFIX : <http://example.org/> SELECT ?y { ?x :p ?y }"
    plan = squall.plan(squall.compile(query, lexer="sparql", window="RANGE 3ms", output="changes"))
    outputs = squall.run(plan, stream("1 :a :p :b\n1 :c :p :b\n2 :d :p :b"))
    assert [(output.time, output.change) for output in outputs] == (
        [(1, "insert")] * 2 + [(2, "insert")] + [(4, "delete")] * 2 + [(5, "delete")]
    )


def test_changes_of_a_derived_stream_are_none_of_its_events() -> None:
    """What a derived stream has output stays in a stream without windows, though the changes delete it."""
    derive = replace(squall.compile(ALARM, lexer="jena"), stream=f"{E}alarms")
    system = System(subsystems=(derive,), output="changes")
    assert [spec.output for spec in output_specs(system)] == ["changes", "istream"]
    with pytest.raises(PlannerError, match=r"the derived stream <http://example.org/alarms> cannot be output by"):
        squall.plan(replace(system, subsystems=(replace(derive, output="changes"),)))


def test_the_option_leaves_derived_streams_as_they_are(tmp_path: Path) -> None:
    (tmp_path / "a.rspql").write_text(
        f"REGISTER RSTREAM <{E}out> AS CONSTRUCT RSTREAM {{ ?x a <{E}B> }} "
        f"FROM NAMED WINDOW <{E}w> ON <{E}s> [RANGE PT10S] WHERE {{ WINDOW <{E}w> {{ ?x a <{E}A> }} }}"
    )
    (tmp_path / "b.rq").write_text(f"CONSTRUCT WHERE {{ ?x a <{E}B> }}")
    system = squall.compile(tmp_path / "a.rspql", tmp_path / "b.rq", output="changes")
    assert {spec.stream: spec.output for spec in output_specs(system) if spec.rules} == {
        f"{E}out": "rstream", "": "changes",
    }  # fmt: skip


# Outputs as text

OUTPUTS = [
    Output(fact, time, "r", change)
    for time in (ALWAYS, 5)
    for change in ("delete", "insert", "")
    for fact in (
        alarms("hall"), Quad(*alarms("a"), iri("urn:g")), Atom(iri("urn:r"), (literal("a\nb"),)), Boolean(True),
        Solution(("x", "y"), (None, iri("urn:a"))),
    )
]  # fmt: skip


def test_changes_survive_serialization() -> None:
    assert [unpack_output(pack_output(output), output.time) for output in OUTPUTS] == OUTPUTS
    texts = pack_outputs(OUTPUTS)
    assert list(unpack_outputs((output.time, 0, text) for output, text in zip(OUTPUTS, texts, strict=True))) == OUTPUTS
    assert [output_of(json.loads(json.dumps(as_json(output)))) for output in OUTPUTS] == OUTPUTS
    triples = [Output(alarms(str(number)), number, "r") for number in range(3)]
    assert list(
        unpack_outputs((out.time, 0, text) for out, text in zip(triples, pack_outputs(triples), strict=True))
    ) == (triples)


def test_the_strings_of_deletions_sort_before_those_of_insertions() -> None:
    by_change = {
        change: [pack_output(output) for output in OUTPUTS if output.change == change]
        for change in ("delete", "insert")
    }
    assert max(by_change["delete"]) < min(by_change["insert"])


# Formats


def written(path: Path, outputs: Sequence[Output]) -> str:
    with closing(open_sink(str(path))) as sink:
        sink.start()
        for output in outputs:
            sink.write(output)
    return path.read_text()


def test_a_patch_has_a_transaction_for_each_instant(tmp_path: Path) -> None:
    other_rule = EXPECTED[2]._replace(fact=alarms("lift"), rule="other")
    text = written(tmp_path / "log.rdfp", [*EXPECTED[:3], other_rule, EXPECTED[3]])
    state = f"<{E}state> <{E}alarm> ."
    assert text == (
        f'H time "1000" .\nTX .\nA <{E}hall> {state}\nTC .\n'
        f'H time "3000" .\nTX .\nD <{E}hall> {state}\nA <{E}attic> {state}\nA <{E}lift> {state}\nTC .\n'
        f'H time "4000" .\nTX .\nA <{E}cave> {state}\nTC .\n'
    )


def test_a_log_of_updates_is_what_a_store_applies(tmp_path: Path) -> None:
    quads: list[Output] = [Output(Quad(*alarms("q"), iri("urn:g")), 1000, "alarm", "insert"), *EXPECTED]
    store = pyoxigraph.Store()
    for request in written(tmp_path / "log.ru", quads).split("# ")[1:]:
        store.update(f"# {request}")
    assert {str(quad) for quad in store} == {
        f"<{E}attic> <{E}state> <{E}alarm>", f"<{E}cave> <{E}state> <{E}alarm>",
        f"<{E}q> <{E}state> <{E}alarm> <urn:g>",
    }  # fmt: skip


def test_a_blank_node_is_no_part_of_an_update(tmp_path: Path) -> None:
    fact = Triple(Term("_:b"), iri("urn:p"), literal("x"))
    with pytest.raises(SinkError, match=r"cannot name the blank node of `_:b <urn:p> \"x\" .`"):
        written(tmp_path / "log.ru", [Output(fact, 1, "r", "insert")])


@pytest.mark.parametrize(
    "format", sorted({*LINES, *BINARY, *DOCUMENTS, *MESSAGES, "trig", "ndjson-evaluations"} - CHANGES)
)
def test_other_formats_refuse_changes(format: str, tmp_path: Path) -> None:
    with pytest.raises(SinkError, match="does not say whether an output is inserted or deleted"):
        written(tmp_path / f"log?format={format}", EXPECTED)


def test_all_formats_either_have_changes_or_refuse_them() -> None:
    assert set(NAMES) == {*LINES, *BINARY, *DOCUMENTS, *MESSAGES, "trig", "ndjson-evaluations", *CHANGES}


@pytest.mark.parametrize("format", sorted(LOGS))
def test_what_a_log_buffers_is_part_of_a_checkpoint(format: str, tmp_path: Path) -> None:
    path = tmp_path / f"log.{format}"
    whole = written(path, EXPECTED)
    for cut in range(len(EXPECTED) + 1):
        first, second = open_sink(str(path)), open_sink(str(path))
        with closing(first):
            first.start()
            for output in EXPECTED[:cut]:
                first.write(output)
            state = json.loads(json.dumps(first.snapshot()))  # type: ignore[attr-defined]
        with closing(second):
            second.start(resume=True)
            second.restore(state)  # type: ignore[attr-defined]
            for output in EXPECTED[cut:]:
                second.write(output)
        assert path.read_text() == whole


def test_a_store_gets_a_request_for_each_instant() -> None:
    """The protocol is that of SPARQL 1.1 Protocol, section 2.2.2 (update via POST directly)."""
    with serving(*[status(200)] * 3) as server:
        with closing(open_sink(server.at("update?format=ru"))) as sink:
            sink.start()
            for output in EXPECTED:
                sink.write(output)
        assert [headers["Content-Type"] for _, headers, _ in server.asked] == ["application/sparql-update"] * 3
        store = pyoxigraph.Store()
        sizes = []
        for _, _, body in server.asked:
            store.update(body.decode())
            sizes.append(len(store))
    assert sizes == [1, 1, 2]


# The command line


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("alarm.jena").write_text(ALARM)
    lines = (f"{event.time} {fact}\n" for event in stream(ROOMS) for fact in event.facts)
    Path("rooms.ntt").write_text("".join(lines))
    return tmp_path


RUN = ("run", "alarm.jena", "--source", "rooms.ntt", "--output", "changes")


def test_facts_are_written_as_a_patch_by_default(folder: Path, squall: Squall) -> None:
    code, out, err = squall(*RUN)
    assert code == 0, err
    written(folder / "log.rdfp", EXPECTED)
    assert out == Path("log.rdfp").read_text()


def test_a_table_has_a_column_for_the_change(folder: Path, squall: Squall) -> None:
    _, out, _ = squall(*RUN, "--format", "csv")
    assert out.split() == [
        "time,rule,change,subject,predicate,object",
        *(f"{out.time},alarm,{out.change},{out.fact[0][1:-1]},{E}state,{E}alarm" for out in EXPECTED),
    ]
    _, out, _ = squall(*RUN, "--format", "ndjson")
    assert [json.loads(line)["change"] for line in out.splitlines()] == ["insert", "delete", "insert", "insert"]
    _, out, _ = squall(*RUN, "--format", "table")
    assert [words[0] for line in out.splitlines() if (words := line.split()) and ":state" in words] == [
        out.change for out in EXPECTED
    ]


def test_the_changes_of_a_boolean_are_rows(folder: Path, squall: Squall) -> None:
    Path("a.rq").write_text(f"ASK {{ ?x <{E}watched> ?y }}")
    _, out, _ = squall("run", "a.rq", *RUN[2:], "--format", "csv")
    assert out.splitlines() == [
        "time,change,boolean", ",insert,false", "2000,delete,false", "2000,insert,true",
    ]  # fmt: skip
    _, out, _ = squall("run", "a.rq", *RUN[2:])
    assert [line.split() for line in out.splitlines() if line.endswith(("true", "false"))] == [
        ["insert", "false"], ["delete", "false"], ["insert", "true"],
    ]  # fmt: skip


@pytest.mark.parametrize("option", [("--format", "nt"), ("--timed",), ("--format", "trig"), ("--sink", "x.nq")])
def test_a_format_that_cannot_say_the_change_is_refused_before_the_run(
    option: tuple[str, ...], folder: Path, squall: Squall
) -> None:
    code, _, err = squall(*RUN, *option)
    assert code == 2
    assert "does not say whether an output of `alarm` is inserted or deleted (`--output changes`)" in err
    assert "`rdfp` or `ru`" in err


@pytest.mark.parametrize("format", sorted(LOGS))
def test_two_answers_do_not_share_a_log(format: str, folder: Path, squall: Squall) -> None:
    Path("a.rq").write_text(f"CONSTRUCT WHERE {{ ?x <{E}watched> ?y }}")
    code, _, err = squall("run", "a.rq", *RUN[1:], "--format", format)
    assert code == 2
    assert f"`{format}` cannot hold the answers of both `a` and `alarm`: one would delete what the other still" in err
    assert squall("run", "a.rq", *RUN[1:], "--sink", f"log-{{time}}-{{query}}.{format}")[0] == 0
    assert {path.name for path in folder.glob("log-3000*")} == {f"log-3000-a.{format}", f"log-3000-alarm.{format}"}


@pytest.mark.parametrize("path", ["watched", "watched+"])
def test_what_only_rules_read_is_no_second_answer_of_a_log(path: str, folder: Path, squall: Squall) -> None:
    """Rule sets in front of a query, and the relations of property paths, have no output."""
    verb = f"<{E}watched>{path.removeprefix('watched')}"
    Path("a.rq").write_text(f"CONSTRUCT {{ ?x <{E}saw> ?y }} {{ ?x {verb} ?y }}")
    code, out, err = squall("run", "a.rq", *RUN[2:], "--rules", "rhodf", "--format", "rdfp")
    assert code == 0, err
    assert f"A <{E}" in out


# Spark


def test_a_folder_of_lines_says_the_changes_or_is_refused(tmp_path: Path) -> None:
    pytest.importorskip("pyspark")
    plan = squall.plan(squall.compile(ALARM, lexer="jena", output="changes"))
    options = Options(sink=FolderSink("out/", tmp_path / "out", "nt"))
    with pytest.raises(BuilderError, match="`nt` does not say whether an output is inserted or deleted"):
        squall.build(plan, "spark", options)


@pytest.mark.spark
@pytest.mark.more
def test_a_data_frame_has_a_column_for_the_change() -> None:
    from squall.spark import to_dataframe

    plan = squall.plan(squall.compile(ALARM, lexer="jena", output="changes"))
    frame = to_dataframe(plan, [stream(ROOMS)])
    assert frame.columns[-2:] == ["rule", "change"]
    assert sorted(map(tuple, frame.selectExpr("unix_millis(time)", "change", "subject").collect())) == sorted(
        (output.time, output.change, f"{E}{output.fact[0][1:-1].rpartition('/')[2]}") for output in EXPECTED
    )


@pytest.mark.parametrize(("text", "lexer"), [
    ("SELECT CHANGES ?s FROM NAMED WINDOW :w ON :in [RANGE PT2S STEP PT1S] { WINDOW :w { ?s ?p ?o } }", "rspql"),
    ("REGISTER CHANGES :log AS SELECT ?s FROM NAMED WINDOW :w ON :in [RANGE PT2S STEP PT1S] { WINDOW :w { ?s ?p ?o } }",
     "rspql"),
    ("SELECT CHANGES ?s FROM NAMED STREAM :in [NOW-2 S SLIDE 1 S] { GRAPH :in { ?s ?p ?o } }", "sparqlstream"),
])  # fmt: skip
def test_a_query_asks_for_its_changes(text: str, lexer: str) -> None:
    events = [Event(500, (Triple(iri("urn:a"), iri("urn:p"), iri("urn:o")),), "urn:in")]
    prefixed = f"PREFIX : <urn:>\n{text}"
    outputs = [(out.time, out.change) for out in squall.run(squall.plan(squall.compile(prefixed, lexer=lexer)), events)]
    assert outputs == [(1000, "insert"), (3000, "delete")]
    plain = squall.compile(prefixed.replace("CHANGES", "ISTREAM"), lexer=lexer, output="changes")
    assert [(out.time, out.change) for out in squall.run(squall.plan(plain), events)] == outputs


def test_a_stream_that_others_may_read_has_no_changes() -> None:
    text = (
        "PREFIX : <urn:>\nREGISTER STREAM :s AS CONSTRUCT CHANGES { ?s :q ?o } FROM NAMED WINDOW :w ON :in "
        "[RANGE PT2S] { WINDOW :w { ?s ?p ?o } }"
    )
    with pytest.raises(SquallError, match="a stream that others may read has no deletions") as caught:
        squall.compile(text, lexer="rspql")
    assert ":2:" in str(caught.value)
    nameless = text.replace("REGISTER STREAM :s AS ", "")
    events = [Event(500, (Triple(iri("urn:a"), iri("urn:p"), iri("urn:o")),), "urn:in")]
    outputs = list(squall.run(squall.plan(squall.compile(nameless, lexer="rspql")), events))
    assert [out.change for out in outputs] == ["insert", "delete"]
