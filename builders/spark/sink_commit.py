"""Positions of a run's sink and dead-letter ledger between two batches, which make output exactly-once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from squall.builders.spark.store import Store
from squall.contracts import CheckpointedSink, Options, TruncatableSink, TwoPhaseCommitSink
from squall.errors import BuilderError


class SinkCommitter:
    """Saves and restores the positions of the sink and the dead-letter ledger of a run.

    A sink that cannot be truncated (`squall.contracts.CheckpointedSink`) takes part in runs with a checkpoint only.

    Attributes:
        flush_sink: Flushes the sink before its position is saved; None: there is nothing to flush.
    """

    flush_sink: Callable[[], None] | None = None

    def __init__(self, options: Options, store: Store) -> None:
        self.store = store
        self.sink = options.sink
        self.uri = getattr(options.sink, "uri", "")
        supported = TruncatableSink if options.checkpoint is None else TruncatableSink | CheckpointedSink
        candidates = {"sink": options.sink, "ledger": options.ledger}
        self.targets: dict[str, Any] = {
            name: target for name, target in candidates.items() if isinstance(target, supported)
        }

    def resume(self, committed: int) -> None:
        """Restores the sink and the ledger to their positions behind the committed batches.

        Args:
            committed: the number of committed batches.

        Raises:
            BuilderError: the committed batches are in another sink.
        """
        positions = self.store.read("marks", f"{committed}.json")
        if positions is None:
            self._save_positions(committed)
            return
        if positions.get("uri", self.uri) != self.uri:
            raise BuilderError(
                f"the outputs of the checkpoint go to `{positions['uri']}`, and not to `{self.uri}`",
                hint="a run that has changed starts from a new checkpoint: name another folder, or remove this one",
            )
        for name, target in self.targets.items():
            if name in positions and isinstance(target, TruncatableSink):
                target.truncate(positions[name])
            elif name in positions:
                target.restore(positions[name])

    def pre_commit(self, committed: int, last: bool = False) -> None:
        """Saves the position of the sink, with the outputs that it buffers: the first phase of a two-phase commit.

        Args:
            committed: the number of committed batches, this one included.
            last: whether no batch follows for the time being.
        """
        if self.flush_sink is not None:
            self.flush_sink()
        self._save_positions(committed, last)
        self.store.delete("marks", f"{committed - 2}.json")

    def commit(self) -> None:
        """Commits the outputs that the sink has buffered: the second phase of a two-phase commit."""
        if "sink" in self.targets and isinstance(self.sink, TwoPhaseCommitSink):
            self.sink.commit()

    def _save_positions(self, committed: int, last: bool = False) -> None:
        positions = {
            name: target.position() if isinstance(target, TruncatableSink) else target.snapshot(last)
            for name, target in self.targets.items()
        }
        self.store.write({"uri": self.uri, **positions}, "marks", f"{committed}.json")
