"""The workloads: a program, the data it runs over at any size, and the same rules as SPARQL for the peers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from squall import rulesets
from tests.bench import data

Lines = Iterator[str]


@dataclass(frozen=True)
class Work:
    """One workload.

    size: triples of the stream where none is asked for. program: its rules in Jena's language.
    stream, static: statements, timed where `timed`. queries: CONSTRUCT queries with the meaning of the rules.
    """

    name: str
    size: int
    program: str
    stream: Callable[[int], Lines]
    static: Callable[[], Lines]
    queries: tuple[str, ...]
    timed: bool = False

    def files(self, folder: Path) -> Files:
        return Files(folder / "program.jena", folder / f"stream.{'ntt' if self.timed else 'nt'}", folder / "static.nt")

    def write(self, folder: Path, size: int) -> None:
        """Puts the program and the data, `size` triples of the stream, into a folder."""
        files = self.files(folder)
        files.program.write_text(self.program)
        files.stream.write_text("".join(f"{line}\n" for line in self.stream(size)))
        files.static.write_text("".join(f"{line}\n" for line in self.static()))


@dataclass(frozen=True)
class Files:
    """A workload on disk."""

    program: Path
    stream: Path
    static: Path


def nothing() -> Lines:
    return iter(())


PREFIXES = f"""@prefix : <{data.SENSOR}>.
@prefix u: <{data.UNIVERSITY}>.
@prefix rdf: <http://www.w3.org/1999/02/22-rdf-syntax-ns#>.
"""
SPARQL_PREFIXES = f"PREFIX : <{data.SENSOR}> PREFIX u: <{data.UNIVERSITY}> PREFIX rdfs: <{data.RDFS}> "


def construct(head: str, body: str) -> str:
    return f"{SPARQL_PREFIXES} CONSTRUCT {{ {head} }} WHERE {{ {body} }}"


READING = "(?o rdf:type :SensorOutput) (?o :hasValue ?v) (?v :numericValue ?n)"
READING_SPARQL = "?o a :SensorOutput ; :hasValue ?v . ?v :numericValue ?n ."

SENSORS = Work(
    "sensors", 100_000, f"{PREFIXES}[reads: {READING} -> (?o :reads ?n)]\n", data.sensors, nothing,
    (construct("?o :reads ?n", READING_SPARQL),), timed=True,
)  # fmt: skip

RDFS = Work(
    "rdfs", 100_000, rulesets.path("rdfs").read_text(), data.university, data.hierarchy,
    (
        construct("?a rdfs:subClassOf ?c", "?a rdfs:subClassOf ?b . ?b rdfs:subClassOf ?c"),
        construct("?a rdfs:subPropertyOf ?c", "?a rdfs:subPropertyOf ?b . ?b rdfs:subPropertyOf ?c"),
        construct("?s ?b ?o", "?a rdfs:subPropertyOf ?b . ?s ?a ?o FILTER(!isBlank(?b))"),
        construct("?s a ?c", "?p rdfs:domain ?c . ?s ?p ?o"),
        construct("?o a ?c", "?p rdfs:range ?c . ?s ?p ?o FILTER(!isLiteral(?o))"),
        construct("?s a ?b", "?a rdfs:subClassOf ?b . ?s a ?a"),
    ),
)  # fmt: skip

CLOSURE = f"{PREFIXES}[closure: (?a u:partOf ?b) (?b u:partOf ?c) -> (?a u:partOf ?c)]\n"
CLOSURE_SPARQL = (construct("?a u:partOf ?c", "?a u:partOf ?b . ?b u:partOf ?c"),)
CHAIN = Work("chain", 300, CLOSURE, data.chain, nothing, CLOSURE_SPARQL)
TREE = Work("tree", 10_000, CLOSURE, data.tree, nothing, CLOSURE_SPARQL)


def many(rules: int) -> Work:
    """As many rules, which differ in the sensor they look at and share everything else."""
    program = [f"[r{k}: {READING} (?o :isProducedBy :sensor{k}) -> (?o :reads{k} ?n)]\n" for k in range(rules)]
    queries = [construct(f"?o :reads{k} ?n", f"{READING_SPARQL} ?o :isProducedBy :sensor{k}") for k in range(rules)]
    return Work("many", 20_000, PREFIXES + "".join(program), data.sensors, nothing, tuple(queries), timed=True)


WORKS = {work.name: work for work in (SENSORS, RDFS, CHAIN, TREE, many(100))}
