"""The whole benchmark: runs all workloads with their peers, writes docs/benchmarks.md's tables and plots of rates.

python -m tests.bench.report [CHAPTER ...] [--repeat 3] [--only q3,rdfs] [--scale 0.1]
python -m tests.bench.report --kept     # only writes
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.bench.__main__ import ROOT, able, compare
from tests.bench.ours import GIVEN_EVENTS, NAMES, OURS
from tests.bench.watch import Failed
from tests.bench.works import WORKS

PAGE = ROOT / "docs" / "benchmarks.md"
FOLDER = ROOT / "docs" / "benchmarks"
Row = dict[str, Any]


@dataclass(frozen=True)
class Part:
    """A table of the report, which shows one workload at one size.

    Attributes:
        peers: for each peer, the ratio to its rate that squall is to reach, if there is such a goal.
        published: engines that are not run, with their rates as fractions of Jena's (RETE) in earlier measurements.
        once: whether each engine is run once only, since it takes long.
    """

    title: str
    work: str
    size: int
    peers: Mapping[str, float | None] = field(default_factory=dict)
    published: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    once: bool = False


@dataclass(frozen=True)
class Chapter:
    """Tables that are written together, between marks of the page that have its name, with a plot, and the figures
    that they are made of, beside the page. limit: the seconds that a run may take."""

    name: str
    parts: tuple[Part, ...]
    limit: float

    @property
    def marks(self) -> tuple[str, str]:
        return f"<!-- {self.name} -->\n", f"<!-- end of {self.name} -->"


EARLIER = {"C-SPARQL": (0.31, 10.0), "CQELS": (0.027, 100.0), "Sparkwave": (0.115, 100.0)}
"""`Part.published` for workloads with windows."""
ENGINES = (
    Part(
        "3 patterns, window of 1,000 triples", "q3-small", 100_000, {"jena": 5, "pyoxigraph": 2, "bytewax": 3}, EARLIER,
    ),
    Part(
        "3 patterns, window of 10,000 triples", "q3", 100_000,
        {
            "jena": 5, "pyoxigraph": 2, "pyoxigraph-tumbling": None, "jena-arq": None, "jena-arq-tumbling": None,
            "bytewax": 3, "clingo-tumbling": None, "polars": None, "polars-tumbling": None, "duckdb": None,
            "duckdb-tumbling": None,
        },
        EARLIER,
    ),
    Part("4 patterns, one of static data", "q4", 100_000, {"jena": 5, "pyoxigraph": 2, "bytewax": 3}),
    Part(
        "9 patterns", "q9", 100_000,
        {"pyoxigraph": 2, "bytewax": 3, "polars-tumbling": None, "duckdb-tumbling": None},
    ),
    Part("9 patterns, fewer triples", "q9", 20_000, {"jena": 5}),
    Part("3 patterns, from file to file", "q3-files", 2_000_000, {"parse": 0.7, "pyoxigraph-tumbling": None}),
    Part("9 patterns, from file to file", "q9-files", 2_000_000, {"parse": 0.7, "pyoxigraph-tumbling": None}),
    Part("One event at a time", "latency", 40_000, {"jena": None}),
    Part("10 rules that share a prefix", "many-10", 200_000, {"clingo-tumbling": None}),
    Part("100 rules", "many-100", 200_000, {"clingo-tumbling": None}),
    Part("1,000 rules", "many-1000", 200_000),
    Part("10,000 rules", "many-10000", 200_000),
    Part("10 rules, fewer triples", "many-10", 10_000, {"jena": None}),
    Part("100 rules, fewer triples", "many-100", 10_000, {"jena": None}),
    Part("1,000 rules, fewer triples", "many-1000", 10_000, {"jena": 500}),
    Part(
        "RDFS, 100,000 triples", "rdfs", 100_000,
        {"reasonable": 5, "clingo": 5, "polars": 1, "duckdb": 1, "pyoxigraph": None},
    ),
    Part("RDFS, 10,000 triples", "rdfs", 10_000, {"jena": 5, "reasonable": 5, "clingo": 5}),
    Part(
        "RDFS, 1,000,000 triples", "rdfs", 1_000_000,
        {"reasonable": 5, "clingo": 5, "polars": 1, "duckdb": 1},
    ),
    Part("Closure of a tree", "tree", 30_000, {"clingo": 3, "polars": None, "duckdb": None}),
    Part("Closure of a small tree", "tree", 1000, {"jena": 3}),
    Part("Closure of a chain", "chain", 1000, {"polars": None, "duckdb": None}),
    Part("Closure of a shorter chain", "chain", 300, {"clingo": 3}),
    Part("Closure of a short chain", "chain", 100, {"jena": 3}),
    Part("Closure of a long chain", "chain", 3000),
)  # fmt: skip
SPARK = (
    Part("3 patterns, 1,000,000 triples", "spark-q3", 1_000_000, {"pyspark-batch": 1}),
    Part("3 patterns, 10,000,000 triples", "spark-q3", 10_000_000, {"pyspark-batch": 1}, once=True),
    Part("9 patterns, 1,000,000 triples", "spark-q9", 1_000_000, {"pyspark-batch": 1}),
    Part("9 patterns, 10,000,000 triples", "spark-q9", 10_000_000, {"pyspark-batch": 1}, once=True),
    Part("RDFS to the fixpoint, 100,000 triples", "spark-rdfs", 100_000, {"pyspark-batch": 1}),
    Part("RDFS to the fixpoint, 1,000,000 triples", "spark-rdfs", 1_000_000, {"pyspark-batch": 1}, once=True),
    Part("3 patterns, windows with steps", "spark-q3-stepped", 5_000_000, {"pyspark-stream": 2}, once=True),
    Part("9 patterns, windows with steps", "spark-q9-stepped", 10_000_000, {"pyspark-stream": 6}, once=True),
)
CHAPTERS = (Chapter("engines", ENGINES, 300), Chapter("spark", SPARK, 3600))
PARTS = ENGINES + SPARK


# -- running -----------------------------------------------------------------------------------------------------------


def figures(chapter: Chapter, only: Collection[str], kept: Path, repeat: int, scale: float) -> dict[str, Any]:
    """Returns the measurements of a chapter.

    Args:
        only: The workloads to run, if not all. The results of the others are read from the file `kept`.

    Raises:
        SystemExit: The results in the file were measured on another machine.
    """
    here = machine(scale)
    before: Mapping[str, Any] = (
        json.loads(kept.read_text()) if only and kept.exists() else {"machine": here, "parts": ()}
    )
    if before["machine"] != here:
        raise SystemExit(f"{kept} is of another machine: run all of `{chapter.name}`, or write another page (`--page`)")
    existing = {part["title"]: part for part in before["parts"]}
    results = [
        measured(part, repeat, scale, chapter.limit) if not only or part.work in only else existing.get(part.title)
        for part in chapter.parts
    ]
    return {"machine": here, "parts": [part for part in results if part]}


def measured(part: Part, repeat: int, scale: float, limit: float) -> dict[str, Any]:
    """Returns the measurements of a part.

    Args:
        scale: The fraction of the size that is run, for a quick look.
    """
    missing: dict[str, str] = {}
    work = WORKS[part.work]
    ours = [OURS, GIVEN_EVENTS] if work.timed and work.fed == "memory" else [work.run]
    runs = [*ours, *able(list(part.peers), part.work, missing.__setitem__)]
    size = int(part.size * scale)
    print(f"{part.title}: {part.work}, {size:,} triples, {', '.join(runs)}", file=sys.stderr)
    try:
        rows = compare(part.work, runs, size, 1 if part.once else repeat, limit, missing.__setitem__)
    except Failed as error:
        rows, missing["squall"] = [], str(error)  # the other parts are still worth having
    return {"title": part.title, "rows": rows, "left_out": missing}


# -- writing -----------------------------------------------------------------------------------------------------------


def write(chapter: Chapter, found: Mapping[str, Any], page: Path) -> None:
    """Puts a chapter's figures beside the page, its tables on it, and its plot beside it."""
    from tests.bench import plots  # matplotlib is an extra

    folder = page.with_suffix("")
    folder.mkdir(exist_ok=True)
    (folder / f"{chapter.name}.json").write_text(json.dumps(found, indent=1) + "\n")
    put(page, tables(chapter, found), chapter.marks)
    plots.rates(found["parts"], folder / f"{chapter.name}.svg")


