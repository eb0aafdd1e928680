"""The columns of CSV and of DataFrames: whether a mapping and the rows go together."""

from __future__ import annotations

from collections.abc import Sequence

from squall.errors import SquallError, UsageError, did_you_mean, raise_all
from squall.streams.mappings.model import Records


def check_columns(records: Records, columns: Sequence[str], name: str, kind: str = "column") -> None:
    """Checks that rows have the columns that a mapping uses.

    Args:
        records: How the rows are read.
        columns: The names of their columns.
        name: What the document is called in messages.
        kind: What a column is called.

    Raises:
        UsageError: A column is not there, or twice.
        Errors: Several are not.
    """
    places = dict(records.mapping.places)
    errors: list[SquallError] = []
    for field in records.mapping.fields():
        if (count := columns.count(field)) != 1:
            problem = f"has no {kind}" if not count else f"has twice the {kind}"
            hint = did_you_mean(field, columns) or f"{kind}s: {', '.join(f'`{column}`' for column in columns)}"
            errors.append(UsageError(f"{name} {problem} `{field}`", places.get(field), hint))
    raise_all(errors)
