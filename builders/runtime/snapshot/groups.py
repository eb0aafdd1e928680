"""Batches of rows with a common key, and how facts are grouped into them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from squall.builders.runtime.operators.factored import FactoredRows, Rows
from squall.builders.runtime.tuning import DEFAULT_TUNING, Tuning
from squall.builders.runtime.zset import Row
from squall.rdf import Fact, Term
from squall.rdf.row_tags import relation_tag_of

SAMPLE_ROWS = 1024
"""So many facts of a predicate are sampled to find out whether they have few objects."""


class KeyedRows(NamedTuple):
    """A batch of rows.

    Attributes:
        key: The value that all rows have in the key column of their node; None without a key column. For facts it is
            their predicate, or the relation tag of an atom with the number of cells.
        rows: The rows.
        rule: The name of a rule that derived them.
        repeats: Whether a row may be there twice, because duplicates were not removed yet.
    """

    key: Hashable
    rows: Rows
    rule: str = ""
    repeats: bool = False


def read_facts_by_key(facts: Iterable[Fact]) -> Mapping[Hashable, list[Row]]:
    """Returns facts by key."""
    cells_by_key: defaultdict[Any, list[Any]] = defaultdict(list)
    for fact in facts:
        cells_by_key[fact[1]].append(fact)  # the key of an atom is its arguments here
    rows_by_key: dict[Hashable, list[Row]] = {}
    for key, part in cells_by_key.items():
        if isinstance(key, tuple):
            for fact in part:
                row = (f"@{fact.relation}", *fact.arguments)
                rows_by_key.setdefault((row[0], len(row)), []).append(row)
        else:
            rows_by_key[key] = part
    return rows_by_key


def group_by_object(rows: Sequence[Row], tuning: Tuning = DEFAULT_TUNING) -> Iterator[Rows]:
    """Yields the facts of a predicate; grouped by object, if there are few."""
    sample = rows[:: -(-len(rows) // SAMPLE_ROWS)] if len(rows) >= tuning.min_rows_to_factor else ()
    if len({row[2] for row in sample}) * tuning.min_rows_per_object > len(sample) or not sample:
        yield rows
        return
    subjects: defaultdict[Any, list[Any]] = defaultdict(list)
    for row in rows:
        subjects[row[2]].append(row[0])
    predicate = rows[0][1]
    ungrouped: list[Row] = []
    for object, values in subjects.items():
        if len(values) < tuning.min_rows_to_factor:
            ungrouped += [(value, predicate, object) for value in values]
        else:
            yield FactoredRows((None, predicate, object), 0, dict.fromkeys(values))
    if ungrouped:
        yield ungrouped


def facts_by_key(template: Sequence[int | Term], rows: Rows) -> Mapping[Hashable, Rows]:
    """Returns the facts of a template by key."""
    if (mark := relation_tag_of(template)) is not None:
        return {(mark, len(template)): rows}
    if not isinstance(template[1], int):
        return {template[1]: rows}
    if isinstance(rows, FactoredRows) and rows.place != 1:
        return {rows.row[1]: rows}
    rows_by_key: dict[Hashable, list[Row]] = {}
    for row in rows:
        rows_by_key.setdefault(row[1], []).append(row)
    return rows_by_key
