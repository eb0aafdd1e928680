"""WebSocket (websockets): what a server sends as a source, and messages to it as a sink (RFC 6455)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from typing import Any

from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidStatus
from websockets.sync.client import ClientConnection, connect

from squall.errors import SourceError
from squall.rdf import Event
from squall.stages import Ledger
from squall.streams.address import Address
from squall.streams.formats import LONGEST
from squall.streams.live.base import Lost
from squall.streams.live.messages import Message, MessageSink, MessageSource
from squall.streams.live.web import Target, target

_BLOCK = 0.2  # seconds that one look for a message takes
_NORMAL = 1000  # the status of a connection that has served its purpose
_REFUSED = range(400, 500)


class WebSocketSource(MessageSource):
    """``ws://host/path`` and ``wss:``: each message of the server is one, be it text or binary.

    ``send``: a text that is sent first, to subscribe to something. A server that closes normally (1000) ends the
    source, unless ``reconnect=yes``. What has been read cannot be read again. A server that sends too fast has to wait.
    """

    options = ("send", "reconnect")

    def __init__(self, address: Address, ledger: Ledger, time: int = 0) -> None:
        self.target, address = target(address)
        super().__init__(address, ledger, time)
        self.scheme = address.scheme
        self.first = address.get("send")
        self.reconnects = address.flag("reconnect")
        self._count = 0

    def receive(self) -> Iterator[Sequence[Event]]:
        try:
            with _connected(self.scheme, self.target) as connection:
                if self.first:
                    connection.send(self.first)
                yield ()
                while not self.stopped.is_set():
                    if messages := self._messages(connection):
                        yield self.events(messages)
        except ConnectionClosed as error:
            if self.reconnects or error.rcvd is None or error.rcvd.code != _NORMAL:
                raise Lost(str(error)) from error
        except InvalidStatus as error:
            if error.response.status_code in _REFUSED:
                raise SourceError(f"`{self.uri}` cannot be read: {error}") from error
            raise Lost(str(error)) from error
        except (OSError, InvalidHandshake) as error:
            raise Lost(str(error) or type(error).__name__) from error

    def acknowledge(self, position: str) -> None:
        """See `squall.streams.files.Acknowledging`: the server does not ask."""

    def close(self) -> None:
        pass

    def _messages(self, connection: ClientConnection) -> list[Message]:
        try:
            data = connection.recv(_BLOCK, decode=False)
        except TimeoutError:
            return []
        self._count += 1
        return [Message(bytes(data), self.uri, f"message {self._count}")]


class WebSocketSink(MessageSink):
    """``ws://host/path`` and ``wss:``: a message for each output or evaluation, of text unless the format is none.

    A message that meets a connection which is lost is sent on the next one. One that was on its way then may be lost.
    """

    def __init__(self, address: Address) -> None:
        self.target, address = target(address)
        super().__init__(address)
        self.scheme = address.scheme
        self._connection: Any = None
        self._open = ExitStack()

    def start(self, resume: bool = False, prompt: bool = False) -> None:
        try:
            self._connect()
        except (OSError, InvalidHandshake) as error:
            self.refused(error)

    def send(self, data: bytes) -> None:
        self.insist(lambda: self._sent(data))

    def flush(self) -> None:
        pass

    def leave(self) -> None:
        self._open.close()

    def _connect(self) -> None:
        self._open.close()
        self._connection = self._open.enter_context(_connected(self.scheme, self.target))

    def _sent(self, data: bytes) -> Exception | None:
        try:
            if self._connection is None:
                self._connect()
            self._connection.send(data if self.binary else data.decode())
        except (OSError, InvalidHandshake, ConnectionClosed) as error:
            self._connection = None
            return error
        return None


def _connected(scheme: str, target: Target) -> Any:
    """A context in which there is a connection."""
    uri = f"{scheme}://{target.host}{target.path}"
    return connect(uri, additional_headers=target.headers, max_size=LONGEST, ping_timeout=60, proxy=None)
