"""The workloads: rules as data, the data they run over at any size, and how an engine is fed with them."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from squall import rulesets
from tests.bench import data
from tests.bench.data import RDF_TYPE, RDFS, s, u

Lines = Iterator[str]
Statement = tuple[str, str, str]
"""A triple of terms in N-Triples; in a rule, of these and of variables such as ``?o``."""

OBSERVATION = 8
"""The number of triples of an observation, which is one event of the stream."""
PART = 100_000
"""The number of triples in a file, where the stream is a folder of files."""


@dataclass(frozen=True)
class Rule:
    """A rule ``body -> head``. `resources` has the variables that may not be literals."""

    name: str
    body: tuple[Statement, ...]
    head: tuple[Statement, ...]
    resources: tuple[str, ...] = ()

    def jena(self) -> str:
        tests = "".join(f" notLiteral({name})" for name in self.resources)
        return f"[{self.name}: {_jena(self.body)}{tests} -> {_jena(self.head)}]\n"

    def sparql(self) -> str:
        """Returns the rule as a CONSTRUCT query."""
        tests = "".join(f" FILTER(!isLiteral({name}))" for name in self.resources)
        return f"CONSTRUCT {{ {_sparql(self.head)} }} WHERE {{ {_sparql(self.body)}{tests} }}"


def _jena(statements: Iterable[Statement]) -> str:
    return " ".join(f"({' '.join(statement)})" for statement in statements)


def _sparql(statements: Iterable[Statement]) -> str:
    return " . ".join(map(" ".join, statements))


@dataclass(frozen=True)
class Work:
    """One workload.

    kind: ``join`` (a rule over a window), ``stepped`` (over one that moves by its length), ``many`` (many of them),
    ``landmark`` (no window), ``rdfs``, ``owl``, ``closure``, ``entailment`` (a query under the entailment of a schema).
    fed: ``memory`` (evaluation only: the data are in memory before the clock starts, and facts are printed after it
    stops), ``files`` (from a file to a file), ``folder`` (the stream is a folder, with a file for each `PART` triples),
    ``events`` (as memory, one event at a time).
    size: triples of the stream where none is asked for.
    program: the text of the rules in Jena's language, where it is not made from them.
    window: triples of the stream that are valid at a time; 0: all.
    run: what is run if nothing is asked for.
    """

    name: str
    kind: str
    size: int
    rules: tuple[Rule, ...]
    stream: Callable[[int], Lines]
    static: Callable[[], Lines]
    window: int = 0
    fed: str = "memory"
    program: str = ""
    timed: bool = False
    run: str = "rete:iterator"

    @property
    def text(self) -> str:
        """The rules in Jena's language."""
        return self.program or "".join(rule.jena() for rule in self.rules)

    @property
    def slide(self) -> int:
        """Triples that come at a time, where there is a window: ten times until it is full."""
        return self.window // 10

    @property
    def milliseconds(self) -> int:
        """The length of the window in event time."""
        return self.window // OBSERVATION * data.STEP

    def files(self, folder: Path) -> Files:
        stream = folder / ("stream" if self.fed == "folder" else f"stream.{'ntt' if self.timed else 'nt'}")
        names = ("plain.nt", "static.nt", "out.nt", "made")
        return Files(folder / "program.jena", stream, *(folder / name for name in names))

    def write(self, folder: Path, size: int) -> None:
        """Puts the program and the data, `size` triples of the stream, into a folder."""
        files = self.files(folder)
        files.program.write_text(self.text)
        lines = list(self.stream(size))
        if self.fed == "folder":
            write_parts(files.stream, parted(lines, PART))
        else:
            _write(files.stream, lines)
        _write(files.plain, [line.partition(" ")[2] for line in lines] if self.timed else lines)
        _write(files.static, self.static())


def _write(path: Path, lines: Iterable[str]) -> None:
    path.write_text("".join(f"{line}\n" for line in lines))


