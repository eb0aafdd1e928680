"""MQTT 5 (paho-mqtt): topics of a broker as sources and sinks.

Specification: https://docs.oasis-open.org/mqtt/mqtt/v5.0/mqtt-v5.0.html
"""

from __future__ import annotations

import hashlib
import re
import socket
import threading
import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

from paho.mqtt.client import Client, MQTTMessage, MQTTMessageInfo, error_string
from paho.mqtt.enums import CallbackAPIVersion, MQTTErrorCode, MQTTProtocolVersion
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties
from paho.mqtt.subscribeoptions import SubscribeOptions

from squall.contracts import DeadLetterLedger
from squall.errors import SourceError, UsageError
from squall.rdf import Event
from squall.streams.address import Address, Endpoint
from squall.streams.live.base import ConnectionLost
from squall.streams.live.buffer import Buffer
from squall.streams.live.messages import IDENTITY, Message, MessageSink, MessageSource

CONNECT_TIMEOUT_S = 10.0
"""How many seconds a broker has by default to answer."""
CLOSE_TIMEOUT_S = 1.0
"""How many seconds a broker has by default to read the end of a session."""
_SESSION_EXPIRY_S = 24 * 3600
"""How long the broker keeps the session of a client that has a name."""
_MAX_INFLIGHT = 65535
"""The number of unacknowledged messages that the protocol allows."""
_FILTER = re.compile(r"([^+#/]*/|\+/)*([^+#/]*|\+|#)")
"""A topic filter (section 4.7.1 of the specification)."""
_TAKEN_OVER = 0x8E
"""The reason code of a broker that ends a connection because there is a new one of the same client name."""
_MAX_SOURCE_QOS = 1
"""The highest quality of service of what a broker sends to a source.

The handshake of QoS 2 makes a client that is killed lose messages, unless it logs all that it receives. A source of QoS
1 recognises what comes again instead (`_Session`).
"""
_RETAINED_OF_NEW_SUBSCRIPTION = 1
"""The retain handling of a subscription that sends retained messages only if it did not exist (section 3.8.3.1)."""
_DIGEST_BYTES = 8
_MAX_UNCONFIRMED = 1000
"""The number of messages of a sink that the broker may not have confirmed yet."""


