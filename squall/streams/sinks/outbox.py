"""The transactional outbox: it buffers outputs until a checkpoint has them, for a sink that cannot be truncated."""

from __future__ import annotations

import secrets
from typing import Any, Protocol, runtime_checkable

from squall.contracts import Output
from squall.streams.formats.event_json import as_json, output_of
from squall.streams.sinks import BuffersOutputs, Flushable, Sink


@runtime_checkable
class IdempotentSink(Protocol):
    """A sink whose messages have names, by which their reader, or the sink itself, recognizes duplicates."""

    def begin_delivery(self, name: str, number: int) -> None:
        """Begins a delivery, to which all further outputs belong.

        Deliveries of the same name and number have the same outputs.
        """
        ...

    def finish(self) -> None:
        """Writes the outputs that its format buffers, complete or not."""
        ...


class Outbox:
    """A sink that buffers outputs until they are in a checkpoint (`squall.contracts.TwoPhaseCommitSink`).

    It writes them to another sink once the checkpoint is on disk. A resumed run writes the outputs of the last
    checkpoint again, since it is not known how many of them arrived.
    """

    def __init__(self, sink: Sink) -> None:
        self.sink = sink
        self.uri = sink.uri
        self.format = getattr(sink, "format", "")
        self._name = secrets.token_hex(8)
        self._number = 0
        self._last = False
        self._is_committed = True
        """Whether the delivery of the last snapshot is complete."""
        self._waiting: list[Output] = []

    def start(self, resume: bool = False, prompt: bool = False) -> None:
        self.sink.start(resume)

    def write(self, output: Output) -> None:
        self._waiting.append(output)

    def snapshot(self, last: bool = False) -> Any:
        """Returns the buffered outputs and their delivery as a JSON value: the first phase of a commit."""
        self._number += 1
        self._last, self._is_committed = last, False
        buffered = self.sink.snapshot_buffer() if isinstance(self.sink, BuffersOutputs) else None
        outputs = [as_json(output) for output in self._waiting]
        return {"name": self._name, "number": self._number, "last": last, "held": buffered, "outputs": outputs}

    def restore(self, state: Any) -> None:
        """Restores the outputs of a snapshot, and commits them."""
        self._name, self._number, self._last = state["name"], state["number"], state["last"]
        self._is_committed = False
        if isinstance(self.sink, BuffersOutputs):
            self.sink.restore_buffer(state["held"])
        self._waiting = [output_of(output) for output in state["outputs"]]
        self.commit()

    def commit(self) -> bool:
        """Writes the buffered outputs to the sink, and returns whether there were any."""
        is_nonempty = bool(self._waiting)
        if isinstance(self.sink, IdempotentSink):
            self.sink.begin_delivery(self._name, self._number)
        for output in self._waiting:
            self.sink.write(output)
        self._waiting = []
        if self._last and isinstance(self.sink, IdempotentSink):
            self.sink.finish()
        if isinstance(self.sink, Flushable):
            self.sink.flush()
        self._is_committed = True
        return is_nonempty

    def close(self) -> None:
        """Closes the sink.

        Outputs that no checkpoint has are dropped: a resumed run derives them again. So are those of a delivery that
        failed: a resumed run repeats it.
        """
        is_finished = self._last and self._is_committed
        if not is_finished and isinstance(self.sink, BuffersOutputs):
            self.sink.discard_buffer()
        self.sink.close()