def write_parts(folder: Path, parts: Iterable[Iterable[str]]) -> None:
    """Writes lines as files that seem to have appeared one after the other."""
    folder.mkdir()
    for number, lines in enumerate(parts):
        path = folder / f"part{number:06d}.ntt"
        _write(path, lines)
        os.utime(path, (data.START // 1000 + number,) * 2)


def parted(lines: Sequence[str], size: int) -> Iterator[Sequence[str]]:
    """Yields the lines in groups of a size."""
    return (lines[first : first + size] for first in range(0, len(lines), size))


@dataclass(frozen=True)
class Files:
    """The files of a workload.

    Attributes:
        plain: the stream without its times.
        out: the file to which facts are written.
        folder: the folder for engines that write several files.
    """

    program: Path
    stream: Path
    plain: Path
    static: Path
    out: Path
    folder: Path


@dataclass(frozen=True)
class Task:
    """A workload that is prepared for an engine.

    Attributes:
        slide: the number of triples that come at a time; the engine answers when they have come.
        warm: the seconds that an engine with a compiler of its own works before it is measured.
    """

    work: Work
    files: Files
    slide: int
    warm: float = 4

    def triples(self) -> list[Statement]:
        """Yields the triples of the stream. Equal terms are one string, so that their hashes are cached and comparisons
        are fast."""
        return statements(self.files.plain)

    def static(self) -> list[Statement]:
        return statements(self.files.static)

    def windows(self, size: int) -> Iterator[tuple[int, int]]:
        """Yields the first triple of the window and the one behind its last, each time that a slide of the stream has
        come."""
        for end in range(self.slide, size + self.slide, self.slide):
            yield max(0, min(end, size) - self.work.window), min(end, size)


def statements(path: Path) -> list[Statement]:
    """Yields the triples of a file of canonical N-Triples."""
    return [statement(line) for line in path.read_text().splitlines()]


def written(path: Path) -> Lines:
    """Yields the lines of a file, which is read on demand."""
    yield from path.read_text().splitlines()


def statement(line: str) -> Statement:
    subject, predicate, words = line.split(" ", 2)
    return sys.intern(subject), sys.intern(predicate), sys.intern(words[:-2])


@dataclass(frozen=True)
class Answer:
    """The result of an engine.

    Attributes:
        facts: N-Triples lines, which are made on demand.
        wall, cpu: the seconds, if the engine is a process of its own and has measured itself.
        latencies: the seconds from an event to its output, for each event that had one.
    """

    facts: Iterable[str]
    wall: float | None = None
    cpu: float | None = None
    latencies: tuple[float, ...] = ()


Evaluate = Callable[[], Answer]
"""A run that is ready: everything is imported, planned and loaded. The call of this function is measured."""


def nothing() -> Lines:
    return iter(())


# -- the sensor stream -------------------------------------------------------------------------------------------------

TYPE = ("?o", RDF_TYPE, s("SensorOutput"))
PRODUCED = ("?o", s("isProducedBy"), "?s")
VALUE = ("?o", s("hasValue"), "?v")
TIME = ("?o", s("observationResultTime"), "?t")
PROPERTY = ("?o", s("observedProperty"), "?y")
QUANTITY = ("?v", RDF_TYPE, s("QuantityValue"))
NUMBER = ("?v", s("numericValue"), "?n")
UNIT = ("?v", s("unit"), "?u")
PLATFORM = ("?s", s("onPlatform"), "?p")

READS = ("?o", s("reads"), "?n")
ON = ("?o", s("on"), "?p")

Q3 = Rule("q3", (TYPE, VALUE, NUMBER), (READS,))
Q4 = Rule("q4", (PRODUCED, VALUE, NUMBER, PLATFORM), (READS, ON))
Q9 = Rule("q9", (TYPE, PRODUCED, VALUE, TIME, PROPERTY, QUANTITY, NUMBER, UNIT, PLATFORM), (READS, ON))


def over_sensors(
    name: str, *rules: Rule, kind: str = "join", size: int = 100_000, window: int = 10_000, fed: str = "memory"
) -> Work:
    static = data.platforms if any(PLATFORM in rule.body for rule in rules) else nothing
    return Work(name, kind, size, rules, data.sensors, static, window, fed, timed=True)


ON_SPARK = "rete:spark"


def over_sensors_on_spark(name: str, rule: Rule, kind: str, window: int, fed: str) -> Work:
    work = over_sensors(name, rule, kind=kind, window=window, fed=fed, size=1_000_000)
    return replace(work, run=ON_SPARK)


def many(count: int) -> Work:
    """Returns a workload of many rules. They differ in the sensor that they read, and share all else."""
    rules = (
        Rule(f"r{k}", (*Q3.body, ("?o", s("isProducedBy"), s(f"sensor{k}"))), (("?o", s(f"reads{k}"), "?n"),))
        for k in range(count)
    )
    return over_sensors(f"many-{count}", *rules, kind="many", size=20_000)


# -- rules that read what they derive ----------------------------------------------------------------------------------

RDFS_RULES = (
    Rule("rdfs2", (("?p", f"<{RDFS}domain>", "?c"), ("?s", "?p", "?o")), (("?s", RDF_TYPE, "?c"),)),
    Rule("rdfs3", (("?p", f"<{RDFS}range>", "?c"), ("?s", "?p", "?o")), (("?o", RDF_TYPE, "?c"),), ("?o",)),
    Rule(
        "rdfs5",
        (("?a", f"<{RDFS}subPropertyOf>", "?b"), ("?b", f"<{RDFS}subPropertyOf>", "?c")),
        (("?a", f"<{RDFS}subPropertyOf>", "?c"),),
    ),
    Rule("rdfs7", (("?a", f"<{RDFS}subPropertyOf>", "?b"), ("?s", "?a", "?o")), (("?s", "?b", "?o"),)),
    Rule("rdfs9", (("?a", f"<{RDFS}subClassOf>", "?b"), ("?s", RDF_TYPE, "?a")), (("?s", RDF_TYPE, "?b"),)),
    Rule(
        "rdfs11",
        (("?a", f"<{RDFS}subClassOf>", "?b"), ("?b", f"<{RDFS}subClassOf>", "?c")),
        (("?a", f"<{RDFS}subClassOf>", "?c"),),
    ),
)
CLOSURE = (Rule("closure", (("?a", u("partOf"), "?b"), ("?b", u("partOf"), "?c")), (("?a", u("partOf"), "?c"),)),)

ADVISED = Rule(
    "advised",
    (
        ("?x", RDF_TYPE, u("Faculty")), ("?x", u("memberOf"), "?o"), ("?s", u("advisor"), "?x"),
        ("?s", RDF_TYPE, u("Student")),
    ),
    (("?s", u("advisedIn"), "?o"), ("?x", u("advises"), "?s")),
)  # fmt: skip
"""A query whose classes and properties have others below them."""

WORKS = {
    work.name: work
    for work in (
        over_sensors("q3", Q3),
        over_sensors("q3-small", Q3, window=1000),
        over_sensors("q4", Q4),
        over_sensors("q9", Q9),
        over_sensors("q3-files", Q3, fed="files", size=1_000_000),
        over_sensors("q9-files", Q9, fed="files", size=1_000_000),
        over_sensors("latency", Q3, fed="events"),
        *(over_sensors_on_spark(f"spark-{rule.name}", rule, "landmark", 0, "files") for rule in (Q3, Q9)),
        over_sensors_on_spark("spark-q4", Q4, "landmark", 0, "files"),
        replace(over_sensors_on_spark("spark-q4-skewed", Q4, "landmark", 0, "files"), stream=data.skewed),
        replace(
            over_sensors_on_spark("spark-q4-skewed-streams", Q4, "skewed", 0, "files"), stream=data.skewed_streams,
            static=nothing,
        ),
        *(over_sensors_on_spark(f"spark-{rule.name}-stepped", rule, "stepped", 10_000, "folder") for rule in (Q3, Q9)),
        Work(
            "spark-rdfs", "rdfs", 100_000, RDFS_RULES, data.university, data.hierarchy, fed="files",
            program=rulesets.path("rhodf").read_text(), run=ON_SPARK,
        ),
        Work(
            "spark-entailment", "entailment", 1_000_000, (ADVISED,), data.university, data.hierarchy, fed="files",
            run=ON_SPARK,
        ),
        *(many(count) for count in (10, 100, 1000, 10_000)),
        Work(
            "rdfs", "rdfs", 100_000, RDFS_RULES, data.university, data.hierarchy,
            program=rulesets.path("rhodf").read_text(),
        ),
        Work(
            "owl2rl", "owl", 100_000, (), data.university, data.hierarchy,
            program=rulesets.path("owl2rl").read_text(),
        ),
        Work("chain", "closure", 1000, CLOSURE, data.chain, nothing),
        Work("tree", "closure", 30_000, CLOSURE, data.tree, nothing),
    )
}  # fmt: skip
