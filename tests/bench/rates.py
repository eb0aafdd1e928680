"""How fast a stream may be: an evaluation of C-SPARQL and CQELS, varying rate, window, streams and static data.

    python -m tests.bench.rates [--builder iterator spark beam] [--vary rate window streams static] [--max-rate]

The queries are those of an evaluation of C-SPARQL's engine and CQELS (Ren, Khrouf, Kazi-Aoul, Chabchoub and Curé, "On
measuring performances of C-SPARQL and CQELS", 2016): a projection, counts, filters by regular expressions and times, a
union, and a join with static data, each second over the last seconds of messages of a water network. A message has five
triples: its observation, the sensor of that, and three tags.

Each row is a stream of `SECONDS` and one of three times as long, each in a process of its own. The difference is what a
second of the stream takes, without the start of the engine. A rate can be sustained if that is less than a second;
`--max-rate` doubles the rate until it is more. On Spark each second of the stream is a micro-batch.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from random import Random
from typing import Any

import squall
from squall.contracts import Options
from squall.streams import Sources, open_sink, open_source, open_static
from tests.bench.child import say
from tests.bench.watch import Failed, Measured, measure

ROOT = Path(__file__).parent.parent.parent
E = "http://example.org/water#"
LABEL = "http://www.w3.org/2000/01/rdf-schema#label"
PROLOGUE = f"PREFIX : <{E}> PREFIX f: <http://larkc.eu/csparql/sparql/jena/ext#>"
_OBSERVED = "?m :observeChlorine ?o . ?o :hasTag ?tag"
_LATER = "FILTER(f:timestamp(?o, :hasTag, ?tag) >= f:timestamp(?m, :observeChlorine, ?o))"
_FLOW = "?n :observeFlow ?o . ?o :hasTag ?tag FILTER(REGEX(STR(?o), '10$'))"
_STATIC = f"?s :belongsTo ?sector ; :isCreatedBy ?maker ; <{LABEL}> ?label"
QUERIES = {
    "Q1": ("DISTINCT ?o", _OBSERVED, ""),
    "Q2": ("?o (COUNT(?tag) AS ?tags)", _OBSERVED, "GROUP BY ?o ORDER BY ?o"),
    "Q3": ("?o", f"{_OBSERVED} FILTER(REGEX(STR(?o), '00$') || REGEX(STR(?o), '50$'))", "GROUP BY ?o"),
    "Q4": ("?o (COUNT(?tag) AS ?tags)", f"{_OBSERVED} FILTER(REGEX(STR(?tag), '[123]$')) {_LATER}", "GROUP BY ?o"),
    "Q5": (
        "?o (COUNT(?tag) AS ?tags)",
        f"{{ {_OBSERVED} FILTER(REGEX(STR(?o), '00$')) {_LATER} }} UNION {{ {_FLOW} }}",
        "GROUP BY ?o HAVING (COUNT(?tag) = 3) ORDER BY ?o",
    ),
    "Q6": ("?sector ?maker ?label", f"?m :observeChlorine ?o . ?o :isProducedBy ?s . {_STATIC}", ""),
}
"""The queries of the evaluation: what they select, the pattern, and the modifiers."""
TRIPLES_PER_MESSAGE = 5
SECONDS = 5
"""The seconds of the shorter stream of each row."""
SENSORS_PER_STATIC_TRIPLE = 1 / 3


@dataclass(frozen=True)
class Setting:
    """What a row measures.

    Attributes:
        query: The name of the query.
        builder: The name of the builder.
        rate: Triples per second of all streams together.
        window: The length of the windows, in seconds. They move by one second.
        streams: The number of streams.
        static: The number of static triples.
    """

    query: str
    builder: str
    rate: int = 10_000
    window: int = 1
    streams: int = 1
    static: int = 3000

    @property
    def text(self) -> str:
        """The query in C-SPARQL."""
        selected, pattern, modifiers = QUERIES[self.query]
        window = f"[RANGE {self.window}s STEP 1s]"
        streams = " ".join(f"FROM STREAM <urn:s{number}> {window}" for number in range(self.streams))
        query = f"SELECT {selected} {streams} WHERE {{ {pattern} }} {modifiers}"
        return f"REGISTER QUERY {self.query} AS {PROLOGUE} {query}"


VARIED: dict[str, Sequence[int]] = {
    "rate": (1000, 10_000, 50_000),
    "window": (1, 5, 10),
    "streams": (1, 2, 4),
    "static": (3000, 30_000, 300_000),
}
"""The values of each parameter, where it is varied."""


def message(number: int, time: int, draw: Random, sensors: int) -> Iterator[str]:
    """Yields the lines of a message. Tags come up to 20 ms later than it."""
    kind = "observeChlorine" if number % 4 else "observeFlow"
    yield f"{time} <urn:m{number}> <{E}{kind}> <urn:o{number}> ."
    yield f"{time} <urn:o{number}> <{E}isProducedBy> <urn:sensor{draw.randrange(sensors)}> ."
    for tag in range(TRIPLES_PER_MESSAGE - 2):
        yield f"{time + draw.randrange(20)} <urn:o{number}> <{E}hasTag> <urn:tag{draw.randrange(10)}-{tag}> ."


def write(setting: Setting, seconds: int, folder: Path) -> None:
    """Writes the streams, a folder each with a file for each second, and the static data."""
    draw, sensors = Random(1), max(int(setting.static * SENSORS_PER_STATIC_TRIPLE), 1)
    messages = setting.rate // TRIPLES_PER_MESSAGE
    files: dict[Path, list[str]] = {}
    for stream in range(setting.streams):
        (folder / f"s{stream}").mkdir()
    lines: list[tuple[int, int, str]] = []
    for number in range(messages * seconds):
        time = 1_000_000 + number * 1000 // messages
        lines += (
            (int(line.split(" ", 1)[0]), number % setting.streams, line)
            for line in message(number, time, draw, sensors)
        )
    for time, stream, line in sorted(lines):
        name = folder / f"s{stream}" / f"part{time // 1000:06d}.ntt"
        files.setdefault(name, []).append(line)
    for order, (name, content) in enumerate(sorted(files.items())):
        name.write_text("".join(f"{line}\n" for line in content))
        os.utime(name, (1_000_000 + order,) * 2)
    with (folder / "static.nt").open("w") as static:
        for number in range(sensors):
            sensor = f"<urn:sensor{number}>"
            static.write(f"{sensor} <{E}belongsTo> <urn:sector{number % 50}> .\n")
            static.write(
                f'{sensor} <{E}isCreatedBy> <urn:maker{number % 20}> .\n{sensor} <{LABEL}> "sensor {number}" .\n'
            )


def run(setting: Setting, folder: Path) -> None:
    """Runs a setting over the files of a folder, and prints when the work begins and ends."""
    conf: tuple[tuple[str, str], ...] = ()
    if setting.builder == "spark":
        from squall.builders.spark import MAX_FILES_PER_TRIGGER, session

        conf = ((MAX_FILES_PER_TRIGGER, "1"),)
        session(conf)
    plan = squall.plan(squall.compile(setting.text, lexer="csparql"))
    job = squall.build(plan, setting.builder, Options(conf=conf))
    sources = Sources([open_source(f"urn:s{number}={folder / f's{number}'}/") for number in range(setting.streams)])
    say("start")
    count = 0
    with closing(open_sink(str(folder / "out.csv"))) as sink:
        sink.start()
        for output in job.run(sources, open_static(str(folder / "static.nt"))):
            sink.write(output)
            count += 1
    say("end")
    say("found", outputs=count)


@dataclass(frozen=True)
class Row:
    """What a setting takes: seconds for each second of the stream, bytes of memory of all processes, and outputs."""

    setting: Setting
    seconds: float
    cpu: float
    peak: int
    outputs: int


def row(setting: Setting) -> Row:
    """Returns what a setting takes. Raises Failed if a run fails."""
    lengths = (SECONDS, 3 * SECONDS)
    runs: list[Measured] = []
    for seconds in lengths:
        with tempfile.TemporaryDirectory() as folder:
            write(setting, seconds, Path(folder))
            command = [sys.executable, "-m", "tests.bench.rates", "--child", json.dumps(asdict(setting)), folder]
            runs.append(measure(command, ROOT))
    short, long = runs
    extra = lengths[1] - lengths[0]
    wall, cpu = (long.wall - short.wall) / extra, (long.cpu - short.cpu) / extra
    return Row(setting, wall, cpu, long.peak, long.said["outputs"])


def max_rate(setting: Setting) -> tuple[int, Row]:
    """Returns the greatest rate that can be sustained, to within a factor of two, and what it takes."""
    best = None
    while (measured := row(setting)).seconds < 1 and (best is None or measured.setting.rate < 2_000_000):
        best = measured
        setting = replace(setting, rate=2 * setting.rate)
    return (0, measured) if best is None else (best.setting.rate, best)


def show(measured: Row) -> None:
    """Prints a row of a table."""
    item = measured.setting
    print(
        f"| {item.query} | {item.builder} | {item.rate:,} | {item.window} s | {item.streams} | {item.static:,} | "
        f"{measured.seconds:.3f} | {measured.cpu:.3f} | {measured.peak / 1e6:,.0f} | {measured.outputs:,} |",
        flush=True,
    )


def main(given: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser("python -m tests.bench.rates", description="How fast a stream may be.")
    parser.add_argument("--query", nargs="+", choices=QUERIES, default=list(QUERIES))
    parser.add_argument("--builder", nargs="+", choices=("iterator", "spark", "beam"), default=["iterator"])
    parser.add_argument("--vary", nargs="*", choices=VARIED, default=["rate"])
    parser.add_argument("--max-rate", action="store_true", help="look for the greatest rate that can be sustained")
    parser.add_argument("--child", nargs=2, help=argparse.SUPPRESS)
    request = parser.parse_args(given)
    if request.child:
        run(Setting(**json.loads(request.child[0])), Path(request.child[1]))
        return 0
    head = ("query", "builder", "triples/s", "window", "streams", "static", "s for each s", "CPU s", "MB", "outputs")
    print(f"| {' | '.join(head)} |\n|{' --- |' * len(head)}")
    failures = 0
    for item in settings(request):
        try:
            show(max_rate(item)[1] if request.max_rate else row(item))
        except Failed as error:
            failures += 1
            print(f"{item.query} on {item.builder} has failed: {error}", file=sys.stderr)
    return min(failures, 1)


def settings(request: Any) -> Iterator[Setting]:
    """Yields the settings that are asked for, each once."""
    names = () if request.max_rate else request.vary
    changes: list[dict[str, Any]] = [{name: value} for name in names for value in VARIED[name]]
    for builder in request.builder:
        for query in request.query:
            basic = Setting(query, builder)
            yield from dict.fromkeys((basic, *(replace(basic, **change) for change in changes)))


if __name__ == "__main__":
    sys.exit(main())
