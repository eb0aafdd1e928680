"""PySpark: a job of DataFrames written by hand, from files to files. Each pattern is a selection of the parsed triples,
which are kept in memory; patterns are joined in the order in which joins on one variable follow each other."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from functools import reduce
from pathlib import Path

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f

from squall.rdf import RDF, RDFS, Term, iri
from tests.bench import spark
from tests.bench.works import Answer, Evaluate, Files, Rule, Statement, Task

COLUMNS = ["s", "p", "o"]


def prepare(task: Task) -> Evaluate:
    session = spark.start(task.work)
    result = {"rdfs": _rdfs, "entailment": _entailed}.get(task.work.kind, _joined)

    def evaluate() -> Answer:
        result(session, task).write.text(str(emptied(task.files)))
        return Answer(written(task.files))

    return evaluate


def emptied(files: Files) -> Path:
    """Deletes the output folder, and returns its path."""
    shutil.rmtree(files.folder, ignore_errors=True)
    return files.folder / "out"


def written(files: Files) -> Iterator[str]:
    """Yields the lines of the files in a folder."""
    for part in sorted((files.folder / "out").glob("part-*")):
        yield from part.read_text().splitlines()


def parsed(lines: DataFrame, timed: bool) -> DataFrame:
    """Returns the triples of canonical lines, and their times (ms) if they have any."""
    first = int(timed)
    cells = f.split("value", " ", first + 3)
    object = f.expr(f"substring(cells[{first + 2}], 1, length(cells[{first + 2}]) - 2)")
    time = [f.col("cells")[0].cast("long").alias("time")] if timed else []
    return lines.select(cells.alias("cells")).select(
        *time, f.col("cells")[first].alias("s"), f.col("cells")[first + 1].alias("p"), object.alias("o")
    )


def selected(pattern: Statement, triples: DataFrame, *text: str) -> DataFrame:
    """Selects the triples that match a pattern: a column for each variable, and the `others`."""
    slots = list(zip(COLUMNS, pattern, strict=True))
    for name, slot in slots:
        if slot[0] != "?":
            triples = triples.where(f.col(name) == slot)
    return triples.select(*text, *(f.col(name).alias(slot) for name, slot in slots if slot[0] == "?"))


def joined(rule: Rule, stream: DataFrame, static: DataFrame, *text: str) -> DataFrame:
    """Joins the patterns from the left. Those that only static data match are broadcast. others: columns of the stream
    on which patterns are joined besides."""
    first, *remainder = rule.body
    existing = {row.p for row in static.select("p").distinct().collect()}
    result = selected(first, stream, *text)
    for pattern in remainder:
        is_static = pattern[1] in existing
        right = f.broadcast(selected(pattern, static)) if is_static else selected(pattern, stream, *text)
        result = result.join(right, [name for name in result.columns if name in right.columns])
    return result


def lines(rule: Rule, rows: DataFrame) -> DataFrame:
    """Returns the conclusions of a rule for rows, as lines."""
    facts = [f.concat_ws(" ", *map(_cell, head), f.lit(".")) for head in rule.head]
    return rows.select(f.explode(f.array(*facts)).alias("value"))


def _cell(slot: str) -> Column:
    return f.col(slot) if slot[0] == "?" else f.lit(slot)


def wanted(rule: Rule, triples: DataFrame) -> DataFrame:
    """Returns the triples with a predicate that the rule reads."""
    return triples.where(f.col("p").isin({pattern[1] for pattern in rule.body}))


def _joined(session: SparkSession, task: Task) -> DataFrame:
    (rule,) = task.work.rules
    triples = wanted(rule, parsed(session.read.text(str(task.files.stream)), task.work.timed)).persist()
    static = parsed(session.read.text(str(task.files.static)), timed=False)
    return lines(rule, joined(rule, triples, static)).distinct()


# -- RDFS --------------------------------------------------------------------------------------------------------------

SUBCLASS, SUBPROPERTY, DOMAIN, RANGE = (iri(RDFS + name) for name in ("subClassOf", "subPropertyOf", "domain", "range"))
TYPE = iri(RDF + "type")


def _rdfs(session: SparkSession, task: Task) -> DataFrame:
    """Computes the closure of the schema, which is small, in the driver and broadcasts it. Then each iteration applies
    the four rules about data to the facts that were new in the last one."""
    schema = parsed(session.read.text(str(task.files.static)), timed=False)
    stream = parsed(session.read.text(str(task.files.stream)), timed=False)
    inputs = {predicate: _pairs(schema, predicate) for predicate in (SUBCLASS, SUBPROPERTY, DOMAIN, RANGE)}
    tables = inputs | {predicate: _closed(inputs[predicate]) for predicate in (SUBCLASS, SUBPROPERTY)}
    closed = [(a, p, b) for p in (SUBCLASS, SUBPROPERTY) for a, b in tables[p] - inputs[p]]
    by = {p: f.broadcast(session.createDataFrame(list(pairs), ["x", "y"])) for p, pairs in tables.items()}
    new = existing = stream.distinct().localCheckpoint()
    frame = session.createDataFrame(closed, COLUMNS)
    while True:
        result = reduce(DataFrame.union, _round(new, by)).distinct()
        new = result.join(existing, COLUMNS, "left_anti").localCheckpoint()
        if new.isEmpty():
            return frame.select(f.concat_ws(" ", *COLUMNS, f.lit(".")).alias("value"))
        existing, frame = existing.union(new), frame.union(new)


def _round(new: DataFrame, by: dict[Term, DataFrame]) -> Iterator[DataFrame]:
    types, things = new.where(f.col("p") == TYPE), new.where(~f.col("o").startswith('"'))
    yield new.join(by[SUBPROPERTY], f.col("p") == f.col("x")).select("s", f.col("y").alias("p"), "o")
    typed = f.lit(TYPE).alias("p")
    yield new.join(by[DOMAIN], f.col("p") == f.col("x")).select("s", typed, f.col("y").alias("o"))
    yield things.join(by[RANGE], f.col("p") == f.col("x")).select(f.col("o").alias("s"), typed, f.col("y").alias("o"))
    yield types.join(by[SUBCLASS], f.col("o") == f.col("x")).select("s", "p", f.col("y").alias("o"))


Pairs = set[tuple[str, str]]


def _pairs(schema: DataFrame, predicate: Term) -> Pairs:
    return {(row.s, row.o) for row in schema.where(f.col("p") == predicate).collect()}


def _closed(pairs: Pairs) -> Pairs:
    """Returns the transitive closure."""
    existing = new = pairs
    while new:
        new = {(a, c) for a, b in new for via, c in pairs if b == via} - existing
        existing = existing | new
    return existing


# -- Entailment: patterns over the closed hierarchy --------------------------------------------------------------------


def _entailed(session: SparkSession, task: Task) -> DataFrame:
    """Joins the patterns of the rule under the entailment of the schema: each selects the triples from which its
    solutions follow, by a join with the closed hierarchy, which is broadcast."""
    (rule,) = task.work.rules
    schema = parsed(session.read.text(str(task.files.static)), timed=False)
    above = {predicate: _reflexive(_closed(_pairs(schema, predicate))) for predicate in (SUBCLASS, SUBPROPERTY)}
    ends = {
        predicate: {
            (property, wider)
            for property, other in above[SUBPROPERTY] | {(p, p) for p, _ in direct}
            for end, name in direct
            if end == other
            for below, wider in above[SUBCLASS] | {(name, name)}
            if below == name
        }
        for predicate in (DOMAIN, RANGE)
        for direct in [_pairs(schema, predicate)]
    }
    triples = parsed(session.read.text(str(task.files.stream)), timed=False).persist()
    frames = [_solutions(session, triples, pattern, above, ends) for pattern in rule.body]
    rows = reduce(lambda left, right: left.join(right, [n for n in left.columns if n in right.columns]), frames)
    return lines(rule, rows).distinct()


def _solutions(
    session: SparkSession, triples: DataFrame, pattern: Statement, above: dict[Term, Pairs], ends: dict[Term, Pairs]
) -> DataFrame:
    """Returns the solutions of a pattern, whose object is a class or a variable."""
    subject, predicate, object = pattern

    def of(pairs: Pairs, name: str) -> DataFrame:
        return f.broadcast(session.createDataFrame([(x,) for x, y in pairs if y == name] or [("",)], ["x"]))

    if predicate != TYPE:
        properties = of(above[SUBPROPERTY] | {(predicate, predicate)}, predicate)
        read = triples.join(properties, f.col("p") == f.col("x"))
        return read.select(f.col("s").alias(subject), f.col("o").alias(object)).distinct()
    typed = triples.where(f.col("p") == TYPE).join(
        of(above[SUBCLASS] | {(object, object)}, object), f.col("o") == f.col("x")
    )
    members = typed.select(f.col("s").alias(subject))
    for end, column in ((DOMAIN, "s"), (RANGE, "o")):
        used = triples.join(of(ends[end], object), f.col("p") == f.col("x"))
        members = members.union(used.where(~f.col(column).startswith('"')).select(f.col(column).alias(subject)))
    return members.distinct()


def _reflexive(pairs: Pairs) -> Pairs:
    return pairs | {(name, name) for pair in pairs for name in pair}
