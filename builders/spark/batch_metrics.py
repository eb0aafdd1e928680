"""The metrics of the batches of a run on Spark (`squall.contracts.Options.on_batch`)."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from pathlib import Path

from squall.builders.distributed.io.engine import TaskReport
from squall.builders.distributed.io.records import SourceCount
from squall.builders.distributed.io.splits import Split
from squall.contracts import BatchMetrics


class BatchClock:
    """Measures the batches of a run, one after the other.

    Args:
        on_batch: It is called with the metrics of each batch, or None: nothing is measured.
    """

    def __init__(self, on_batch: Callable[[BatchMetrics], None] | None) -> None:
        self._on_batch = on_batch
        self._run_began = self._began = self._arrived = time.monotonic()

    def begin(self, new_files: Iterable[Split] = ()) -> None:
        """Begins a batch.

        Args:
            new_files: The files that have come since the run began; none if all input was there before.
        """
        self._began = self._arrived = time.monotonic()
        if self._on_batch is not None:
            self._arrived = max(
                self._run_began, min((self._written_at(path) for _, path, *_ in new_files), default=self._began)
            )

    def _written_at(self, path: str) -> float:
        """Returns when a file was written, in seconds of the monotonic clock."""
        try:
            return min(self._began - (time.time() - Path(path).stat().st_mtime), self._began)
        except OSError:  # it is not on this machine
            return self._began

    def end(self, report: TaskReport, documents: int) -> None:
        """Ends the batch, which has been committed.

        Args:
            report: What was reported of its sources.
            documents: The number of the documents that are streams. What follows them is static data.
        """
        if self._on_batch is not None:
            statements = source_statements(report, documents)
            self._on_batch(BatchMetrics(self._arrived, self._began, time.monotonic(), statements, report.latest_time))


def source_statements(report: TaskReport, documents: int) -> int:
    """Returns the number of statements of the streams that a batch has read.

    Args:
        report: What was reported of its sources.
        documents: The number of the documents that are streams. What follows them is static data.
    """
    return sum(count for number, count in report.all(SourceCount) if number < documents)
