"""Messages: what brokers bring and take, each of them a document in a format."""

from __future__ import annotations

import io
import time
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, ClassVar, NamedTuple, NoReturn, TypeVar

from squall.contracts import DeadLetterLedger, Output
from squall.errors import SinkError, UsageError
from squall.rdf import Event
from squall.streams.address import Address
from squall.streams.dead_letters import SHOWN, shown
from squall.streams.formats import BY_NAME, Format, check_library
from squall.streams.formats.evaluations import Evaluation, Gathering
from squall.streams.formats.output_formats import BINARY, EVALUATIONS, LINES, MESSAGES
from squall.streams.formats.reading import Reading, Settings, decoded
from squall.streams.formats.results import DOCUMENTS
from squall.streams.live.base import LiveSource, delays

T = TypeVar("T")
IDENTITY = "squall-id"
"""Where a message says its `MessageSink.identity`, if its protocol has no name of its own for that."""

CONTENT_TYPES = {
    "nt": "application/n-triples",
    "nt-messages": "application/n-triples",
    "nq": "application/n-quads",
    "nq-messages": "application/n-quads",
    "trig-messages": "application/trig",
    "jelly": BY_NAME["jelly"].media_type,
    "jelly-messages": BY_NAME["jelly"].media_type,
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

    def __init__(self, address: Address, ledger: DeadLetterLedger, time: int = 0) -> None:
        super().__init__(address, ledger, time)
        self.buffer = address.integer("buffer", 1000, least=1)
        self.is_limited = "buffer" in dict(address.options)
        """Whether the address says how many there may be in a batch."""
        self.reached = ""

    def position(self) -> str:
        """See `squall.streams.sources.files.Acknowledging`."""
        return self.reached

    def events(self, messages: Sequence[Message]) -> list[Event]:
        """The events of messages."""
        return [event for message in messages for batch in self._read(message) for event in batch]

    def drop(self, message: Message) -> None:
        """Counts a message that there is no room for."""
        reason = f"{message.which}: more than buffer={self.buffer} messages wait"
        text = shown(message.data)
        self.ledger.record("dropped", message.place, None, reason, text)

    def _read(self, message: Message) -> Iterator[Sequence[Event]]:
        self.reading.bytes += len(message.data)
        return read(message, self.format, self.settings, self.ledger, self.reading)


def read(
    message: Message, format: Format, settings: Settings, ledger: DeadLetterLedger, reading: Reading
) -> Iterator[Sequence[Event]]:
    """The events of a message."""
    name = f"{message.place} {message.which}"
    return decoded(io.BytesIO(message.data), name, format, settings, _Within(ledger, message), reading)


class _Within:
    """The ledger for what is in a message: its place, and which one it is."""

    def __init__(self, ledger: DeadLetterLedger, message: Message) -> None:
        self._ledger = ledger
        self._message = message

    def record(self, cause: str, source: str, line: int | None, reason: str, text: str) -> None:
        excerpt = text[:SHOWN]
        self._ledger.record(cause, self._message.place, line, f"{self._message.which}: {reason}", excerpt)


class MessageSink:
    """A sink that sends a message for each output, or for each evaluation, as the format has it."""

    options: ClassVar[tuple[str, ...]] = ()
    """Options besides ``format`` and ``retry``."""

    def __init__(self, address: Address) -> None:
        address.only("format", "retry", *self.options)
        self.uri = address.text
        self.format = address.get("format", "nt")
        self.retry = address.integer("retry", 60_000, least=0)
        self._messages = _messages(self.format)
        self.binary = self.format in BINARY
        self.delivery = ""
        """What tells the delivery of which a message is from all others."""
        self.number = 0
        """Which message of its delivery the one is that is being sent, from 1."""

    @abstractmethod
    def start(self, resume: bool = False, prompt: bool = False) -> None:
        """Connects. Raises SinkError."""

    @abstractmethod
    def send(self, data: bytes) -> None:
        """Hands on one message. Raises SinkError."""

    @abstractmethod
    def flush(self) -> None:
        """See `squall.streams.sinks.Flushable`."""

    @abstractmethod
    def leave(self) -> None:
        """Ends the connection."""

    @property
    def identity(self) -> str:
        """What tells the message that is being sent from all others, also when it is sent again by another process;
        ``""``: nothing does."""
        return f"{self.delivery}-{self.number}" if self.delivery else ""

    def deliver(self, name: str, number: int) -> None:
        """See `squall.streams.sinks.outbox.IdempotentSink`."""
        self.delivery, self.number = f"{name}-{number}", 0

    def write(self, output: Output) -> None:
        self._send(self._messages.add(output))

    def finish(self) -> None:
        """Sends what there is of evaluations, complete or not."""
        self._send(self._messages.end())

    def held(self) -> Any:
        """See `squall.streams.sinks.Formatting`."""
        return self._messages.save()

    def hold(self, buffered: Any) -> None:
        self._messages.recover(buffered)

    def drop(self) -> None:
        self._messages.end()

    def close(self) -> None:
        try:
            self.finish()
            self.flush()
        finally:
            self.leave()

    def _send(self, messages: Sequence[bytes]) -> None:
        for data in messages:
            self.number += 1
            self.send(data)

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


class _Each:
    """A message for each output: a line of a format, or what else `made` makes of it."""

    def __init__(self, encode: Callable[[Output], bytes]) -> None:
        self._made = encode

    def add(self, output: Output) -> list[bytes]:
        return [data] if (data := self._made(output)) else []

    def end(self) -> list[bytes]:
        return []

    def save(self) -> None:
        return None

    def recover(self, state: None) -> None:
        pass


class _Documents:
    """A message for each evaluation."""

    def __init__(self, encode: Callable[[Evaluation], bytes]) -> None:
        self._document = encode
        self._gathering = Gathering()
        self.save = self._gathering.save
        self.recover = self._gathering.recover

    def add(self, output: Output) -> list[bytes]:
        return self._made(self._gathering.add(output))

    def end(self) -> list[bytes]:
        return self._made(self._gathering.end())

    def _made(self, evaluations: Sequence[Evaluation]) -> list[bytes]:
        return [data for evaluation in evaluations if (data := self._document(evaluation))]


def _messages(format: str) -> _Each | _Documents:
    """What makes messages of outputs. Raises UsageError if a format has none."""
    if format in LINES:
        return _Each(partial(_bare, LINES[format]))
    if format in BINARY:
        check_library(format)
        from squall.streams.formats import jelly

        return _Each(jelly.of_output) if format == "jelly" else _Documents(jelly.of_evaluation)
    documents = {**DOCUMENTS, **EVALUATIONS, **MESSAGES}
    if format not in documents:
        formats = ", ".join((*LINES, *BINARY, *documents))
        raise UsageError(f"messages cannot be written as `{format}`", hint=f"formats: {formats}")
    return _Documents(partial(_bare, documents[format]))


def _bare(encode: Callable[[T], bytes], of: T) -> bytes:
    """What is made of something, without the end of its last line."""
    return encode(of).rstrip(b"\n")
