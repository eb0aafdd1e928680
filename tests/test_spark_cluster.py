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


def test_executors_in_processes_of_their_own(tmp_path: Path) -> None:
    pytest.importorskip("pyspark")
    environment = {**os.environ, "PYTHONPATH": str(Path(squall.__file__).parent.parent)}
    process = subprocess.run(
        [sys.executable, "-c", RUN], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=900
    )
    assert process.returncode == 0, process.stderr
    outputs, members = process.stdout.split()
    assert int(outputs) > 0
    assert int(members) == 3, "the driver and two executors"
