"""The counts of outcomes in the table of docs/testing.md: the runner writes them, and a test compares them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

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


class Sentence(NamedTuple):
    """A place of a page that has counts of some cases of a suite.

    Attributes:
        page: The name of the page in `docs`.
        suite: The suite.
        cases: A pattern for the beginnings of the names of the cases.
        text: What the page says, where `{total}`, `{passed}`, `{left_out}` and `{known_bad}` stand for counts.
    """

    page: str
    suite: str
    cases: str
    text: str

    def expected(self, outcomes: Iterable[Outcome]) -> str:
        """Returns what the page has to say after these outcomes of the suite."""
        meant = [outcome for outcome in outcomes if re.match(self.cases, outcome.case)]
        passed, left_out, known_bad = counts_of(meant)
        return self.text.format(total=len(meant), passed=passed, left_out=left_out, known_bad=known_bad)

    def is_right(self, outcomes: Iterable[Outcome]) -> bool:
        """Returns whether the page says it."""
        words = (PAGE.parent / self.page).read_text(encoding="utf-8").split()
        return self.expected(outcomes) in " ".join(words)


SENTENCES = (
    Sentence(
        "languages/rif.md",
        "rif-w3c",
        "(?!extra)",
        "Of {total} runs of the W3C's cases {passed} pass, among them all of Core and BLD but for {known_bad} that are "
        "known to be bad; the other {left_out} are",
    ),
    Sentence(
        "rulesets.md",
        "w3c-rdf-tests",
        "rdf/rdf11/rdf-mt",
        "| RDF 1.1 Semantics (rdf-mt), {total} | {passed} | {left_out} |",
    ),
    Sentence(
        "rulesets.md",
        "owl2-tests",
        "",
        "| OWL 2, profile RL and RDF-based semantics, {total} questions | {passed} | {left_out} |",
    ),
    Sentence(
        "rulesets.md",
        "owl1-wg-tests",
        r"(?!.*Manifest\.rdf)",
        "| OWL 1, {total} | {passed} | {left_out} |",
    ),
    Sentence(
        "rulesets.md",
        "owl1-wg-tests",
        r".*Manifest\.rdf",
        "| RDF Core's entailment, {total} | {passed} | {left_out} | one that RDF 1.1 has otherwise; {known_bad} more "
        "are empty documents |",
    ),
)
"""The counts on other pages than `PAGE`."""


def with_counts(text: str, counts: Mapping[str, Counts]) -> str:
    """Returns the page with other counts of some suites."""

    def row(match: re.Match[str]) -> str:
        suite, tested = match[1], match[2]
        if suite not in counts:
            return match[0]
        return f"| `{suite}` | {tested} |" + "".join(f" {number} |" if number else " |" for number in counts[suite])

    return _ROW.sub(row, text)
