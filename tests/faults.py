"""The faults that users have reported, and a run of the tests that have their inputs.

    python -m tests.faults [NAME...]

runs the tests with the marker ``fault("NAME")`` of each entry, or of those named. It prints one line for each entry,
and exits with 1 if a test fails or an entry has no test.
"""

from __future__ import annotations

import ast
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

FAULTS = {
    "W1": "`--output`, `--report` and `--profile` do not reach a query beside a second program",
    "W2": "a query with a window finds what a rule set derives from outside of its window",
    "W3": "the work for a fact that a window keeps refreshing grows with the window",
    "W4": "`--profile csparql`: windows with the wrong edge, and steps with the wrong origin",
    "W5": "`--report change` looks at the steps of a window only",
    "W6": "`--output dstream` as RDF Patch adds what has ended",
    "W7": "a solution waits for the next event or heartbeat",
    "W8": "a deadline in the data does not pass without another event",
    "S1": "a graph that does not exist has solutions",
    "S2": "a standing update that inserts into a named graph sets itself off",
    "S3": "dot segments of absolute IRIs are removed in queries, not in data",
    "S4": "text between `<` and `>` in an expression is read as two comparisons",
    "S5": "SPARQLStream: `[NOW]` and units of its grammar are refused",
    "S6": "the hint for a stream whose IRI has a question mark does not work",
    "S7": "no format has plain values and times",
    "S8": "queries of several files have one name",
    "S9": "queries find derived facts that are no triples of RDF",
    "S10": "blank nodes of requests, templates and functions are shared",
    "S11": "long expressions and long bodies crash or take minutes",
    "S12": "RSP-QL: a window declared twice, a graph with the name of a window",
    "S13": "an integer of thousands of digits is no number",
    "S14": "a text with a base direction is read as one with an odd language",
    "S15": "programs cannot get prefixes from outside",
    "S16": "`.sparql` is no known ending",
    "S17": "triples in triples are refused as malformed IRIs",
    "S18": "a number without a unit is a window in milliseconds, silently",
    "S19": "SERVICE is refused",
    "D1": "static data of a server are polled for ever",
    "D2": "RDF/XML with entities in single quotes is lost",
    "D3": "a run that could read nothing ends well",
    "D4": "a byte order mark in front of data costs the document",
    "D5": "the format of a server's document is not inferred",
    "D6": "redirects and proxies of HTTP are ignored",
    "D7": "JSON without a context is read as nothing",
    "D8": "the version directive of RDF 1.2 is malformed",
    "D9": "a later transaction of one instant does not delete what an earlier one added",
    "D10": "blank nodes of an RDF Patch lose their labels between documents",
    "D11": "the time 24:00:00 is none, and rows behind an unreadable time have the one before",
    "D12": "a carriage return alone ends a line in some formats only",
    "D13": "endings in capitals are unknown",
    "D14": "an empty message is malformed in some formats",
    "D15": "a missing context of JSON-LD has the message of a library",
    "D16": "JSON-LD with a context in another file, or at a URL, is lost",
    "D17": "RDF Patch is not read by tokens",
    "D18": "files compressed by bzip2 and Zstandard are lost",
    "D19": "nothing says what is left out of a document behind an error",
    "J1": "Jena: a guard for the rule's own conclusion is refused as not stratified",
    "J2": "Jena: an unknown built-in has no hint",
    "P1": "a broken lexer of a plug-in breaks programs of other languages",
    "P2": "an event with a fact in place of a tuple of facts derives nothing",
    "P3": "`iri` accepts what is no IRI",
    "P4": "wrong arguments of the Python API end in errors from deep inside",
    "P5": "`rdf.events` refuses datasets of rdflib and stores of pyoxigraph",
    "P6": "an example of the pages needs packages that are not installed",
    "P7": "nothing says why a program with a slip in a prefix has no outputs",
    "P8": "data in place of a program, and a run without sources, have unclear messages",
    "P9": "Spark: data frames and sessions of one's own end in unclear errors",
    "P10": "other `--statistics` are reported as other rules",
    "P11": "a signal does not end a run in the middle of long work",
    "P12": "a suite shrinks for minutes while a planner crashes in each example",
    "P13": "the ledger of dead letters does not take a path as text",
    "H1": "numbers of very many digits end in a traceback",
    "H2": "RIF: a variable that nothing binds, with an import, ends in a traceback",
    "H3": "a checkpoint on a full or read-only file system ends in a traceback",
    "H4": "programs take time that is super-linear in their text",
    "H5": "what a broker sends again is counted as late",
    "Q1": "the planner `rete` joins two copies of a pattern first",
    "Q2": "Jena's OWL rules that nest terms without end have no bound",
    "T1": "pages that no test reads are corrupt",
    "T2": "cases of other suites are not compared, or end the run",
    "T3": "counts of the pages are not true",
    "T4": "a condition about the graph inside of `GRAPH ?g` has no solutions, silently",
}
"""The entries by name: what was wrong."""

