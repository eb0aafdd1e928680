"""How evenly rows are spread over tasks: of those that the first level gets, how many times its share the busiest has.

    python -m tests.bench.skew spark-q4-skewed-streams --size 80000

With skewed keys split as they are sampled at the beginning of the stream, and without. Buckets are assigned to
tasks round-robin. A broadcast row counts once for each task. No engine is started.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Sequence

import squall
from squall.builders.distributed.exec.program import Program
from squall.builders.distributed.exec.worker import source_records
from squall.builders.distributed.io.parsing import Document, Parsed, parse_block
from squall.builders.distributed.io.records import RowBatch
from squall.builders.distributed.plan.buckets import BROADCAST_BUCKET
from squall.builders.distributed.plan.physical_plan import physical_plan
from squall.builders.distributed.plan.sampling import InputSampler
from squall.builders.distributed.plan.skew import find_skewed_keys, splittable_inputs
from squall.builders.distributed.plan.stages import partitionings_of
from squall.plan import Plan
from squall.rdf import ALWAYS, Event
from tests.bench.works import WORKS, Work

TASKS = (2, 4, 8, 16, 64)
_HEAD = 1 << 18
"""The number of bytes at the beginning that are sampled to find skewed keys."""


def busiest(plan: Plan, events: Sequence[Event], head: Sequence[Event], tasks: int, share: float) -> float:
    """Returns how many times its share of the rows of stage 1 the busiest task gets.

    Args:
        tasks: The number of tasks.
        share: The fraction of all rows above which a key counts as skewed. With 0, no key does.
    """
    arriving = InputSampler(plan, splittable_inputs(plan, partitionings_of(plan)))
    arriving.count(head)
    hot = find_skewed_keys(arriving.keys, share) if share else {}
    program = Program(physical_plan(plan, skewed_keys=hot))
    counts: Counter[int] = Counter()
    for message in source_records(program, ALWAYS, [Parsed(0, events, [], len(events))]):
        if isinstance(message, RowBatch) and message.stage == 1:
            places = range(tasks) if message.bucket == BROADCAST_BUCKET else [message.bucket % tasks]
            counts.update(dict.fromkeys(places, len(message.deltas)))
    return max(counts.values()) / (counts.total() / tasks)


def measured(work: Work, size: int) -> list[tuple[str, list[float]]]:
    """Measures a workload, without and with split keys, for each number of tasks."""
    plan = squall.plan(squall.compile(work.text, lexer="jena"))
    lines = "".join(f"{line}\n" for line in work.stream(size)).encode()
    document = Document("stream.ntt")
    events, head = (parse_block(document, "stream.ntt", 0, 0, part, None)[0] for part in (lines, lines[:_HEAD]))
    return [
        (how, [busiest(plan, events, head, tasks, share / (2 * tasks)) for tasks in TASKS])
        for how, share in (("without", 0), ("with", 1))
    ]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.skew")
    parser.add_argument("works", nargs="*", default=["spark-q4-skewed-streams"], help="workloads")
    parser.add_argument("--size", type=int, default=80_000, help="triples of the stream")
    args = parser.parse_args()
    print("tasks", *TASKS, sep="\t")
    for name in args.works:
        for how, result in measured(WORKS[name], args.size):
            print(f"{name} {how}", *(f"{times:.2f}" for times in result), sep="\t")


if __name__ == "__main__":
    main()
