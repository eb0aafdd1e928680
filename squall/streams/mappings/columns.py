"""The columns of CSV: whether a mapping and the rows go together."""

from __future__ import annotations

from collections.abc import Sequence

from squall.errors import SquallError, UsageError, did_you_mean, raise_all
from squall.streams.mappings.model import Records


def check_columns(records: Records, columns: Sequence[str], name: str) -> None:
    """Checks that rows have the columns that a mapping uses.

    Args:
        records: How the rows are read.
        columns: The names of their columns.
        name: What the document is called in messages.

    Raises:
        UsageError: A column is not there, or twice.
        Errors: Several are not.
    """
    places = dict(records.mapping.places)
    errors: list[SquallError] = []
    for field in records.mapping.fields():
        if (count := columns.count(field)) != 1:
            problem = "has no column" if not count else "has twice the column"
            hint = did_you_mean(field, columns) or f"columns: {', '.join(f'`{column}`' for column in columns)}"
            errors.append(UsageError(f"{name} {problem} `{field}`", places.get(field), hint))
    raise_all(errors)
