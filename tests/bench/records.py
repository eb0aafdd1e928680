"""Records through a mapping, file to file, beside the same statements as N-Triples.

python -m tests.bench.records [--records 400000] [--repeat 3] [--only CSV]

Each run is a process of its own, the runs are interleaved, and the table has the medians. The query selects few
statements, so that reading is most of the work. The rate is that of CPU time, between a quarter of the records and all
of them, which leaves out what a process takes to begin. Memory is what a process holds at most, for a quarter of the
records and for all of them. The table in docs/benchmarks.md is the output of this command.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
import tempfile
from collections.abc import Iterator
from multiprocessing import get_context
from pathlib import Path
from statistics import median
from typing import NamedTuple

EX, XSD = "http://example.org/", "http://www.w3.org/2001/XMLSchema#"
RDF_TYPE = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"
QUERY = f"CONSTRUCT {{ ?s <{EX}hot> ?d }} {{ ?s <{EX}degrees> ?d FILTER(?d > 39.9) }}"
MAPPING = f"""PREFIX ex: <{EX}> PREFIX xsd: <{XSD}>
{{ "sensor": ?s, "degrees": ?d, "room": ?r, "ts": ?t }}
=> {{ ex:{{?s}} a ex:Sensor ; ex:degrees ?d^^xsd:double ; ex:room ex:{{?r}} }} AT ?t
"""
NESTED = f"""PREFIX ex: <{EX}> PREFIX xsd: <{XSD}>
{{ "ts": ?t, "of": [ {{ "sensor": ?s, "degrees": ?d, "room": ?r }} ] }}
=> {{ ex:{{?s}} a ex:Sensor ; ex:degrees ?d^^xsd:double ; ex:room ex:{{?r}} }} AT ?t
"""
SOURCES = {
    "N-Triples": "x.nt",
    "timed N-Triples": "x.ntt",
    "lines of JSON": "x.ndjson?map=x.map",
    "lines of JSON, in an array": "nested.ndjson?map=nested.map",
    "CSV": "x.csv?map=x.map",
    "Avro": "x.avro?map=x.map",
    "Parquet": "x.parquet?map=x.map",
    "DataFrame of pandas": "",
}
"""The sources by what they are; all have the same statements. That of a DataFrame is the file of Parquet."""
DATAFRAME = """
import pandas
import squall
frame = pandas.read_parquet("x.parquet")
plan = squall.plan(squall.compile("q.rq"))
count = len(list(squall.run(plan, squall.from_dataframe(frame, "x.map"))))
print(f"{3 * len(frame):,} statements read, {count} outputs")
"""
_COUNTS = re.compile(r"([0-9,]+) statements read, ([0-9,]+) outputs?")


class Figures(NamedTuple):
    """The figures of a run.

    Attributes:
        statements: The number of statements that are read.
        seconds: The CPU time of the process.
        megabytes: The most memory of the process.
        outputs: The number of outputs.
    """

    statements: int
    seconds: float
    megabytes: float
    outputs: int


def write(folder: Path, count: int) -> None:
    """Writes records and the same statements to files."""
    with (
        (folder / "x.ndjson").open("w") as lines,
        (folder / "nested.ndjson").open("w") as nested,
        (folder / "x.csv").open("w") as rows,
        (folder / "x.nt").open("w") as statements,
        (folder / "x.ntt").open("w") as timed,
    ):
        rows.write("sensor,degrees,room,ts\n")
        for number in range(count):
            record = _record(number)
            lines.write(json.dumps({**record, "ts": 1000 * number}) + "\n")
            nested.write(json.dumps({"ts": 1000 * number, "of": [record]}) + "\n")
            rows.write(f"{record['sensor']},{record['degrees']},{record['room']},{1000 * number}\n")
            for statement in _statements(record):
                statements.write(statement)
                timed.write(f"{1000 * number} {statement}")
    _write_tables(folder, count)
    (folder / "x.map").write_text(MAPPING)
    (folder / "nested.map").write_text(NESTED)
    (folder / "q.rq").write_text(QUERY)


def _record(number: int) -> dict[str, object]:
    degrees = round(number % 400 / 10 + 0.05, 2)
    return {"sensor": f"s{number % 500}", "degrees": degrees, "room": f"r{number % 40}"}


def _write_tables(folder: Path, count: int) -> None:
    """Writes the records as Avro and as Parquet."""
    import fastavro
    import pyarrow
    from pyarrow import parquet

    types = {"sensor": "string", "degrees": "double", "room": "string", "ts": "long"}
    schema = {
        "type": "record", "name": "R", "fields": [{"name": name, "type": type} for name, type in types.items()],
    }  # fmt: skip
    with (folder / "x.avro").open("wb") as file:
        fastavro.writer(file, schema, ({**_record(number), "ts": 1000 * number} for number in range(count)))
    arrow_types = {**types, "ts": "int64"}
    arrow_schema = pyarrow.schema([(name, pyarrow.type_for_alias(type)) for name, type in arrow_types.items()])
    with parquet.ParquetWriter(folder / "x.parquet", arrow_schema) as writer:
        for first in range(0, count, 100_000):
            rows = [{**_record(number), "ts": 1000 * number} for number in range(first, min(count, first + 100_000))]
            writer.write_table(pyarrow.Table.from_pylist(rows, arrow_schema))


def _statements(record: dict[str, object]) -> Iterator[str]:
    subject = f"<{EX}{record['sensor']}>"
    yield f"{subject} <{RDF_TYPE}> <{EX}Sensor> .\n"
    yield f'{subject} <{EX}degrees> "{record["degrees"]}"^^<{XSD}double> .\n'
    yield f"{subject} <{EX}room> <{EX}{record['room']}> .\n"


def run(folder: Path, source: str) -> Figures:
    """Runs the query over a source (``""``: a DataFrame), and returns the figures."""
    command = [sys.executable, "-c", DATAFRAME]
    if source:
        command = [sys.executable, "-m", "squall", "run", "q.rq", "--source", source, "--sink", "out.nt"]
    with tempfile.TemporaryFile() as messages:
        streams = [(os.POSIX_SPAWN_DUP2, messages.fileno(), stream) for stream in (1, 2)]
        before = Path.cwd()
        os.chdir(folder)
        try:
            process = os.posix_spawn(
                sys.executable, command, {**os.environ, "PYTHONPATH": str(before)}, file_actions=streams
            )
            _, status, usage = os.wait4(process, 0)
        finally:
            os.chdir(before)
        messages.seek(0)
        text = messages.read().decode()
    match = _COUNTS.search(text)
    if status or match is None:
        raise SystemExit(f"{source}: {text}")
    statements, outputs = (int(group.replace(",", "")) for group in match.groups())
    return Figures(statements, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024, outputs)


def rate(small: list[Figures], large: list[Figures]) -> float:
    """Returns the statements per second of CPU time, without what a process takes to begin."""
    seconds = [median(figure.seconds for figure in figures) for figures in (small, large)]
    return (large[0].statements - small[0].statements) / (seconds[1] - seconds[0])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--records", type=int, default=400_000)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--only", action="append", choices=SOURCES, help="a source beside N-Triples; may be repeated")
    arguments = parser.parse_args()
    figures: dict[tuple[str, int], list[Figures]] = {}
    sources = {what: SOURCES[what] for what in ("N-Triples", *(arguments.only or list(SOURCES)[1:]))}
    sizes = (arguments.records // 4, arguments.records)
    for count in sizes:
        with tempfile.TemporaryDirectory() as name:
            # In a process of its own: what the memory of this process has been, those that it spawns begin with.
            writer = get_context("spawn").Process(target=write, args=(Path(name), count))
            writer.start()
            writer.join()
            for _ in range(arguments.repeat):
                for what, source in sources.items():
                    figures.setdefault((what, count), []).append(run(Path(name), source))
    base = rate(*(figures["N-Triples", count] for count in sizes))
    print("| source | statements per second of CPU | of N-Triples | MB, a quarter | MB, all | outputs |")
    print("| --- | ---: | ---: | ---: | ---: | ---: |")
    for what in sources:
        small, large = (figures[what, count] for count in sizes)
        per_second = rate(small, large)
        memory = [median(figure.megabytes for figure in each) for each in (small, large)]
        cells = (f"{per_second:,.0f}", f"{per_second / base:.2f}", *(f"{most:.0f}" for most in memory))
        print(f"| {what} | {' | '.join(cells)} | {large[0].outputs:,} |")


if __name__ == "__main__":
    main()
