"""The Spark builder with workers in other processes than the driver, and shuffles between them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import squall

pytestmark = [pytest.mark.spark, pytest.mark.slow]

RUN = """
import sys
from pathlib import Path
import squall
from squall.builders.spark import session
from squall.rdf import Event, Triple, iri
from squall.contracts import Options
from squall.testing import assert_as_oracle, static

spark = session([("spark.master", "local-cluster[2,1,1024]"), ("spark.squall.maxSingleTaskRows", "0")])
system = squall.compile(\"\"\"
@prefix : <http://example.org/>.
[pair:  (?a :edge ?b) (?b :edge ?c) -> (?a :pair ?c)]
[open:  (?a :pair ?b) noValue(?b, :closed) -> (?a :open ?b)]
[reach: (?a :pair ?b) (?b :pair ?c) -> (?a :pair ?c)]
\"\"\", lexer="jena", window="RANGE 5ms STEP 2ms")
names = [iri(f"http://example.org/{name}") for name in ("a", "b", "c", "d", "e", "edge", "closed")]
*nodes, edge, closed = names
events = [Event(time, (Triple(nodes[time % 5], edge, nodes[time * 2 % 5]),)) for time in range(12)]
events.append(Event(12, (Triple(nodes[0], closed, nodes[0]), Triple(nodes[1], edge, nodes[2]))))
found = list(squall.build(squall.plan(system), "spark").run([events]))
assert_as_oracle(system, found, events)

rule = "[on: (?a :edge ?b) (?b :in ?r) -> (?a :on ?r)]"
system = squall.compile("@prefix : <http://example.org/>.\\n" + rule, lexer="jena", window="RANGE 5ms STEP 2ms")
rooms = static(":a :in :r1\\n:c :in :r2\\n:e :in :r1")
job = squall.build(squall.plan(system), "spark", Options(checkpoint=Path("kept")))
assert_as_oracle(system, list(job.run([events], rooms)), events, rooms)
assert Path("kept/broadcast.json").exists(), "rooms are in all tasks"
print(len(found), spark.sparkContext._jsc.sc().getExecutorMemoryStatus().size())
"""

REASONING = """
import squall
from squall.builders.spark import session
from squall.rdf import ALWAYS, OWL, RDF, RDFS, Event, Triple, iri

spark = session([("spark.master", "local-cluster[2,1,1024]"), ("spark.squall.maxSingleTaskRows", "0")])
E = "http://example.org/"
a, b, b2, c, p, q, C, D = (iri(E + name) for name in ("a", "b", "b2", "c", "p", "q", "C", "D"))
TYPE, SUB, SAME, INVERSE = iri(RDF + "type"), iri(RDFS + "subClassOf"), iri(OWL + "sameAs"), iri(OWL + "inverseOf")
schema, links = [Triple(C, SUB, D), Triple(p, INVERSE, q)], [Triple(b, SAME, b2)]
events = [
    Event(time, (Triple((a, b, c)[time % 3], p, (b2, c)[i]), Triple((b, b2, c)[time % 3], TYPE, (C, D)[i])))
    for time in range(12) for i in (time % 2,)
]
linking = [*events[:4], Event(4, tuple(links)), *events[4:]]
QUERY = "PREFIX : <http://example.org/> SELECT ?x ?y { ?x :p ?y . ?y a :D }"
ways = (
    ({"entailment": "rhodf", "schema": schema}, events), ({"rules": ["rhodf"]}, events),
    ({"rules": ["rhodf"], "specialise": True, "schema": schema}, events),
    ({"rules": ["owl2rl"], "specialise": True, "schema": schema}, events),
    ({"same_as": "representative", "schema": links}, events), ({"same_as": "provenance", "schema": links}, events),
    ({"same_as": "representative", "same_as_answers": "members", "schema": links}, events),
    ({"same_as": "axioms", "schema": links}, events),
    ({"same_as": "representative", "schema_changes": "follow"}, linking),
)
for way, stream in ways:
    plan = squall.plan(squall.compile(QUERY, lexer="sparql", window="RANGE 4ms STEP 2ms", **way))
    static = [Event(ALWAYS, tuple(links if "same_as" in way and "schema" in way else schema))]
    expected, actual = (
        sorted((out.time, str(out.fact)) for out in squall.run(plan, stream, builder, static=static))
        for builder in ("iterator", "spark")
    )
    assert actual == expected, way
    print(len(expected))
"""


def _printed(program: str, folder: Path) -> list[int]:
    """Runs a program in a process, and returns the numbers that it prints."""
    pytest.importorskip("pyspark")
    environment = {**os.environ, "PYTHONPATH": str(Path(squall.__file__).parent.parent)}
    process = subprocess.run(
        [sys.executable, "-c", program], cwd=folder, env=environment, capture_output=True, text=True, timeout=900
    )
    assert process.returncode == 0, process.stderr
    return [int(number) for number in process.stdout.split()]


def test_executors_in_processes_of_their_own(tmp_path: Path) -> None:
    outputs, members = _printed(RUN, tmp_path)
    assert outputs > 0
    assert members == 3, "the driver and two executors"


def test_reasoning_on_executors_in_processes_of_their_own(tmp_path: Path) -> None:
    counts = _printed(REASONING, tmp_path)
    assert len(counts) == 9
    assert all(counts)