class MqttSource(MessageSource):
    """``mqtt://host:port/topic`` (``mqtts:`` with TLS): the messages of a topic of a broker.

    The default ports are 1883 and 8883. The topic may have wildcards.

    ``qos`` (1): the highest quality of service. Of QoS 1 and 2, at most ``buffer`` messages are in flight, and each is
    acknowledged when it has been processed. If lateness buffers more events than these, the source stalls, so
    ``buffer`` must be large enough. Messages of QoS 0 that arrive while ``buffer`` messages wait are dropped, and are
    dead letters. ``client``: a name, by which the broker keeps unacknowledged messages for a day. What it sends again
    although it has been output before is a duplicate, and is skipped. The source is not replayable.
    """

    options = ("buffer", "qos", "client")

    def __init__(
        self,
        address: Address,
        ledger: DeadLetterLedger,
        time: int = 0,
        *,
        connect_timeout: float = CONNECT_TIMEOUT_S,
        close_timeout: float = CLOSE_TIMEOUT_S,
    ) -> None:
        super().__init__(address, ledger, time)
        self.connect_timeout, self.close_timeout = connect_timeout, close_timeout
        self.endpoint, self.tls = _endpoint(address)
        if not _FILTER.fullmatch(self.endpoint.path):
            hint = "`+` stands for a level, and `#`, at the end, for all that are left"
            raise UsageError(f"`{self.uri}` has a wildcard in its topic that is no level of it", hint=hint)
        self.qos = _qos(address)
        self.client = address.get("client")
        if self.qos and self.client:
            self.risk = ""
        self.buffer = min(self.buffer, _MAX_INFLIGHT)
        self._session = _Session(self.buffer) if self.qos and self.client else None
        self._waiting: Buffer[Any] = Buffer(2 * self.buffer)
        self._lock = threading.Lock()
        self._count = 0
        self._unacknowledged: deque[tuple[int, Any, int, int]] = deque()
        """The number, connection, identifier and QoS of each message that has been output."""
        self._client: Any = None

    def receive(self) -> Iterator[Sequence[Event]]:
        self._waiting = Buffer(2 * self.buffer)
        client = self._connected()
        if self.stopped.is_set():
            self._waiting.close()
        timeout: float | None = self.connect_timeout
        try:
            while received := self._waiting.take(timeout):
                timeout = None
                if any(not isinstance(item, Exception) for item in received):
                    yield self._batch([item for item in received if isinstance(item, MQTTMessage)])
                for item in received:
                    if isinstance(item, Exception):
                        raise item
            if timeout is not None and not self.stopped.is_set():
                raise ConnectionLost("the broker does not answer")
        except (ConnectionLost, SourceError):
            client.disconnect()
            client.loop_stop()
            raise

    def interrupt(self) -> None:
        self._waiting.close()

    def current_offset(self) -> Any:
        """Returns the messages that may come again although they have been output
        (`squall.streams.sources.files.Resumable`); None if nothing comes again."""
        if self._session is None:
            return None
        with self._lock:
            return self._session.snapshot()

    def resume(self, state: Any) -> None:
        if self._session is not None and state is not None:
            self._session.restore(state)

    def acknowledge(self, position: str) -> None:
        """Acknowledges messages up to a position. The broker sends those of earlier connections again."""
        with self._lock:
            while self._unacknowledged and self._unacknowledged[0][0] <= int(position):
                _, client, mid, qos = self._unacknowledged.popleft()
                if client is self._client:
                    client.ack(mid, qos)

    def close(self) -> None:
        """Closes the connection."""
        if self._client is not None:
            self._client.disconnect()
            self._client.loop_stop()

    def _connected(self) -> Client:
        client = Client(CallbackAPIVersion.VERSION2, self.client, protocol=MQTTProtocolVersion.MQTTv5,
                        reconnect_on_failure=False, manual_ack=True)  # fmt: skip
        client.on_connect = self._on_connect
        client.on_subscribe = self._on_subscribe
        client.on_message = self._on_message
        client.on_disconnect = self._on_disconnect
        self._client = client
        properties = Properties(PacketTypes.CONNECT)
        properties.ReceiveMaximum = self.buffer
        if self.client:
            properties.SessionExpiryInterval = _SESSION_EXPIRY_S
        _connect(
            client,
            self.endpoint,
            self.tls,
            self.close_timeout,
            clean_start=not self.client,
            properties=properties,
        )
        return client

    def _batch(self, messages: Sequence[MQTTMessage]) -> list[Event]:
        new = [parsed for message in messages if (parsed := self._message(message)) is not None]
        events = self.events(new)
        with self._lock:
            self.reached = str(self._count)
        return events

    def _message(self, message: MQTTMessage) -> Message | None:
        """Returns a message, or None if it is a duplicate, which only needs an acknowledgement."""
        with self._lock:
            self._count += 1
            if message.qos:
                self._unacknowledged.append((self._count, self._client, message.mid, message.qos))
                if self._session is not None and not self._session.add(message):
                    return None
            return Message(message.payload, self._place(message), f"message {self._count}")

    def _place(self, message: MQTTMessage) -> str:
        return f"mqtt://{self.endpoint.host}:{self.endpoint.port}/{message.topic}"

    def _on_connect(self, client: Client, _: Any, flags: Any, reason: Any, ___: Any) -> None:
        if reason.is_failure:
            self._waiting.put(ConnectionLost(str(reason)))
            return
        qos = min(self.qos, _MAX_SOURCE_QOS)
        with self._lock:
            resumes = self._session is not None and self._session.connect(flags.session_present)
        handling = _RETAINED_OF_NEW_SUBSCRIPTION if resumes else SubscribeOptions.RETAIN_SEND_ON_SUBSCRIBE
        client.subscribe(self.endpoint.path, options=SubscribeOptions(qos, retainHandling=handling))

    def _on_subscribe(self, client: Client, _: Any, __: Any, reasons: Any, ___: Any) -> None:
        if reasons[0].is_failure:
            self._waiting.put(SourceError(f"`{self.uri}` cannot be subscribed to: {reasons[0]}"))
        else:
            self._waiting.put(_SUBSCRIBED)

    def _on_message(self, client: Client, _: Any, message: MQTTMessage) -> None:
        if message.qos:
            self._waiting.put(message)  # there is room: at most half as many are in flight
        elif not self._waiting.offer(message, self.buffer) and not self.stopped.is_set():
            self.drop(Message(message.payload, self._place(message), "a message of QoS 0"))

    def _on_disconnect(self, client: Client, _: Any, __: Any, reason: Any, ___: Any) -> None:
        if reason.value == _TAKEN_OVER:
            hint = "each run has a name of its own: `client=NAME`"
            self._waiting.put(SourceError(f"`{self.uri}`: another client has taken over its name", hint=hint))
        else:
            self._waiting.put(ConnectionLost(str(reason)))