def tables(chapter: Chapter, found: Mapping[str, Any]) -> str:
    """Returns the part of the page that this module writes."""
    sections = "\n".join("\n".join(section(item)) for item in found["parts"])
    return f"{found['machine']}\n\n![Triples per second of CPU](benchmarks/{chapter.name}.svg)\n\n{sections}\n"


def section(measured: Mapping[str, Any]) -> Iterator[str]:
    rows: Sequence[Row] = measured["rows"]
    part = next((part for part in PARTS if part.title == measured["title"]), Part(measured["title"], "", 0))
    yield f"### {part.title}"
    yield ""
    if rows:
        yield from table(part, rows)
    for peer, reason in measured["left_out"].items():
        yield f"Left out: {peer}, because: {reason.splitlines()[-1]}."
        yield ""


def table(part: Part, rows: Sequence[Row]) -> Iterator[str]:
    runs = rows[0]["repetitions"]
    yield f"`{rows[0]['work']}`, {rows[0]['triples']:,} triples, {rows[0]['outputs']:,} facts derived, " \
        f"{f'medians of {runs} runs' if runs > 1 else 'one run'}."  # fmt: skip
    yield ""
    waits = "median_us" in rows[0]
    yield from header(["engine", "triples/s", "triples/s of CPU", "squall by time", "by CPU", "aim", "peak MB",
                       *(("median µs", "99 % µs") if waits else ()), "same answer"])  # fmt: skip
    for row in rows:
        yield line(cells(row, part.peers.get(row["run"]), waits))
    yield from (line(row) for row in published(part, rows, 9 + 2 * waits - 1))
    yield ""


