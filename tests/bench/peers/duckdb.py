"""duckdb: joins in SQL written by hand; closures by rounds over what was new in the last one (semi-naive)."""

from __future__ import annotations

from collections.abc import Iterable

import duckdb
from duckdb import DuckDBPyConnection

from squall.rdf import RDF, RDFS, iri
from tests.bench.data import u
from tests.bench.peers.encoding import LITERAL, Dictionary, Numbers
from tests.bench.works import Answer, Evaluate, Rule, Statement, Task

VALUES = 1000


def prepare(task: Task) -> Evaluate:
    dictionary, base = Dictionary(), duckdb.connect()
    static, stream = ([dictionary.encode(item) for item in inputs] for inputs in (task.static(), task.triples()))
    match task.work.kind:
        case "join":
            (rule,) = task.work.rules
            load(base, "static", static)
            load(base, "stream", stream)
            queries = select(rule, dictionary, {predicate for _, predicate, _ in static})
            return lambda: Answer(dictionary.lines(over_windows(base, queries, task, len(stream))))
        case "rdfs":
            load(base, "given", static + stream)
            return lambda: rdfs(base, dictionary)
        case _:
            load(base, "given", stream)
            return lambda: partonomy(base, dictionary)


def load(base: DuckDBPyConnection, table: str, triples: list[Numbers]) -> None:
    base.execute(f"CREATE TABLE {table} (n INTEGER, s INTEGER, p INTEGER, o INTEGER)")
    numbered = [(n, *triple) for n, triple in enumerate(triples)]
    for first in range(0, len(numbered), VALUES):
        base.execute(f"INSERT INTO {table} VALUES {','.join(map(str, numbered[first : first + VALUES]))}")


def read(base: DuckDBPyConnection, query: str) -> list[Numbers]:
    numbers: list[Numbers] = base.execute(query).fetchall()
    return numbers


# -- windows -----------------------------------------------------------------------------------------------------------


def over_windows(base: DuckDBPyConnection, query: str, task: Task, size: int) -> list[Numbers]:
    numbers: list[Numbers] = []
    for first, last in task.windows(size):
        numbers += read(base, f"WITH recent AS (FROM stream WHERE n >= {first} AND n < {last}) {query}")
    return numbers


def select(rule: Rule, dictionary: Dictionary, static: set[int]) -> str:
    """Returns the rule as SQL over the relations `recent` and `static`."""
    places: dict[str, str] = {}
    tables, tests = [], []
    for number, pattern in enumerate(rule.body):
        tables.append(f"{'static' if dictionary.number(pattern[1]) in static else 'recent'} t{number}")
        for column, slot in zip("spo", pattern, strict=True):
            place = f"t{number}.{column}"
            if slot[0] != "?":
                tests.append(f"{place} = {dictionary.number(slot)}")
            elif places.setdefault(slot, place) != place:
                tests.append(f"{place} = {places[slot]}")
    body = f"FROM {', '.join(tables)} WHERE {' AND '.join(tests)}"
    return " UNION ALL ".join(f"SELECT {columns(statement, places, dictionary)} {body}" for statement in rule.head)


def columns(statement: Statement, places: dict[str, str], dictionary: Dictionary) -> str:
    return ", ".join(places[slot] if slot[0] == "?" else str(dictionary.number(slot)) for slot in statement)


# -- closures ----------------------------------------------------------------------------------------------------------


def rounds(base: DuckDBPyConnection, rules: Iterable[str]) -> None:
    """Puts into the table `known` what follows from it; the rules read the table `new`."""
    text = " UNION ".join(rules)
    base.execute("CREATE OR REPLACE TEMP TABLE new AS FROM known")
    while read(base, "SELECT 1 FROM new LIMIT 1"):
        base.execute(f"CREATE OR REPLACE TEMP TABLE new AS ({text}) EXCEPT FROM known")
        base.execute("INSERT INTO known FROM new")


def transitive(base: DuckDBPyConnection, predicate: int) -> str:
    """Returns SQL for the rule that a property is transitive, and puts its asserted steps into a table."""
    base.execute(f"CREATE TEMP TABLE steps{predicate} AS SELECT s, o FROM given WHERE p = {predicate}")
    return f"SELECT new.s, new.p, x.o FROM new, steps{predicate} x WHERE new.p = {predicate} AND new.o = x.s"


def derived(base: DuckDBPyConnection, dictionary: Dictionary) -> Answer:
    base.execute("CREATE TEMP TABLE found AS FROM known EXCEPT SELECT s, p, o FROM given")
    return Answer(dictionary.lines(read(base, "FROM found")))


def partonomy(base: DuckDBPyConnection, dictionary: Dictionary) -> Answer:
    base.execute("CREATE TEMP TABLE known AS SELECT s, p, o FROM given")
    rounds(base, [transitive(base, dictionary.number(u("partOf")))])
    return derived(base, dictionary)


def rdfs(base: DuckDBPyConnection, dictionary: Dictionary) -> Answer:
    """Computes the closure of the schema first, and then applies the four rules about data."""
    names = {name: dictionary.number(iri(RDFS + name)) for name in ("subClassOf", "subPropertyOf", "domain", "range")}
    type_ = dictionary.number(iri(RDF + "type"))
    schema = ", ".join(map(str, names.values()))
    base.execute(f"CREATE TEMP TABLE known AS SELECT s, p, o FROM given WHERE p IN ({schema})")
    rounds(base, [transitive(base, names[name]) for name in ("subClassOf", "subPropertyOf")])
    for name, number in names.items():
        base.execute(f"CREATE TEMP TABLE {name} AS SELECT s AS x, o AS y FROM known WHERE p = {number}")
    base.execute("INSERT INTO known SELECT s, p, o FROM given EXCEPT FROM known")
    rounds(
        base,
        [
            "SELECT s, y AS p, o FROM new, subPropertyOf WHERE p = x",
            f"SELECT s, {type_}, y FROM new, domain WHERE p = x",
            f"SELECT o, {type_}, y FROM new, range WHERE p = x AND o < {LITERAL}",
            f"SELECT s, {type_}, y FROM new, subClassOf WHERE p = {type_} AND o = x",
        ],
    )
    return derived(base, dictionary)
