"""The outbox: outputs wait in it until a checkpoint has them, and then go to a sink that could not be cut back."""

from __future__ import annotations

import secrets
from typing import Any, Protocol, runtime_checkable

from squall.contracts import Output
from squall.streams.formats.event_json import as_json, output_of
from squall.streams.sinks import Flushable, Formatting, Sink


@runtime_checkable
class IdempotentSink(Protocol):
    """A sink whose messages have names, so that whoever gets one twice can tell, or the sink itself."""

    def deliver(self, name: str, number: int) -> None:
        """What is written from now on is the delivery of a number: that of one name and number is always the same."""
        ...

    def finish(self) -> None:
        """Writes what its format keeps, complete or not."""
        ...


class Outbox:
    """Holds back what a sink is to get (`squall.contracts.TwoPhaseCommitSink`).

    A checkpoint has what waits, and it is handed on when that is on disk. A run that goes on hands on what the last
    checkpoint has: nobody knows how much of it got there.
    """

    def __init__(self, sink: Sink) -> None:
        self.sink = sink
        self.uri = sink.uri
        self.format = getattr(sink, "format", "")
        self._name = secrets.token_hex(8)
        self._number = 0
        self._last = False
        self._waiting: list[Output] = []

    def start(self, resume: bool = False, prompt: bool = False) -> None:
        self.sink.start(resume)

    def write(self, output: Output) -> None:
        self._waiting.append(output)

    def save(self, last: bool = False) -> Any:
        self._number += 1
        self._last = last
        buffered = self.sink.held() if isinstance(self.sink, Formatting) else None
        outputs = [as_json(output) for output in self._waiting]
        return {"name": self._name, "number": self._number, "last": last, "held": buffered, "outputs": outputs}

    def recover(self, state: Any) -> None:
        self._name, self._number, self._last = state["name"], state["number"], state["last"]
        if isinstance(self.sink, Formatting):
            self.sink.hold(state["held"])
        self._waiting = [output_of(output) for output in state["outputs"]]
        self.deliver()

    def deliver(self) -> bool:
        any_ = bool(self._waiting)
        if isinstance(self.sink, IdempotentSink):
            self.sink.deliver(self._name, self._number)
        for output in self._waiting:
            self.sink.write(output)
        self._waiting = []
        if self._last and isinstance(self.sink, IdempotentSink):
            self.sink.finish()
        if isinstance(self.sink, Flushable):
            self.sink.flush()
        return any_

    def close(self) -> None:
        """What no checkpoint has is not handed on: a run that goes on makes it again."""
        if not self._last and isinstance(self.sink, Formatting):
            self.sink.drop()
        self.sink.close()
