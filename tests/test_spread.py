"""Rows that go to all tasks: which inputs are spread, and that answers are the same, each of them once."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from random import Random

import pytest

import squall
from squall import functions
from squall.builders.distributed import supersteps
from squall.builders.distributed.addressing import EVERY, Program
from squall.builders.distributed.arriving import Arriving
from squall.builders.distributed.cut import describe, hops, levels
from squall.builders.distributed.messages import HELD
from squall.builders.distributed.spread import EVERYWHERE, chosen, general, groupings, spreadable
from squall.operators import Join
from squall.rdf import Term
from squall.testing import assert_as_oracle, static, stream
from tests import in_memory

PREFIX = "PREFIX : <http://example.org/> "
WHERE = "?o :by ?s . ?s :in ?r"
FLOORS = f"{WHERE} . ?r :at ?f"
COUNTED = "(COUNT(*) AS ?n)"
QUERIES = {
    "a join": f"SELECT ?r {COUNTED} {{ {WHERE} }} GROUP BY ?r",
    "a chain of static data": f"SELECT ?f {COUNTED} {{ {FLOORS} }} GROUP BY ?f",
    "what others want as well": f"SELECT ?f {COUNTED} {{ {FLOORS} }} GROUP BY ?f ; "
    f"SELECT ?s ?f {{ ?s :in ?r . ?r :at ?f }}",
    "a later level": f"SELECT ?f {COUNTED} {{ ?o :value ?v . ?v :number ?m . {FLOORS} }} GROUP BY ?f",
    "distinct": f"SELECT DISTINCT ?o ?f {{ {FLOORS} }}",
    "where there is one": f"SELECT ?r {COUNTED} {{ ?o :by ?s OPTIONAL {{ ?s :in ?r }} }} GROUP BY ?r",
    "where there is none": f"SELECT ?s {COUNTED} {{ ?o :by ?s FILTER NOT EXISTS {{ ?s :in ?r }} }} GROUP BY ?s",
    "no key": f"SELECT ?f {COUNTED} {{ ?o :by ?s . ?r :at ?f }} GROUP BY ?f",
}


def system(name: str, window: str, output: str) -> squall.System:
    queries = [squall.compile(PREFIX + text, lexer="sparql", window=window) for text in QUERIES[name].split(" ; ")]
    found = [replace(query, output=output) for query in queries]
    return found[0] if len(found) == 1 else squall.System(subsystems=tuple(found))


def said(draw: Random, count: int) -> str:
    """What streams bring, now and then of what static data bring mostly."""
    return "".join(
        draw.choice(
            [f"{time} :o{time} :by :s{draw.randrange(4)}\n"] * 3
            + [f"{time} :o{time - 1} :value :v{time}\n{time} :v{time} :number {time}\n"] * 2
            + [f"{time} :s{draw.randrange(4)} :in :r{draw.randrange(2)}\n", f"{time} :r{draw.randrange(2)} :at :f\n"]
        )
        for time in range(count)
    )


STATIC = static(":s0 :in :r0\n:s0 :in :r1\n:s1 :in :r0\n:r0 :at :g\n:r1 :at :g\n:r1 :at :f")


@pytest.mark.parametrize("many", [3, pytest.param(40, marks=pytest.mark.slow)])
@pytest.mark.parametrize("output", ["istream", "rstream"])
@pytest.mark.parametrize("window", ["RANGE 20ms", "RANGE 12ms STEP 4ms", "LANDMARK"])
@pytest.mark.parametrize("name", QUERIES)
def test_each_answer_is_there_once(
    name: str, window: str, output: str, many: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever goes to all tasks, and whatever streams bring of it; with all that may go wrong meanwhile."""
    query = system(name, window, output)
    plan = squall.plan(query)
    entries = sorted(frozenset().union(*spreadable(plan).values()))
    tried = set()
    for seed in range(many):
        draw = Random(seed)
        monkeypatch.setattr(supersteps, "COMPACT", draw.choice([1, 2, 100]))
        streamed = [entry for entry in entries if draw.random() < 0.4]
        spread = chosen(plan, dict.fromkeys(entries, 1), streamed, 1000)
        tried.add(spread)
        events = stream(said(draw, 30))
        places = sorted(draw.sample(range(len(events)), 3))
        batches = [events[begin:end] for begin, end in pairwise([0, *places, len(events)])]
        workers = in_memory.Workers(draw, draw.choice([0, 1_000_000]))
        found = in_memory.run(plan, batches, STATIC, draw.choice([0, 0, 20]), workers=workers, spread=spread)
        assert_as_oracle(query, found, events, STATIC)
    assert len(tried) > 1 or many < 10