_SUBSCRIBED = "subscribed"


class _Session:
    """The messages of a broker's session that have been output, and that the broker may send again.

    A broker sends the messages again that have not been acknowledged, with the same packet identifier, marked as
    duplicates (section 4.4 of the specification). If such a message has been output before, also by an earlier process
    whose checkpoint has it, it must not be processed again. A message of the same identifier, topic and content is
    taken for the same one, unless the broker has sent another one with this identifier meanwhile.

    Args:
        size: The number of messages in flight. As they are acknowledged in order, no earlier message comes again.
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._digests: dict[int, str] = {}
        """The digest of each message by its packet identifier, in the order of output."""
        self._is_new = True
        """Whether nothing of the session has been output."""

    def snapshot(self) -> Any:
        """Returns the messages as a JSON value, or None if nothing has been output."""
        return None if self._is_new else {"messages": list(self._digests.items())}

    def restore(self, state: Any) -> None:
        self._digests, self._is_new = dict(state["messages"]), False

    def connect(self, is_present: bool) -> bool:
        """Returns whether a connection resumes the session. A new session repeats nothing.

        Args:
            is_present: Whether the broker has the session.
        """
        if not is_present:
            self._digests, self._is_new = {}, True
        return not self._is_new

    def add(self, message: MQTTMessage) -> bool:
        """Adds a message that is output. Returns False if it has been output before."""
        digest = _digest(message)
        is_duplicate = message.dup and self._digests.get(message.mid) == digest
        self._digests.pop(message.mid, None)
        self._digests[message.mid] = digest
        if len(self._digests) > self._size:
            del self._digests[next(iter(self._digests))]
        self._is_new = False
        return not is_duplicate


def _digest(message: MQTTMessage) -> str:
    topic = message.topic.encode()
    content = b"%d %b%b" % (len(topic), topic, message.payload)
    return hashlib.blake2b(content, digest_size=_DIGEST_BYTES).hexdigest()


class MqttSink(MessageSink):
    """``mqtt://host:port/topic``: sends a message to a broker for each output or evaluation, with ``qos`` (1).

    With ``retain=yes`` the broker keeps the last one. Messages that the broker has not confirmed are sent again on the
    next connection. With a checkpoint, the user property ``squall-id`` is unique for each message.
    """

    options = ("qos", "retain")

    def __init__(
        self,
        address: Address,
        *,
        connect_timeout: float = CONNECT_TIMEOUT_S,
        close_timeout: float = CLOSE_TIMEOUT_S,
    ) -> None:
        super().__init__(address)
        self.connect_timeout, self.close_timeout = connect_timeout, close_timeout
        self.endpoint, self.tls = _endpoint(address)
        if {"+", "#"} & set(self.endpoint.path):
            raise UsageError(f"`{self.uri}` has a wildcard in its topic", hint="name the topic that is written to")
        self.qos = _qos(address)
        self.retain = address.flag("retain")
        self._sent: deque[MQTTMessageInfo] = deque()
        self._answered = threading.Event()
        self._refusal: object = "the broker does not answer"
        """The reason why there has been no connection yet, or None if there has been one."""
        self._client: Client | None = None

    def start(self, resume: bool = False, prompt: bool = False) -> None:
        client = Client(CallbackAPIVersion.VERSION2, protocol=MQTTProtocolVersion.MQTTv5)
        client.reconnect_delay_set(1, 5)
        client.on_connect = self._on_connect
        try:
            _connect(client, self.endpoint, self.tls, self.close_timeout)
        except ConnectionLost as error:
            self.fail(error)
        self._client = client
        self._answered.wait(self.connect_timeout)
        if self._refusal is not None:
            self.fail(self._refusal)

    def _on_connect(self, client: Client, _: Any, __: Any, reason: Any, ___: Any) -> None:
        if self._refusal is not None:
            self._refusal = reason if reason.is_failure else None
        self._answered.set()

    def send(self, data: bytes) -> None:
        self.retry_until_done(lambda: None if self._published(data) else "there is no connection")
        if len(self._sent) > _MAX_UNCONFIRMED:
            self._confirm()

    def _published(self, data: bytes) -> bool:
        """Publishes a message. Returns whether it is in flight, or will be on the next connection."""
        assert self._client is not None
        properties = None
        if self.identity:
            properties = Properties(PacketTypes.PUBLISH)
            properties.UserProperty = (IDENTITY, self.identity)
        info = self._client.publish(self.endpoint.path, data, self.qos, self.retain, properties)
        if info.rc == MQTTErrorCode.MQTT_ERR_NO_CONN and self.qos == 0:
            return False  # the client keeps only messages of a higher QoS
        if info.rc not in (MQTTErrorCode.MQTT_ERR_SUCCESS, MQTTErrorCode.MQTT_ERR_NO_CONN):
            self.fail(error_string(info.rc))
        info.rc = MQTTErrorCode.MQTT_ERR_SUCCESS
        self._sent.append(info)
        return True

    def flush(self) -> None:
        while self._sent:
            self._confirm()

    def disconnect(self) -> None:
        if self._client is not None:
            self._client.disconnect()
            self._client.loop_stop()

    def _confirm(self) -> None:
        """Waits for the confirmation of the oldest message, which the client sends again on each new connection."""
        info = self._sent.popleft()
        info.wait_for_publish(self.retry / 1000)
        if not info.is_published():
            self.fail("the broker does not confirm it")


def _endpoint(address: Address) -> tuple[Endpoint, bool]:
    tls = address.scheme == "mqtts"
    endpoint = address.endpoint(8883 if tls else 1883)
    if not endpoint.path:
        raise UsageError(f"`{address.text}` names no topic", hint=f"write `{address.scheme}://HOST/TOPIC`")
    return endpoint._replace(host=endpoint.host or "localhost"), tls


def _qos(address: Address) -> int:
    qos = address.integer("qos", 1)
    if qos not in (0, 1, 2):
        raise UsageError(f"`qos={qos}` in `{address.text}` is not 0, 1 or 2")
    return qos


def _connect(client: Client, endpoint: Endpoint, tls: bool, close_timeout: float, **options: Any) -> None:
    """Connects, and starts the thread of the client. Raises ConnectionLost."""
    client.on_socket_close = partial(_close_socket, close_timeout)
    if endpoint.user is not None:
        client.username_pw_set(endpoint.user, endpoint.password)
    if tls:
        client.tls_set()
    try:
        client.connect(endpoint.host, endpoint.port, **options)
    except OSError as error:
        raise ConnectionLost(error.strerror or str(error)) from error
    client.loop_start()


def _close_socket(timeout: float, client: Client, _: Any, connection: socket.socket) -> None:
    """Waits until the other side has read the acknowledgements and the end of the session, and closed the connection.

    If this side closed first, TCP would discard them if it has unread data (RFC 1122, section 4.2.2.13), and of a topic
    there may always be some. An error means that the connection has ended, or that it takes too long. Then the broker
    sends unacknowledged messages again.
    """
    end = time.monotonic() + timeout
    with suppress(OSError):
        connection.shutdown(socket.SHUT_WR)
        while (remaining := end - time.monotonic()) > 0:
            connection.settimeout(remaining)
            if not connection.recv(65536):
                break
