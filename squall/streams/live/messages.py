"""Messages: what brokers bring and take, each of them a document in a format."""

from __future__ import annotations

import io
import time
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import ClassVar, NamedTuple, NoReturn

from squall.errors import SinkError, UsageError
from squall.rdf import Event
from squall.stages import Ledger, Output
from squall.streams.address import Address
from squall.streams.evaluations import Evaluation, Gathering
from squall.streams.live.base import LiveSource, delays
from squall.streams.reading import decoded
from squall.streams.results import DOCUMENTS
from squall.streams.sinks import EVALUATIONS, LINES

_SHOWN = 500  # characters of a message that the ledger keeps

CONTENT_TYPES = {
    "nt": "application/n-triples",
    "nq": "application/n-quads",
    "ndjson": "application/x-ndjson",
    "ndjson-evaluations": "application/x-ndjson",
    "srj": "application/sparql-results+json",
    "srx": "application/sparql-results+xml",
    "srcsv": "text/csv",
    "srtsv": "text/tab-separated-values",
}
"""Of what sinks write, where there is one; of the others it is ``text/plain``."""


class Message(NamedTuple):
    """What came at once. place: where it came from, for the ledger; which: what tells it from others that did, for
    people, and for its blank nodes, which are its own."""

    data: bytes
    place: str
    which: str


class MessageSource(LiveSource):
    """A source of messages. Those at hand are a batch, ``buffer`` (1000) at most."""

    options: ClassVar[tuple[str, ...]] = ("buffer",)

    def __init__(self, address: Address, ledger: Ledger, time: int = 0) -> None:
        super().__init__(address, ledger, time)
        self.buffer = address.positive("buffer", 1000)
        self.reached = ""

    def position(self) -> str:
        """See `squall.streams.files.Acknowledging`."""
        return self.reached

    def events(self, messages: Sequence[Message]) -> list[Event]:
        """The events of messages."""
        return [event for message in messages for batch in self._read(message) for event in batch]

    def drop(self, message: Message) -> None:
        """Counts a message that there is no room for."""
        reason = f"{message.which}: more than buffer={self.buffer} messages wait"
        text = message.data[:_SHOWN].decode("utf-8", "replace")
        self.ledger.record("dropped", message.place, None, reason, text)

    def _read(self, message: Message) -> Iterator[Sequence[Event]]:
        self.reading.bytes += len(message.data)
        name = f"{message.place} {message.which}"
        ledger = _Within(self.ledger, message)
        return decoded(io.BytesIO(message.data), name, self.format, self.settings, ledger, self.reading)


class _Within:
    """The ledger for what is in a message: its place, and which one it is."""

    def __init__(self, ledger: Ledger, message: Message) -> None:
        self._ledger = ledger
        self._message = message

    def record(self, cause: str, source: str, line: int | None, reason: str, text: str) -> None:
        shown = text[:_SHOWN]
        self._ledger.record(cause, self._message.place, line, f"{self._message.which}: {reason}", shown)


class MessageSink:
    """A sink that sends a message for each output, or for each evaluation, as the format has it."""

    options: ClassVar[tuple[str, ...]] = ()
    """Options besides ``format`` and ``retry``."""

    def __init__(self, address: Address) -> None:
        address.only("format", "retry", *self.options)
        self.uri = address.text
        self.format = address.get("format", "nt")
        self.retry = address.integer("retry", 60_000)
        self._encode, self._rest = _encoding(self.format)

    @abstractmethod
    def start(self, resume: bool = False, prompt: bool = False) -> None:
        """Connects. Raises SinkError."""

    @abstractmethod
    def send(self, data: bytes) -> None:
        """Hands on one message. Raises SinkError."""

    @abstractmethod
    def flush(self) -> None:
        """See `squall.streams.sinks.Settling`."""

    @abstractmethod
    def leave(self) -> None:
        """Ends the connection."""

    def write(self, output: Output) -> None:
        for data in self._encode(output):
            self.send(data)

    def close(self) -> None:
        try:
            for data in self._rest():
                self.send(data)
            self.flush()
        finally:
            self.leave()

    def insist(self, attempt: Callable[[], object]) -> None:
        """Makes an attempt again and again, until it says that nothing is in the way (None) or it has taken too long
        (`retry`). Raises SinkError then."""
        left = delays(self.retry / 1000)
        while (problem := attempt()) is not None:
            if (delay := next(left, None)) is None:
                self.refused(problem)
            time.sleep(delay)

    def refused(self, why: object) -> NoReturn:
        raise SinkError(f"`{self.uri}` cannot be written: {why}")


def _encoding(format: str) -> tuple[Callable[[Output], list[bytes]], Callable[[], list[bytes]]]:
    """What makes messages of an output, and of what is left in the end. Raises UsageError if a format has none."""
    if format in LINES:
        line = LINES[format]
        return lambda output: [data] if (data := line(output).rstrip(b"\n")) else [], list
    if (made := {**DOCUMENTS, **EVALUATIONS}.get(format)) is None:
        known = ", ".join((*LINES, *DOCUMENTS, *EVALUATIONS))
        raise UsageError(f"messages cannot be written as `{format}`", hint=f"formats: {known}")
    gathering, document = Gathering(), made

    def documents(evaluations: list[Evaluation]) -> list[bytes]:
        return [document(one).rstrip(b"\n") for one in evaluations]

    return lambda output: documents(gathering.add(output)), lambda: documents(gathering.end())