def test_the_side_that_static_data_make_is_spread() -> None:
    plan = squall.plan(system("a later level", "RANGE 20ms", "istream"))
    static_rows, streams = Arriving(plan), Arriving(plan)
    static_rows.count(STATIC)
    streams.count(stream("1 :o1 :by :s1\n1 :o1 :value :v1\n1 :v1 :number 1"))
    assert not static_rows.rows.keys() & streams.rows.keys()
    spread = chosen(plan, static_rows.rows, streams.rows, 6)
    ((id, port),) = spread
    assert isinstance(plan.by_id[id].op, Join)
    keys = groupings(plan, spread)
    assert keys[id, port] == EVERYWHERE
    assert not any(hop.moves for hop in hops(plan, spread) if (hop.consumer, hop.port) == (id, 1 - port))
    assert sum(hop.moves for hop in hops(plan, spread)) < sum(hop.moves for hop in hops(plan))
    assert f"{id} with all rows of input {port + 1} in every task" in describe(plan, spread)
    assert chosen(plan, static_rows.rows, streams.rows, 2) == frozenset(), "there are too many"
    assert chosen(plan, static_rows.rows, [*static_rows.rows], 6) == frozenset(), "streams bring some as well"


def test_nothing_is_computed_to_count_what_arrives() -> None:
    called = []

    @functions.function("noted", languages=("jena",))
    def noted(value: Term) -> Term:
        called.append(value)
        return value

    rule = "[r: (?s :at ?v) noted(?v, ?w) (?w :in ?r) -> (?s :seen ?r)]"
    plan = squall.plan(squall.compile(f"@prefix : <http://example.org/>.\n{rule}", lexer="jena"))
    arriving = Arriving(plan)
    arriving.count(stream("1 :a :at :b\n2 :b :in :c\n3 :b :in :d"))
    assert sorted(arriving.rows.values()) == [1, 2]
    assert arriving.rows.keys() == frozenset().union(*spreadable(plan).values())
    assert not called


def test_patterns_that_any_fact_may_fit() -> None:
    text = "SELECT * { ?s ?p ?o . ?s :in ?r . ?o a ?c . ?r a :Room }"
    plan = squall.plan(squall.compile(PREFIX + text, lexer="sparql"))
    arriving = Arriving(plan)
    arriving.count(static(":s :in :r"))
    any_fact = general(plan)
    assert {len(any_fact & {address}) for address in arriving.rows} == {0, 1}
    arriving.rows.clear()
    arriving.count(static(":r a :Room"))
    assert len(arriving.rows.keys() - any_fact) == 1


def test_what_waits_in_every_task_is_handed_on_once() -> None:
    plan = squall.plan(system("a join", "RANGE 20ms", "istream"))
    entries = frozenset().union(*spreadable(plan).values())
    spread = chosen(plan, dict.fromkeys(entries, 1), [min(entries)], 10)
    addressing = Program(plan, levels(plan, spread), spread=spread).addressing()
    (address,) = spread
    (parcel,) = addressing.rows(address, [("<a>", "<b>", 1, 2, 1)])
    assert parcel.bucket == EVERY
    tasks = [parcel._replace(kind=HELD, bucket=bucket) for bucket in (0, 1, 5)]
    assert [one for task in tasks for one in addressing.at_rest(task)] == [parcel._replace(kind=HELD)]
    other = next(iter(addressing.keys))
    parcels = list(addressing.rows(other, [("<a>", "<b>", 1, 2, 1)]))
    assert [one for held in parcels for one in addressing.at_rest(held)] == parcels
