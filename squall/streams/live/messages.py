"""Sources and sinks of messages, as brokers carry them: each message is a document in a format."""

from __future__ import annotations

import io
import time
from abc import abstractmethod
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import partial
from typing import Any, ClassVar, NamedTuple, NoReturn, TypeVar

from squall.contracts import DeadLetterLedger, Output
from squall.errors import SinkError, UsageError
from squall.rdf import Event
from squall.streams.address import Address
from squall.streams.dead_letters import MAX_TEXT_LENGTH, excerpt
from squall.streams.formats import BY_NAME, Format, check_library
from squall.streams.formats.evaluations import (
    NO_DECLARATIONS,
    Declarations,
    Evaluation,
    EvaluationCollector,
    query_in_log,
    query_of,
)
from squall.streams.formats.output_formats import (
    BINARY,
    EVALUATIONS,
    FACTS,
    LINES,
    LOGS,
    MESSAGES,
    line_function,
    log_encoder,
)
from squall.streams.formats.reading import ReadProgress, Settings, decode
from squall.streams.formats.result_sets import ResultSets
from squall.streams.formats.results import DOCUMENTS
from squall.streams.live.base import LiveSource, delay_after, delays

T = TypeVar("T")
IDENTITY = "squall-id"
"""The header of a message that has its `MessageSink.identity`, if the protocol has none of its own for that."""

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
    "ndjson-values": "application/x-ndjson",
    "csv": "text/csv",
    "csv-terms": "text/csv",
    "tsv": "text/tab-separated-values",
    "tsv-terms": "text/tab-separated-values",
    "srcsv": "text/csv",
    "srtsv": "text/tab-separated-values",
    "ru": "application/sparql-update",
}
"""Media types by the format that a sink writes. That of other formats is ``text/plain``."""


class Message(NamedTuple):
    """One received message.

    Attributes:
        data: Its content.
        place: The topic or address from which it came, for dead letters.
        which: A text that distinguishes it from other messages of that place, for people, and for its blank nodes,
            which are its own.
    """

    data: bytes
    place: str
    which: str


class MessageSource(LiveSource):
    """A source of messages. The messages that are available form a batch, of at most ``buffer`` (1000)."""

    options: ClassVar[tuple[str, ...]] = ("buffer",)

    def __init__(self, address: Address, ledger: DeadLetterLedger, time: int = 0) -> None:
        super().__init__(address, ledger, time)
        self.buffer = address.integer("buffer", 1000, least=1)
        self.is_limited = "buffer" in dict(address.options)
        """Whether the address sets the size of a batch."""
        self.reached = ""

    def position(self) -> str:
        """Returns the position behind the last batch (`squall.streams.sources.files.Acknowledging`)."""
        return self.reached

    def acknowledge(self, position: str) -> None:
        """Acknowledges what has been processed, if the other side expects that."""

    def close(self) -> None:
        """Closes the source."""

    def events(self, messages: Sequence[Message], base: str | None = None) -> list[Event]:
        """Parses messages to events. Relative IRIs in them are resolved against a base."""
        return [event for message in messages for batch in self._read(message, base) for event in batch]

    def drop(self, message: Message) -> None:
        """Records a message for which the buffer has no room as a dead letter."""
        reason = f"{message.which}: more than buffer={self.buffer} messages wait"
        self.ledger.record("dropped", message.place, None, reason, excerpt(message.data))

    def _read(self, message: Message, base: str | None) -> Iterator[Sequence[Event]]:
        self.reading.bytes += len(message.data)
        return read(message, self.format, self.settings, self.ledger, self.reading, base)


def read(
    message: Message,
    format: Format,
    settings: Settings,
    ledger: DeadLetterLedger,
    reading: ReadProgress,
    base: str | None = None,
) -> Iterator[Sequence[Event]]:
    """Parses a message to batches of events."""
    name = f"{message.place} {message.which}"
    own_ledger = _MessageLedger(ledger, message)
    return decode(io.BytesIO(message.data), name, format, settings, own_ledger, reading, base=base)


class _MessageLedger:
    """A ledger that adds the place and the identity of a message to the dead letters in it."""

    def __init__(self, ledger: DeadLetterLedger, message: Message) -> None:
        self._ledger = ledger
        self._message = message

    def record(self, cause: str, source: str, line: int | None, reason: str, text: str) -> None:
        explanation = f"{self._message.which}: {reason}"
        self._ledger.record(cause, self._message.place, line, explanation, text[:MAX_TEXT_LENGTH])


