"""The command line of the conformance suites: ``python -m tests.conformance --help``."""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from tests.conformance import STATUSES, SUITES, Outcome, Stages, corpus, place_of, run
from tests.conformance.documented import PAGE, counts_of, with_counts


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs suites. Returns 0 if nothing failed, 1 if something did, and 2 if there is nothing to run."""
    options = _parser().parse_args(arguments)
    suites = options.suites or [suite for suite in SUITES if place_of(suite, options.corpus).exists()]
    absent = [suite for suite in suites if not place_of(suite, options.corpus).exists()]
    if absent or not suites:
        print(f"conformance data not found in {options.corpus}: set SQUALL_CONFORMANCE or --corpus", file=sys.stderr)
        return 2
    for folder in _without_suite(options.corpus) if not options.suites else ():
        print(f"no suite runs {folder}", file=sys.stderr)
    outcomes: list[Outcome] = []
    for suite in suites:
        for outcome in run(suite, options.corpus, Stages(options.planner, options.builder)):
            outcomes.append(outcome)
            if outcome.status != "passed":
                print(outcome, flush=True)
    if len(suites) > 1:
        for suite in suites:
            print(f"{suite}: {counted([outcome for outcome in outcomes if outcome.suite == suite])}")
    if options.json:
        results = [asdict(outcome) for outcome in outcomes]
        options.json.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    if options.docs:
        counts = {suite: counts_of(outcome for outcome in outcomes if outcome.suite == suite) for suite in suites}
        PAGE.write_text(with_counts(PAGE.read_text(encoding="utf-8"), counts), encoding="utf-8")
    print(counted(outcomes))
    return 1 if any(outcome.status == "failed" for outcome in outcomes) else 0


def _without_suite(corpus: Path) -> list[str]:
    """Returns the folders of the corpus that no suite runs."""
    places = {place_of(suite, corpus).relative_to(corpus).parts[0] for suite in SUITES}
    return sorted(path.name for path in corpus.iterdir() if path.is_dir() and path.name not in places)


def counted(outcomes: Sequence[Outcome]) -> str:
    """Yields lines with the number of cases by outcome: one for each suite if there are several, and one for all."""
    counts = Counter(outcome.status for outcome in outcomes)
    return ", ".join(f"{counts[status]} {status}" for status in STATUSES)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.conformance", description="Runs third parties' cases.")
    parser.add_argument("suites", nargs="*", choices=[*SUITES, []], metavar="SUITE", help=", ".join(SUITES))
    parser.add_argument("--corpus", type=Path, default=corpus(), metavar="DIR", help="where the suites' folders lie")
    parser.add_argument("--planner", default=Stages.planner)
    parser.add_argument("--builder", default=Stages.builder)
    parser.add_argument("--json", type=Path, metavar="FILE", help="writes what became of each case")
    parser.add_argument("--docs", action="store_true", help="writes the counts into docs/testing.md")
    return parser


if __name__ == "__main__":
    sys.exit(main())
