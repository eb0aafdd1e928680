"""How long so many queries take in one job on Spark, beside as many jobs with one each:

    python -m tests.bench.queries --triples 100000 --count 4 --count 16 --count 64

All in one session, a first run being left out: the Java machine is warm. The queries are rules that differ in the
sensor that they look at, and share their other patterns, unless the planner (`--planner greedy`) shares nothing but
what is read.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from statistics import median

import squall
from squall.streams import Sources, open_source
from tests.bench import data
from tests.bench.works import Rule, many


def timed(rules: Sequence[Rule], planner: str, stream: Path) -> tuple[float, int]:
    """Returns the seconds that a job of these rules takes from a file to its outputs, and the number of outputs."""
    plan = squall.plan(squall.compile("".join(rule.jena() for rule in rules), lexer="jena"), planner)
    job = squall.build(plan, "spark")
    began = time.perf_counter()
    outputs = sum(1 for _ in job.run(Sources([open_source(str(stream))])))
    return time.perf_counter() - began, outputs


def main(given: Iterable[str] | None = None) -> int:
    from squall.builders.spark import session

    parser = argparse.ArgumentParser("python -m tests.bench.queries", description="Seconds for many queries.")
    parser.add_argument("--triples", type=int, default=100_000, help="of the stream (100,000)")
    parser.add_argument("--planner", action="append", help="what plans them (rete)")
    parser.add_argument("--count", type=int, action="append", help="how many queries (4, 16, 64)")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="write an SVG there")
    arguments = parser.parse_args(None if given is None else list(given))
    session()
    panels: list[tuple[str, dict[str, float]]] = []
    with tempfile.TemporaryDirectory() as folder:
        stream = Path(folder, "stream.ntt")
        stream.write_text("".join(f"{line}\n" for line in data.sensors(arguments.triples)))
        for planner in arguments.planner or ["rete"]:
            print(f"{planner}\nqueries  one job  separate jobs  one of these (median)")
            timed(many(1).rules, planner, stream)
            for count in arguments.count or (4, 16, 64):
                rules = many(count).rules
                once, result = timed(rules, planner, stream)
                seconds, outputs = zip(*(timed([rule], planner, stream) for rule in rules), strict=True)
                again, _ = timed(rules, planner, stream)
                if result != sum(outputs):
                    print(f"{result} facts of one job, {sum(outputs)} of {count}", file=sys.stderr)
                    return 1
                item = (once + again) / 2  # before and behind the others: the machine may have other work
                print(f"{count:7} {item:7.2f}s {sum(seconds):12.2f}s {median(seconds):6.2f}s", flush=True)
                bars = {"squall, one job": item, "as many jobs": sum(seconds)}
                panels.append((f"{count} queries, {planner}", bars))
    if arguments.plot:
        from tests.bench import plots  # matplotlib is an extra

        plots.seconds(panels, arguments.plot)
    return 0


if __name__ == "__main__":
    sys.exit(main())
