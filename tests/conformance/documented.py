"""The counts of outcomes in the table of docs/testing.md: the runner writes them, and a test compares them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path

from tests.conformance import Outcome

PAGE = Path(__file__).parents[2] / "docs" / "testing.md"
COLUMNS = ("passed", "left out", "known bad")
"""The columns of the table behind the suite and what it tests. None fails."""
_ROW = re.compile(r"^\| `([\w-]+)` \| (.*?) \| (\d*) ?\| ?(\d*) ?\| ?(\d*) ?\|$", re.MULTILINE)

Counts = tuple[int, ...]
"""The numbers of a row, by `COLUMNS`."""


def counts_of(outcomes: Iterable[Outcome]) -> Counts:
    """Returns the counts of outcomes."""
    by_status = Counter(outcome.status for outcome in outcomes)
    return tuple(by_status[status] for status in COLUMNS)


def documented(text: str) -> dict[str, Counts]:
    """Returns the counts that the table has, by suite."""
    return {row[1]: tuple(int(count or 0) for count in row.groups()[2:]) for row in _ROW.finditer(text)}


def with_counts(text: str, counts: Mapping[str, Counts]) -> str:
    """Returns the page with other counts of some suites."""

    def row(match: re.Match[str]) -> str:
        suite, tested = match[1], match[2]
        if suite not in counts:
            return match[0]
        return f"| `{suite}` | {tested} |" + "".join(f" {number} |" if number else " |" for number in counts[suite])

    return _ROW.sub(row, text)