OPEN: dict[str, str] = {}
"""Entries without a test, each with the reason."""


def marked() -> dict[str, set[Path]]:
    """Returns the files of each entry that is named by a marker ``fault``."""
    files: dict[str, set[Path]] = defaultdict(set)
    for path in sorted(Path(__file__).parent.glob("test_*.py")):
        for name in _marks(ast.parse(path.read_text(encoding="utf-8"))):
            files[name].add(path)
    return files


def _marks(module: ast.Module) -> Iterator[str]:
    for node in ast.walk(module):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "pytest.mark.fault":
            yield from map(ast.literal_eval, node.args)


class Outcomes:
    """A plug-in of pytest that selects the tests of entries, and counts their outcomes."""

    def __init__(self, names: Iterable[str]) -> None:
        self.names = frozenset(names)
        self.counts: dict[str, Counter[str]] = {name: Counter() for name in self.names}
        self.failures: dict[str, list[str]] = {name: [] for name in self.names}
        self._entries: dict[str, set[str]] = {}

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        """Deselects the tests of other entries."""
        for item in items:
            self._entries[item.nodeid] = {
                name for mark in item.iter_markers("fault") for name in mark.args if name in self.names
            }
        config.hook.pytest_deselected(items=[item for item in items if not self._entries[item.nodeid]])
        items[:] = [item for item in items if self._entries[item.nodeid]]

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Counts a test that has run, or that failed or was skipped before or behind it."""
        if report.when != "call" and report.passed:
            return
        for name in self._entries[report.nodeid]:
            self.counts[name][report.outcome] += 1
            if report.failed:
                self.failures[name].append(report.nodeid)


def line(name: str, counts: Counter[str]) -> str:
    """Returns the line of an entry: its state, the number of tests by outcome, and what was wrong."""
    numbers = ", ".join(f"{count} {outcome}" for outcome, count in sorted(counts.items()))
    state = next((outcome for outcome in ("failed", "passed", "skipped") if counts[outcome]), "no test")
    return f"{name:4} {state:8} {numbers or OPEN.get(name, '-'):24} {FAULTS[name]}"


def main(names: list[str]) -> int:
    """Runs the tests of the entries, of all by default, and returns the exit code."""
    unknown = [name for name in names if name not in FAULTS]
    if unknown:
        print(f"no entry: {', '.join(unknown)}", file=sys.stderr)
        return 2
    chosen = names or list(FAULTS)
    files = marked()
    outcomes = Outcomes(chosen)
    paths = sorted({str(path) for name in chosen for path in files.get(name, ())})
    code = pytest.main(["-q", "--no-header", "-p", "no:cacheprovider", *paths], [outcomes]) if paths else 0
    for name in chosen:
        print(line(name, outcomes.counts[name]))
        for test in outcomes.failures[name]:
            print(f"     {test}")
    untested = any(not outcomes.counts[name] and name not in OPEN for name in chosen)
    return int(bool(code) or untested)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
