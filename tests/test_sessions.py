"""Session windows, and windows bounded by time and number: in each language, and by the laws of all windows."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from hypothesis import event

import squall
from squall.builders.distributed.plan.strategy import strategy_of
from squall.contracts import CountsDroppedFacts
from squall.lexers import cqels, csparql, rspql, sparqlstream, strider
from squall.lexers.sparql import tree as q
from squall.model import System, output_specs
from squall.model.windows import BoundedCountWindow, SessionWindow, Window
from squall.rdf import ALWAYS, Event
from squall.testing import assert_as_oracle, assert_outputs, stream
from squall.testing.oracle.validity import sources_of
from tests import in_memory
from tests.laws import examples, hold
from tests.trials import Trial, trials

CLICKS = """
1000 :ann :clicked :home
2000 :bob :clicked :home
3000 :ann :clicked :news
7999 :ann :clicked :sport
12999 :ann :clicked :home
"""
"""Clicks with gaps of less than 5 s, but for the last one of :ann, which comes exactly 5 s after the one before."""
COUNTS = "SELECT ?user (COUNT(*) AS ?n) {} GROUP BY ?user"
BY_USER = "7000 ?user=:bob ?n=1\n12999 ?user=:ann ?n=3\n17999 ?user=:ann ?n=1"


# Languages


def counted(lexer: str, window: str) -> str:
    """Returns a query of a language that counts the clicks of each user through a window of the stream <urn:clicks>."""
    prefix = "PREFIX : <http://example.org/>"
    select, within, group = "SELECT ?user (COUNT(*) AS ?n)", "?user :clicked ?page", "GROUP BY ?user"
    match lexer:
        case "csparql":
            return f"{prefix} {select} FROM STREAM <urn:clicks> [{window}] {{ {within} }} {group}"
        case "sparqlstream":
            select = select.replace("SELECT", "SELECT RSTREAM")
            return f"{prefix} {select} FROM STREAM <urn:clicks> [{window}] {{ {within} }} {group}"
        case "cqels":
            return f"{prefix} {select} {{ STREAM <urn:clicks> [{window}] {{ {within} }} }} {group}"
        case "rspql":
            clause = f"FROM NAMED WINDOW :w ON <urn:clicks> [{window}]"
            return f"{prefix} REGISTER RSTREAM <urn:o> AS {select} {clause} {{ WINDOW :w {{ {within} }} }} {group}"
        case _:
            gap, _, clauses = window.removeprefix("SESSION ").partition(" ")
            length = gap.replace("s", " seconds")
            query = f"REGISTER {{ QUERYID [q] SPARQL [ {prefix} {select} {{ {within} }} {group} ] }}"
            return f"STREAMING {{ SESSION [{length} {clauses}] }} {query}"


LEXERS = {
    "csparql": csparql.lexer, "cqels": cqels.lexer, "rspql": rspql.lexer, "sparqlstream": sparqlstream.lexer,
    "strider": strider.lexer,
}  # fmt: skip


def windows_of(system: System) -> set[Window]:
    """Returns the windows through which patterns of a program read streams, but for the empty one."""
    rules = [rule for spec in output_specs(system) for rule in spec.rules]
    return {window for source in sources_of(rules) for window in source.all_windows if not window.is_empty}


def clicks() -> list[Event]:
    return [event._replace(stream="urn:clicks") for event in stream(CLICKS)]


@pytest.mark.parametrize("lexer", LEXERS)
def test_each_language_has_the_sessions_of_each_subject_as_they_close(lexer: str) -> None:
    system = squall.compile(counted(lexer, "SESSION 5s BY SUBJECT"), lexer=lexer)
    assert windows_of(system) == {SessionWindow(5000, "SUBJECT")}
    assert_outputs(system, clicks(), BY_USER)


@pytest.mark.parametrize("lexer", LEXERS)
def test_each_language_has_sessions_that_are_read_while_they_are_open(lexer: str) -> None:
    system = squall.compile(counted(lexer, "SESSION 5s ON CHANGE"), lexer=lexer)
    assert windows_of(system) == {SessionWindow(5000).while_open()}


@pytest.mark.parametrize("lexer", [name for name in LEXERS if name != "strider"])
def test_each_language_with_windows_of_streams_bounds_them_by_time_and_number(lexer: str) -> None:
    system = squall.compile(counted(lexer, "RANGE 5s TRIPLES 2"), lexer=lexer)
    assert windows_of(system) == {BoundedCountWindow(2, length=5000)}


@pytest.mark.parametrize("lexer", LEXERS)
@pytest.mark.parametrize("window", ["SESSION 90s", "SESSION 5s BY OBJECT", "SESSION 5s BY SUBJECT ON CHANGE"])
def test_a_query_prints_as_the_text_of_its_window(lexer: str, window: str) -> None:
    tree: q.Program = LEXERS[lexer](counted(lexer, window), "test")
    assert LEXERS[lexer](str(tree), "test") == tree


@pytest.mark.parametrize("lexer", [name for name in LEXERS if name != "strider"])
def test_a_query_prints_as_the_text_of_its_bounds(lexer: str) -> None:
    tree: q.Program = LEXERS[lexer](counted(lexer, "RANGE 90s TRIPLES 5"), "test")
    assert LEXERS[lexer](str(tree), "test") == tree


def test_rules_name_sessions_where_they_name_a_window() -> None:
    text = "@source <urn:clicks> [SESSION 5s BY SUBJECT]\n[r: (?u <urn:clicked> ?p) -> (?u <urn:saw> ?p)]"
    system = squall.compile(text, lexer="jena")
    assert SessionWindow(5000, "SUBJECT") in windows_of(system)


@pytest.mark.parametrize("lexer", LEXERS)
def test_a_gap_of_nothing_is_refused(lexer: str) -> None:
    with pytest.raises(squall.SquallError, match="this window is empty"):
        squall.compile(counted(lexer, "SESSION 0s"), lexer=lexer)


# Meaning


def query(window: str, text: str = COUNTS, **options: Any) -> System:
    text = "PREFIX : <http://example.org/> " + text.replace("{}", "{ ?user :clicked ?page }")
    return squall.compile(text, lexer="sparql", window=window, **options)


@pytest.mark.parametrize(
    ("window", "outputs"),
    [
        ("SESSION 5s BY SUBJECT", BY_USER),
        ("SESSION 5s BY OBJECT", "7000 ?user=:ann ?n=1\n7000 ?user=:bob ?n=1\n8000 ?user=:ann ?n=1\n"
         "12999 ?user=:ann ?n=1\n17999 ?user=:ann ?n=1"),
        ("SESSION 5s", "12999 ?user=:ann ?n=3\n12999 ?user=:bob ?n=1\n17999 ?user=:ann ?n=1"),
        ("SESSION 5001ms BY SUBJECT", "7001 ?user=:bob ?n=1\n18000 ?user=:ann ?n=3"),
        ("SESSION 5s BY SUBJECT ON CHANGE", "1000 ?user=:ann ?n=1\n2000 ?user=:bob ?n=1\n3000 ?user=:ann ?n=2\n"
         "7999 ?user=:ann ?n=3\n12999 ?user=:ann ?n=1"),
    ],
)  # fmt: skip
def test_the_clicks_of_each_session(window: str, outputs: str) -> None:
    assert_outputs(query(window), CLICKS, outputs)


def test_a_snapshot_is_evaluated_when_a_session_closes_and_at_no_other_time() -> None:
    total = query("SESSION 5s BY SUBJECT", "SELECT (COUNT(*) AS ?n) {}", output="rstream")
    assert_outputs(total, CLICKS, "always ?n=0\n7000 ?n=1\n12999 ?n=3\n17999 ?n=1")


def test_a_report_on_change_and_engines_that_slide_read_open_sessions() -> None:
    assert windows_of(query("SESSION 5s", report="change")) == {SessionWindow(5000).while_open()}
    assert windows_of(query("SESSION 5s", profile="cqels")) == {SessionWindow(5000).while_open()}


def test_a_session_closes_when_time_passes_though_nothing_of_its_stream_comes() -> None:
    plan = squall.plan(query("SESSION 5s BY SUBJECT"))
    outputs = squall.run(
        plan, iter([*stream("1000 :ann :clicked :home"), squall.rdf.heartbeat(6000), *stream("9000 :x :y :z")])
    )
    assert next(outputs).time == 6000


def test_static_data_belong_to_no_session() -> None:
    static = [Event(ALWAYS, stream("1 :eve :clicked :home")[0].facts)]
    results = list(squall.run(squall.plan(query("SESSION 5s BY SUBJECT")), stream(CLICKS), static=static))
    assert [out.time for out in results] == [ALWAYS, 7000, 12999, 17999]


@pytest.mark.parametrize(
    ("window", "dropped"), [("RANGE 5s TRIPLES 2", 2), ("RANGE 5s TRIPLES 3", 0), ("TRIPLES 2", 0)]
)
def test_what_the_number_drops_before_its_time_is_counted(window: str, dropped: int) -> None:
    events = stream("1000 :a :clicked 1\n2000 :a :clicked 2\n3000 :a :clicked 3\n6000 :a :clicked 4")
    job = squall.build(squall.plan(query(window)))
    assert isinstance(job, CountsDroppedFacts)
    assert_as_oracle(query(window), list(job.run([events])), events)
    assert job.dropped_facts == dropped


@pytest.mark.parametrize(("removed_at", "times"), [(5999, []), (6000, []), (6001, [6000])])
def test_what_is_removed_when_its_session_closes_is_not_in_it(removed_at: int, times: list[int]) -> None:
    system = query("SESSION 5s BY SUBJECT", removals=True)
    (click,) = stream("1000 :ann :clicked :home")
    events = [click, Event(removed_at, stream("1 :bob :clicked :home")[0].facts, removed=click.facts)]
    outputs = list(squall.run(squall.plan(system), events))
    assert_as_oracle(system, outputs, events)
    assert [out.time for out in outputs if "ann" in str(out.fact)] == times


# Laws, of programs that read nothing but sessions

FEATURES = frozenset(
    {"sessions", "open sessions", "axioms", "streams", "removals", "named", "negation", "grouping", "select", "reports"}
)


@examples(30)
def test_sessions_agree_with_the_oracle_in_any_batches(many: int) -> None:
    def law(trial: Trial) -> None:
        batches = in_memory.cut(trial.events, trial.cuts)
        for planner in ("greedy", "rete"):
            job = squall.build(squall.plan(trial.system, planner))
            assert_as_oracle(trial.system, list(job.run(batches, trial.facts)), trial.events, trial.facts)

    hold(law, many, trial=trials(FEATURES | {"output specs"}))


@examples(20)
def test_sessions_agree_with_the_oracle_on_a_distributed_engine(many: int) -> None:
    """Tasks fail and are retried, workers lose their caches, and the driver restarts while sessions are open."""

    def law(trial: Trial) -> None:
        plan, draw = squall.plan(trial.system), Random(trial.seed)
        event(strategy_of(plan).division)
        trial.outputs_as_oracle(
            plan, workers=in_memory.any_workers(draw), max_single_task_bytes=draw.choice([-1, 1000])
        )

    hold(law, many, trial=trials(FEATURES - {"grouping", "select", "reports"}))


JOIN = "[r: (?x <p> ?y) (?x <q> ?z) -> (?x <r> ?y)]"


@pytest.mark.parametrize(
    ("window", "division"),
    [
        ("SESSION 5s BY SUBJECT", "shards"),
        ("SESSION 5s BY SUBJECT ON CHANGE", "shards"),
        ("SESSION 5s BY OBJECT", "single task"),
        ("SESSION 5s", "single task"),
        ("RANGE 5s TRIPLES 5", "stages"),
    ],
)
def test_a_plan_over_sessions_runs_as_a_whole(window: str, division: str) -> None:
    strategy = strategy_of(squall.plan(squall.compile(JOIN, lexer="jena", window=window)))
    assert strategy.division == division
    if division != "stages":
        assert "closes sessions when time passes" in str(strategy)
