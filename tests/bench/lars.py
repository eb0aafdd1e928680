"""Fifteen LARS programs of the kinds that BigSR was measured with, in process and on Spark:

    python -m tests.bench.lars --triples 200000 --builder iterator --builder spark --plot docs/benchmarks/lars.svg

BigSR (Ren, Curé, Naacke, Xiao: BigSR: real-time expressive RDF stream reasoning on modern Big Data platforms, IEEE Big
Data 2018) ran selections, joins of two to eight atoms, stars, and recursion over streams of sensors and of a
university. Q3 and Q9 to Q11 are programs of the thesis (X. Ren, Distributed RDF stream processing and reasoning, 2018),
the others are of the same kinds. All atoms of the stream are read through windows of 10 s that do not overlap, unless a
program says otherwise.

A run goes from a file to a file. Its time begins when the program is compiled and, on Spark, the session has started.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from random import Random
from statistics import median
from typing import NamedTuple

import squall
from squall.streams import Sources, open_sink, open_source, open_static
from tests.bench import data
from tests.bench.__main__ import ROOT
from tests.bench.child import digest, say
from tests.bench.data import RDF_TYPE, below, statement, u
from tests.bench.watch import Measured, measure

WINDOW = "in [9 sec step 10 sec]"
"""The window of 10 ticks of a second that moves by its length."""
BIGSR_PER_CORE = {False: 1_000_000 / 24, True: 2_000_000 / 24}
"""Triples per second and core, without and with recursion, as the authors of BigSR report for their cluster."""


class Program(NamedTuple):
    """A program, whose atoms are of a stream of `data`.

    Attributes:
        stream: The name of the stream in `STREAMS`.
        kind: What the program is, in a few words.
        rules: The rules. ``W`` is the usual window. What they are asked for is ``res``.
        recursive: Whether it is recursive.
    """

    stream: str
    kind: str
    rules: str
    recursive: bool = False

    @property
    def text(self) -> str:
        prefix = data.SENSOR if self.stream == "sensors" else data.UNIVERSITY
        return f"@prefix : <{prefix}>.\n@tick 1 sec.\n{self.rules.replace(' W', f' {WINDOW}')}"


PROGRAMS = {
    "Q1": Program("sensors", "selection", "res(O) :- :SensorOutput(O) W."),
    "Q2": Program("sensors", "selection by a value", "res(V, D) :- numericValue(V, D) W, D > 35."),
    "Q3": Program(
        "sensors", "two stars of 3 and 4 atoms, joined",
        "star1(V, K, N, M) :- rdf:type(V, K) W, numericValue(V, N) W, unit(V, M) W.\n"
        "star2(O, V, S, C, T) :- isProducedBy(O, S) W, rdf:type(O, C) W, hasValue(O, V) W,"
        " observationResultTime(O, T) W.\n"
        "found(O, S, C, T, K, N, M) :- star1(V, K, N, M), star2(O, V, S, C, T).\n"
        "res(O, N) :- found(O, S, C, T, K, N, M).",
    ),
    "Q4": Program("sensors", "join of 2 atoms", "res(S, V) :- isProducedBy(O, S) W, hasValue(O, V) W."),
    "Q5": Program(
        "sensors", "star of 5 atoms",
        "res(O, V) :- :SensorOutput(O) W, isProducedBy(O, S) W, hasValue(O, V) W, observationResultTime(O, T) W,"
        " observedProperty(O, temperature) W.",
    ),
    "Q6": Program(
        "sensors", "join of 8 atoms",
        "res(O, N) :- :SensorOutput(O) W, isProducedBy(O, S) W, hasValue(O, V) W, observationResultTime(O, T) W,"
        " observedProperty(O, Y) W, :QuantityValue(V) W, numericValue(V, N) W, unit(V, M) W.",
    ),
    "Q7": Program(
        "sensors", "two windows of different length",
        "hot(S, O) :- isProducedBy(O, S) in [2 sec], hasValue(O, V) in [2 sec], numericValue(V, N) in [2 sec],"
        " N > 38.\n"
        "res(S, O) :- hot(S, O), hot(S, P) in [20 sec], O != P.",
    ),
    "Q8": Program(
        "sensors", "joins with static data, 4 atoms",
        "res(O, Q) :- :SensorOutput(O) W, isProducedBy(O, S) W, onPlatform(S, P), partOf(P, Q).",
    ),
    "Q9": Program(
        "organisations", "authors of papers of their co-authors",
        "res(P, A) :- publicationAuthor(P, A) W.\n"
        "res(P2, A1) :- res(P1, A1), publicationAuthor(P1, A2) W, publicationAuthor(P2, A2) W.",
        recursive=True,
    ),
    "Q10": Program(
        "organisations", "closure of sub-organisations",
        "base(X, Y) :- subOrganizationOf(X, Y) W.\n"
        "res(X, Y) :- base(X, Y).\n"
        "res(X, Z) :- res(X, Y), res(Y, Z).",
        recursive=True,
    ),
    "Q11": Program(
        "organisations", "graduates of the university of a department, 11 rules",
        "graduate(X) :- :GraduateStudent(X) W.\n"
        "member(X, Y) :- memberOf(X, Y) W.\n"
        "degree(X, Y) :- undergraduateDegreeFrom(X, Y) W.\n"
        "university(X) :- :University(X) W.\n"
        "department(X) :- :Department(X) W.\n"
        "base(X, Y) :- subOrganizationOf(X, Y) W.\n"
        "sub(X, Y) :- base(X, Y).\n"
        "sub(X, Z) :- sub(X, Y), sub(Y, Z).\n"
        "temp1(X, Y) :- graduate(X), member(X, Z), degree(X, Y).\n"
        "temp2(Y) :- sub(Z, Y), university(Y), department(Z).\n"
        "res(X, Y) :- temp1(X, Y), temp2(Y).",
        recursive=True,
    ),
    "Q12": Program(
        "organisations", "triangle of 6 atoms",
        "res(X, Y) :- :GraduateStudent(X) W, :University(Y) W, :Department(Z) W, memberOf(X, Z) W,"
        " subOrganizationOf(Z, Y) W, undergraduateDegreeFrom(X, Y) W.",
    ),
    "Q13": Program(
        "organisations", "linear closure of sub-organisations",
        "res(X, Y) :- subOrganizationOf(X, Y) W.\n"
        "res(X, Z) :- res(X, Y), subOrganizationOf(Y, Z) W.",
        recursive=True,
    ),
    "Q14": Program(
        "organisations", "mutual recursion of three rules",
        "res(X, Y) :- publicationAuthor(X, Y) W.\n"
        "met(X, Y) :- res(X, Y), knows(Y, Z) W.\n"
        "res(X, Z) :- met(X, Y), knows(Y, Z) W.",
        recursive=True,
    ),
    "Q15": Program(
        "organisations", "recursion through windows of different length",
        "near(X, Y) :- knows(X, Y) in [4 sec].\n"
        "res(X, Y) :- near(X, Y) in [9 sec].\n"
        "res(X, Z) :- res(X, Y), near(Y, Z).",
        recursive=True,
    ),
}  # fmt: skip


def organisations(size: int) -> Iterator[str]:
    """Yields timed N-Triples: so many triples of universities one after the other, with departments, research groups,
    graduates, papers and their authors, and who knows whom. Eight triples come every `data.STEP` ms."""
    for number, triple in zip(range(size), _universities(), strict=False):
        yield f"{data.START + number // 8 * data.STEP} {triple}"


def _universities() -> Iterator[str]:
    random, number = Random(5), 0
    while True:
        university = u(f"university{number}")
        yield statement(university, RDF_TYPE, u("University"))
        for department in range(6):
            yield from _department(f"{number}_{department}", university, number, random)
        number += 1


def _department(name: str, university: str, number: int, random: Random) -> Iterator[str]:
    department = u(f"department{name}")
    yield statement(department, RDF_TYPE, u("Department"))
    yield statement(department, u("subOrganizationOf"), university)
    for group in range(4):
        yield statement(u(f"group{name}_{group}"), u("subOrganizationOf"), department)
    for student in range(4):
        graduate = u(f"student{name}_{student}")
        yield statement(graduate, RDF_TYPE, u("GraduateStudent"))
        yield statement(graduate, u("memberOf"), department)
        alma_mater = u(f"university{max(0, number - below(random, 4))}")
        yield statement(graduate, u("undergraduateDegreeFrom"), alma_mater)
    for paper in range(15):
        for _ in range(1 + below(random, 3)):
            author = u(f"author{name}_{below(random, 12)}")
            yield statement(u(f"paper{name}_{paper}"), u("publicationAuthor"), author)
    for _ in range(6):
        pair = (u(f"author{name}_{below(random, 12)}") for _ in range(2))
        yield statement(next(pair), u("knows"), next(pair))


STREAMS = {"sensors": data.sensors, "organisations": organisations}


def evaluate(name: str, builder: str, folder: Path) -> None:
    """Runs a program from the files of a folder to a file, and says when, as `tests.bench.child` does."""
    program = PROGRAMS[name]
    plan = squall.plan(squall.compile(program.text, lexer="lars"))
    stream, out = Sources([open_source(str(folder / f"{program.stream}.ntt"))]), folder / "out.nt"
    static = open_static(str(folder / "platforms.nt")) if program.stream == "sensors" else ()
    if builder == "spark":
        from squall.builders.spark import session

        session()
    job, sink = squall.build(plan, builder), open_sink(str(out))
    say("start")
    wall, cpu = time.perf_counter(), time.process_time()
    with closing(sink):
        sink.start()
        for output in job.run(stream, static):
            sink.write(output)
    used = {"wall": time.perf_counter() - wall}
    if builder == "iterator":
        used["cpu"] = time.process_time() - cpu
    say("end", **used)
    say("found", **digest(out.read_text().splitlines()))


def write(folder: Path, triples: int) -> None:
    """Writes the streams, and the static data of the sensors."""
    for name, lines in STREAMS.items():
        (folder / f"{name}.ntt").write_text("".join(f"{line}\n" for line in lines(triples)))
    (folder / "platforms.nt").write_text("".join(f"{line}\n" for line in data.platforms()))


def compare(name: str, builders: Sequence[str], folder: Path, repeat: int) -> dict[str, list[Measured]]:
    """Returns the runs of a program by builder, interleaved.

    Raises:
        RuntimeError: Two runs have not found the same.
    """
    runs: dict[str, list[Measured]] = {builder: [] for builder in builders}
    for _ in range(repeat):
        for builder, measured in runs.items():
            command = [sys.executable, "-m", "tests.bench.lars", "--inside", name, builder, str(folder)]
            measured.append(measure(command, ROOT))
    if len({item.said["digest"] for measured in runs.values() for item in measured}) > 1:
        raise RuntimeError(f"{name}: the builders do not agree")
    return runs


def main(given: Sequence[str] | None = None) -> None:
    """Measures the programs, prints the table, and plots the rates."""
    parser = argparse.ArgumentParser("python -m tests.bench.lars", description="Measures LARS programs.")
    parser.add_argument("--triples", type=int, default=200_000, help="of each stream (200,000)")
    parser.add_argument("--program", action="append", choices=PROGRAMS, help="only these programs")
    parser.add_argument("--builder", action="append", choices=("iterator", "spark"), help="both by default")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--plot", type=Path, help="write the plot there")
    parser.add_argument("--inside", nargs=3, help=argparse.SUPPRESS)
    request = parser.parse_args(given)
    if request.inside:
        name, builder, folder = request.inside
        evaluate(name, builder, Path(folder))
        return
    builders = request.builder or ["iterator", "spark"]
    columns = [f"{builder}: {figure}" for builder in builders for figure in ("triples/s of CPU", "of BigSR's per core")]
    print(f"| program | | {' | '.join(columns)} | outputs |")
    print(f"| --- | --- |{' ---: |' * (len(columns) + 1)}")
    panels: list[tuple[str, dict[str, float]]] = []
    with tempfile.TemporaryDirectory() as place:
        write(Path(place), request.triples)
        for name in request.program or PROGRAMS:
            program = PROGRAMS[name]
            runs = compare(name, builders, Path(place), request.repeat)
            rates = {builder: request.triples / median(item.cpu for item in runs[builder]) for builder in builders}
            per_core = BIGSR_PER_CORE[program.recursive]
            cells = (f"{rate:,.0f} | {rate / per_core:.2f}" for rate in rates.values())
            outputs = runs[builders[0]][0].said["outputs"]
            print(f"| {name} | {program.kind} | {' | '.join(cells)} | {outputs:,} |", flush=True)
            bars = {f"squall ({builder})": rate for builder, rate in rates.items()}
            panels.append((f"{name}: {program.kind}", {**bars, "BigSR, per core": per_core}))
    if request.plot:
        from tests.bench import plots

        plots.bars(panels, "triples per second of CPU", request.plot)


if __name__ == "__main__":
    main()
