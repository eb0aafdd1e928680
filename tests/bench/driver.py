"""How much memory the driver of a run on Spark takes, from micro-batch to micro-batch:

    python -m tests.bench.driver --triples 10000000 --batch 100000

The stream is read through windows that do not overlap, so that what is kept is as much at all times. The Java process
is driver and executor in one (``local[*]``); of its heap counts what is left when garbage has been collected. It fails
(exit code 1) where the last quarter of the run needs more than the second one.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterable
from itertools import islice
from pathlib import Path
from statistics import median

from tests.bench import data
from tests.bench.microbatches import length, ours, triggers
from tests.bench.soak import GROWTH, in_use
from tests.bench.works import Q3, write_parts


def main(given: Iterable[str] | None = None) -> int:
    from squall.builders.spark import MAX_FILES_PER_TRIGGER, session

    parser = argparse.ArgumentParser("python -m tests.bench.driver", description="Memory of the driver over time.")
    parser.add_argument("--triples", type=int, default=1_000_000, help="of the stream (1,000,000)")
    parser.add_argument("--batch", type=int, default=10_000, help="triples of a micro-batch (10,000)")
    arguments = parser.parse_args(None if given is None else list(given))
    spark = session([(MAX_FILES_PER_TRIGGER, "1")])
    java = spark._jvm.java.lang  # type: ignore[union-attr]
    python, heap = [], []

    def look() -> None:
        python.append(in_use())
        java.System.gc()
        heap.append(java.Runtime.getRuntime().totalMemory() - java.Runtime.getRuntime().freeMemory())

    with tempfile.TemporaryDirectory() as place:
        folder, lines = Path(place, "in"), data.sensors(arguments.triples)
        write_parts(folder, iter(lambda: list(islice(lines, arguments.batch)), []))
        step = length(arguments.batch)
        triggers(spark, lambda: ours(Q3, f"RANGE {step} STEP {step}", folder, Path(place)), look)
    grows = False
    for name, result in (("Python", python), ("Java", heap)):
        size = len(result) // 4
        quarters = [median(result[first : first + size]) for first in range(0, 4 * size, size)]
        grows |= quarters[3] > GROWTH * quarters[1]
        text = ", ".join(f"{quarter / 1e6:,.1f} MB" for quarter in quarters)
        print(f"{name:8} {text}: medians by quarters of {4 * size} micro-batches")
    return 1 if grows else 0


if __name__ == "__main__":
    sys.exit(main())