class MessageSink:
    """A sink that sends one message for each output, or for each evaluation, depending on the format."""

    options: ClassVar[tuple[str, ...]] = ()
    """Options besides ``format`` and ``retry``."""

    def __init__(self, address: Address) -> None:
        address.only("format", "retry", *self.options)
        self.uri = address.text
        self.format = address.get("format", "nt")
        self.retry = address.milliseconds("retry", 60_000)
        self._messages = _messages(self.format)
        self.binary = self.format in BINARY
        self.delivery = ""
        """The identity of the delivery to which the next messages belong; ``""`` if there is none."""
        self.number = 0
        """The number of the current message in its delivery, from 1."""

    def declare(self, declarations: Declarations) -> None:
        """Declares what the outputs are (`squall.streams.sinks.SupportsDeclarations`)."""
        self._messages = _messages(self.format, declarations)

    @abstractmethod
    def start(self, resume: bool = False, prompt: bool = False) -> None:
        """Connects to the server. Raises SinkError if that fails."""

    @abstractmethod
    def send(self, data: bytes) -> None:
        """Sends one message. Raises SinkError if that fails."""

    def flush(self) -> None:
        """Waits until all messages have arrived (`squall.streams.sinks.Flushable`), unless `send` does."""

    @abstractmethod
    def disconnect(self) -> None:
        """Closes the connection."""

    @property
    def identity(self) -> str:
        """The unique identity of the current message, which another process that sends it again repeats.

        It is ``""`` if there is none."""
        return f"{self.delivery}-{self.number}" if self.delivery else ""

    def begin_delivery(self, name: str, number: int) -> None:
        """Begins a delivery (`squall.streams.sinks.outbox.IdempotentSink`)."""
        self.delivery, self.number = f"{name}-{number}", 0

    def write(self, output: Output) -> None:
        self._send(self._messages.add(output))

    def finish(self) -> None:
        """Sends the evaluations that are buffered, complete or not."""
        self._send(self._messages.end())

    def snapshot_buffer(self) -> Any:
        """Returns the buffered outputs (`squall.streams.sinks.BuffersOutputs`)."""
        return self._messages.snapshot()

    def restore_buffer(self, buffered: Any) -> None:
        self._messages.restore(buffered)

    def discard_buffer(self) -> None:
        self._messages.end()

    def close(self) -> None:
        try:
            self.finish()
            self.flush()
        finally:
            self.disconnect()

    def _send(self, messages: Sequence[bytes]) -> None:
        for data in messages:
            self.number += 1
            self.send(data)

    def retry_until_done(self, attempt: Callable[[], object]) -> None:
        """Repeats an attempt until it returns None for success instead of a problem.

        Raises:
            SinkError: It has not succeeded within the time of the option `retry`.
        """
        pauses = delays(self.retry / 1000)
        while (problem := attempt()) is not None:
            if (delay := delay_after(problem, pauses, self.retry / 1000)) is None:
                self.fail(problem)
            time.sleep(delay)

    def fail(self, why: object) -> NoReturn:
        """Raises SinkError for a reason."""
        raise SinkError(f"`{self.uri}` cannot be written: {why}")


class _OutputMessages:
    """An encoder with one message for each output."""

    def __init__(self, encode: Callable[[Output], bytes]) -> None:
        self._encode = encode

    def add(self, output: Output) -> list[bytes]:
        return [data] if (data := self._encode(output)) else []

    def end(self) -> list[bytes]:
        return []

    def snapshot(self) -> None:
        return None

    def restore(self, state: None) -> None:
        pass


class _FactMessages:
    """An encoder with one message for each fact, and for each evaluation of a query, which is a result set.

    Args:
        encode: Encodes the outputs of a message.
        ordered: The queries whose solutions have an order.
    """

    def __init__(self, encode: Callable[[Sequence[Output]], bytes], ordered: Collection[str]) -> None:
        self._encode = encode
        self._result_sets = ResultSets(ordered)
        self.restore = self._result_sets.restore

    def add(self, output: Output) -> list[bytes]:
        return self._encoded(self._result_sets.add(output))

    def end(self) -> list[bytes]:
        return self._encoded(self._result_sets.end())

    def snapshot(self) -> Any:
        return self._result_sets.snapshot() or None

    def _encoded(self, groups: Sequence[Sequence[Output]]) -> list[bytes]:
        return [data for group in groups if (data := self._encode(group))]


class _EvaluationMessages:
    """An encoder with one message for each evaluation. Further arguments are those of `EvaluationCollector`."""

    def __init__(
        self,
        encode: Callable[[Evaluation], bytes],
        query_of: Callable[[Output], str] = query_of,
        ordered: Collection[str] = (),
    ) -> None:
        self._encode = encode
        self._collector = EvaluationCollector(query_of, ordered)
        self.snapshot = self._collector.snapshot
        self.restore = self._collector.restore

    def add(self, output: Output) -> list[bytes]:
        return self._encoded(self._collector.add(output))

    def end(self) -> list[bytes]:
        return self._encoded(self._collector.end())

    def _encoded(self, evaluations: Sequence[Evaluation]) -> list[bytes]:
        return [data for evaluation in evaluations if (data := self._encode(evaluation))]


def _messages(
    format: str, declarations: Declarations = NO_DECLARATIONS
) -> _OutputMessages | _FactMessages | _EvaluationMessages:
    """Returns the encoder of messages in a format.

    Args:
        format: The name of the format.
        declarations: What the program declares of its outputs.

    Raises:
        UsageError: The format cannot be used in messages.
    """
    ordered = declarations.ordered
    if format in BINARY:
        check_library(format)
        from squall.streams.formats import jelly

        if format == "jelly":
            return _FactMessages(jelly.of_outputs, ordered)
        return _EvaluationMessages(jelly.of_evaluation, ordered=ordered)
    if format in LINES:
        line = line_function(format, declarations.is_one_query)
        if format in FACTS:
            return _FactMessages(partial(_without_newline, lambda outputs: b"".join(map(line, outputs))), ordered)
        return _OutputMessages(partial(_without_newline, line))
    documents: dict[str, Callable[[Evaluation], bytes]] = {**DOCUMENTS, **EVALUATIONS, **MESSAGES}
    if format in LOGS:
        return _EvaluationMessages(partial(_without_newline, log_encoder(format, declarations)), query_in_log)
    if format not in documents:
        formats = ", ".join((*LINES, *BINARY, *documents, *LOGS))
        raise UsageError(f"messages cannot be written as `{format}`", hint=f"formats: {formats}")
    return _EvaluationMessages(partial(_without_newline, documents[format]), ordered=ordered)


def _without_newline(encode: Callable[[T], bytes], value: T) -> bytes:
    """Encodes a value, without the end of its last line."""
    return encode(value).rstrip(b"\n")