def header(names: Sequence[str]) -> Iterator[str]:
    yield line(names)
    yield line(["---", *("---:" for _ in names[1:-1]), "---"])


def line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def cells(one: Row, aim: float | None, waits: bool) -> Iterator[str]:
    name = NAMES.get(one["run"], str(one["run"]))
    ours = name == NAMES[OURS]
    yield f"**{name}**" if ours else name
    yield f"{one['triples_per_s']:,.0f}"
    yield f"{one['triples_per_cpu_s']:,.0f}"
    yield "" if ours else times(1 / one["ratio"])
    yield "" if ours else times(1 / one["cpu_ratio"])
    yield f"{aim:g}" if aim else ""
    yield f"{one['peak_mb']:,.0f}"
    if waits:
        yield f"{one['median_us']:,.0f}"
        yield f"{one['p99_us']:,.0f}"
    yield {True: "yes", False: "no", None: ""}[one["same"]]


def times(ratio: float) -> str:
    return f"{ratio:,.0f}" if ratio >= 100 else f"{ratio:.1f}" if ratio >= 10 else f"{ratio:.2f}"


def published(part: Part, rows: Sequence[Row], width: int) -> Iterator[list[str]]:
    """Returns rows of engines that were not run, by their published rates as parts of Jena's rate."""
    jena = next((row for row in rows if row["run"] == "jena"), None)
    if jena is None:
        return
    for name, (fraction, aim) in part.published.items():
        rate = f"{jena['triples_per_cpu_s'] * fraction:,.0f}"
        ratio = times(1 / jena["cpu_ratio"] / fraction)
        yield [f"*{name}*", "", rate, "", ratio, f"{aim:g}", *("" for _ in range(width - 7)), "not run"]


def machine(scale: float) -> str:
    """Returns a line about the machine and the versions of the figures, and a warning if it was only a quick look."""
    model = "unknown processor"
    for text in Path("/proc/cpuinfo").read_text().splitlines():
        if text.startswith("model name"):
            model = text.partition(": ")[2]
            break
    quick = f" **A quick look at {scale:g} of the sizes that count: these figures say little.**" if scale != 1 else ""
    return f"Measured with Python {platform.python_version()} on {os.cpu_count()} cores ({model}).{quick}"


def put(path: Path, text: str, marks: tuple[str, str]) -> None:
    """Puts a text between two marks of a page."""
    before, begin, remainder = path.read_text().partition(marks[0])
    _, end, after = remainder.partition(marks[1])
    if not begin or not end:
        raise SystemExit(f"{path} has no marks {marks[0].strip()} and {marks[1]}")
    path.write_text(f"{before}{begin}\n{text}\n{end}{after}")


def main(given: Sequence[str] | None = None) -> int:
    names = [chapter.name for chapter in CHAPTERS]
    parser = argparse.ArgumentParser("python -m tests.bench.report", description="Writes docs/benchmarks.md.")
    parser.add_argument("chapter", nargs="*", metavar="CHAPTER", help=f"{', '.join(names)} (all)")
    parser.add_argument("--repeat", type=int, default=3, help="times that each is run, but for the longest (3)")
    parser.add_argument("--only", default="", help="workloads, separated by commas; figures of others stay as they are")
    parser.add_argument("--scale", type=float, default=1.0, help="part of the sizes, for a quick look (1)")
    parser.add_argument("--kept", action="store_true", help="run nothing, write the figures that are there")
    parser.add_argument("--page", type=Path, default=PAGE, help="the page; figures and plots go beside it")
    arguments = parser.parse_args(given)
    if unknown := {*arguments.chapter} - {*names}:
        parser.error(f"no `{min(unknown)}` among {', '.join(names)}")
    answered = True
    for chapter in [chapter for chapter in CHAPTERS if not arguments.chapter or chapter.name in arguments.chapter]:
        state = arguments.page.with_suffix("") / f"{chapter.name}.json"
        if arguments.kept:
            document = json.loads(state.read_text())
        else:
            document = figures(
                chapter, [*filter(None, arguments.only.split(","))], state, arguments.repeat, arguments.scale
            )
        write(chapter, document, arguments.page)
        rows = [item for part in document["parts"] for item in part["rows"]]
        answered &= all(part["rows"] for part in document["parts"]) and all(item["same"] is not False for item in rows)
    return 0 if answered else 1


if __name__ == "__main__":
    sys.exit(main())
