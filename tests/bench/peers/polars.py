"""polars: joins of data frames written by hand; closures by rounds over what was new in the last one (semi-naive)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import polars
from polars import DataFrame, col

from squall.rdf import RDF, RDFS, iri
from tests.bench.data import u
from tests.bench.peers.encoding import LITERAL, Dictionary, Numbers
from tests.bench.works import Answer, Evaluate, Rule, Statement, Task

COLUMNS = ("s", "p", "o")


def prepare(task: Task) -> Evaluate:
    dictionary = Dictionary()
    static, stream = (frame(map(dictionary.encode, inputs)) for inputs in (task.static(), task.triples()))
    match task.work.kind:
        case "join":
            (rule,) = task.work.rules
            return lambda: answer(dictionary, over_windows(rule, static, stream, task, dictionary))
        case "rdfs":
            return lambda: answer(dictionary, [rdfs(polars.concat([static, stream]), dictionary)])
        case _:
            return lambda: answer(dictionary, [closure(stream, dictionary.number(u("partOf")))])


def frame(triples: Iterable[Numbers]) -> DataFrame:
    return DataFrame(list(triples), schema=dict.fromkeys(COLUMNS, polars.Int32), orient="row")


def answer(dictionary: Dictionary, found: list[DataFrame]) -> Answer:
    return Answer(dictionary.lines(triple for part in found for triple in rows(part)))


def rows(part: DataFrame) -> Iterator[Numbers]:
    yield from part.iter_rows()


# -- windows -----------------------------------------------------------------------------------------------------------


def over_windows(
    rule: Rule, static: DataFrame, stream: DataFrame, task: Task, dictionary: Dictionary
) -> list[DataFrame]:
    data_frames: list[DataFrame] = []
    for first, last in task.windows(len(stream)):
        window = polars.concat([static, stream.slice(first, last - first)])
        data_frames += joined(rule, window, dictionary)
    return data_frames


def joined(rule: Rule, window: DataFrame, dictionary: Dictionary) -> Iterator[DataFrame]:
    """Joins the patterns from the left, and makes the facts."""
    first, *other_items = (matched(pattern, window, dictionary) for pattern in rule.body)
    for other in other_items:
        first = first.join(other, on=[name for name in first.columns if name in other.columns])
    for subject, predicate, object in rule.head:
        number = polars.lit(dictionary.number(predicate), polars.Int32)
        yield first.select(s=col(subject), p=number, o=col(object))


def matched(pattern: Statement, window: DataFrame, dictionary: Dictionary) -> DataFrame:
    slots = list(zip(COLUMNS, pattern, strict=True))
    tests = [col(name) == dictionary.number(slot) for name, slot in slots if slot[0] != "?"]
    return window.filter(*tests).select(**{slot: col(name) for name, slot in slots if slot[0] == "?"})


# -- closures ----------------------------------------------------------------------------------------------------------


def closure(triples: DataFrame, predicate: int) -> DataFrame:
    """Derives the closure of a transitive property."""
    steps = triples.filter(col("p") == predicate).select(b="s", c="o")
    new = steps.select(a="b", b="c")
    existing = new
    while len(new):
        result = new.join(steps, on="b").select("a", b="c").unique()
        new = result.join(existing, on=["a", "b"], how="anti")
        existing = polars.concat([existing, new])
    inputs = steps.select(a="b", b="c")
    derived = existing.join(inputs, on=["a", "b"], how="anti")
    return derived.select(s="a", p=polars.lit(predicate, polars.Int32), o="b")


def rdfs(given: DataFrame, dictionary: Dictionary) -> DataFrame:
    """Computes the closure of the schema first. Then each iteration applies the four rules about data to new facts."""
    names = {name: dictionary.number(iri(RDFS + name)) for name in ("subClassOf", "subPropertyOf", "domain", "range")}
    type_ = dictionary.number(iri(RDF + "type"))
    existing = polars.concat([given, *(closure(given, names[name]) for name in ("subClassOf", "subPropertyOf"))])
    schema = {name: existing.filter(col("p") == number).select(x="s", y="o") for name, number in names.items()}
    typed = polars.lit(type_, polars.Int32)
    new = existing
    while len(new):
        things, types = new.filter(col("o") < LITERAL), new.filter(col("p") == type_)
        results = [
            new.join(schema["subPropertyOf"], left_on="p", right_on="x").select("s", p="y", o="o"),
            new.join(schema["domain"], left_on="p", right_on="x").select("s", p=typed, o="y"),
            things.join(schema["range"], left_on="p", right_on="x").select(s="o", p=typed, o="y"),
            types.join(schema["subClassOf"], left_on="o", right_on="x").select("s", "p", o="y"),
        ]
        new = polars.concat(results).unique().join(existing, on=COLUMNS, how="anti")
        existing = polars.concat([existing, new])
    return existing.slice(len(given))
