"""Redis Streams (redis-py): a stream's entries as messages, alone or in a consumer group.

Commands: https://redis.io/docs/latest/develop/data-types/streams/
"""

from __future__ import annotations

import json
import re
import socket
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

from redis import Redis
from redis.exceptions import ConnectionError, RedisError, TimeoutError

from squall.contracts import DeadLetterLedger
from squall.errors import SourceError, UsageError
from squall.rdf import Event
from squall.streams.address import Address
from squall.streams.live.base import ConnectionLost
from squall.streams.live.messages import Message, MessageSink, MessageSource

_POLL_MS = 200
_REQUEST_TIMEOUT_S = 10.0
_NEW = "$"
_BEGIN = {"new": _NEW, "first": "0-0"}
_ENTRY = re.compile(r"[0-9]+(-[0-9]+)?")
_ENTRIES_PER_WRITE = 500
"""The number of entries that a sink adds at a time, unless each is added at once."""

Entry = tuple[bytes, dict[bytes, bytes] | None]


class RedisSource(MessageSource):
    """``redis://host:port/KEY`` (``rediss:`` with TLS): the entries of a stream, whose ``field`` (data) is a message.

    ``from``: ``new`` (entries that are added from now on), ``first``, or the entry behind which to begin. ``group``:
    the consumers of a group share the entries, and acknowledge them when they have been processed. A new group begins
    at ``from``. By the name ``consumer`` (the machine's name) a consumer gets its unacknowledged entries again. Without
    a group the source is replayable from a position, which is an entry. ``buffer`` entries are requested at a time.
    """

    options = ("buffer", "db", "field", "from", "group", "consumer")
    risk = ""

    def __init__(self, address: Address, ledger: DeadLetterLedger, time: int = 0) -> None:
        super().__init__(address, ledger, time)
        self.key = _key(address)
        self.field = address.get("field", "data").encode()
        self.group = address.get("group")
        self.consumer = address.get("consumer", socket.gethostname())
        if "consumer" in dict(address.options) and not self.group:
            raise UsageError(f"`{self.uri}` has a consumer without a group", hint="add `&group=NAME`")
        begin = address.get("from", "new")
        if begin not in _BEGIN and not _ENTRY.fullmatch(begin):
            raise UsageError(f"`from={begin}` in `{self.uri}` is neither new, nor first, nor the name of an entry")
        self._begin = _BEGIN.get(begin, begin)
        self._last = "" if self.group else self._begin
        """The last entry that was read. With a group, it is ``""`` at the beginning."""
        self._covered = ""
        """The entry up to which an earlier run has processed all."""
        self._reads_pending = bool(self.group)
        """Whether unacknowledged entries of this consumer are still to be read."""
        self._unacknowledged: deque[str] = deque()
        self._redis = _client(address)

    def receive(self) -> Iterator[Sequence[Event]]:
        with self._translated_errors():
            self._prepare()
            yield ()
            while not self.stopped.is_set():
                if entries := self._read_entries():
                    yield self._events(entries)

    def seek(self, position: str) -> None:
        """Begins behind a position (`squall.streams.sources.files.Replayable`).

        The server knows the position of a group. Entries that it delivers again are skipped.
        """
        self.reached = self._covered = position
        if not self.group:
            self._last = position

    def current_offset(self) -> str:
        """Returns the last entry (`squall.streams.sources.files.Resumable`).

        Before anything has been read, the server is asked for the newest entry.
        """
        if self._last == _NEW:
            try:
                with self._translated_errors():
                    self._prepare()
            except ConnectionLost as error:
                raise SourceError(f"`{self.uri}` cannot be read: {error}") from error
        return self.reached

    def beginning(self) -> str:
        """Returns the position at which reading begins (`squall.streams.sources.files.Splittable`)."""
        return self.latest() if self._begin == _NEW else self._begin

    def latest(self, begin: str = "") -> str:
        if begin and self.is_limited:
            entries = self.retry_while_lost(partial(self._behind, begin))
            return entries[-1][0].decode() if entries else begin
        return max(begin or "0-0", self.retry_while_lost(self._newest), key=_order)

    def splits_of(self, begin: str, end: str) -> list[str]:
        return [json.dumps([begin, end])] if _order(begin) < _order(end) else []

    def read_split(self, split: str) -> Iterator[Sequence[Event]]:
        last, end = json.loads(split)
        self.retry_while_lost(partial(self._check_gone, last))
        while _order(last) < _order(end) and (entries := self.retry_while_lost(partial(self._behind, last))):
            last = entries[-1][0].decode()
            yield self._messages([entry for entry in entries if _order(entry[0].decode()) <= _order(end)])

    def resume(self, current_offset: str) -> None:
        if current_offset:
            self.seek(current_offset)

    def acknowledge(self, position: str) -> None:
        """Acknowledges entries up to a position. Without a connection, the next call does it."""
        if not self.group:
            return
        entries = [*self._unacknowledged]
        entries = entries[: entries.index(position) + 1] if position in entries else []
        try:
            if entries:
                self._redis.xack(self.key, self.group, *entries)
        except (ConnectionError, TimeoutError):
            return
        for _ in entries:
            self._unacknowledged.popleft()

    def close(self) -> None:
        self._redis.close()

    def _prepare(self) -> None:
        """Creates the group if there is none, and determines where new entries begin."""
        if self.group:
            groups = {group["name"] for group in self._redis.xinfo_groups(self.key)} if self._exists() else set()
            if self.group.encode() not in groups:
                self._redis.xgroup_create(self.key, self.group, self._begin, mkstream=True)
            self._reads_pending = True
        elif self._last == _NEW:
            self._last = self.reached = self._newest()
        elif self.reached:
            self._check_gone(self.reached)
        else:
            self._redis.ping()  # raises an error if there is no server

    def _newest(self) -> str:
        """Returns the entry that was added last."""
        with self._translated_errors():
            newest: bytes = self._redis.xinfo_stream(self.key)["last-generated-id"] if self._exists() else b"0-0"
        return newest.decode()

    def _exists(self) -> bool:
        return bool(self._redis.exists(self.key))

    def _check_gone(self, last: str) -> None:
        """Records entries behind the last one that have been deleted as a dead letter."""
        with self._translated_errors():
            info = self._redis.xinfo_stream(self.key) if self._exists() else {}
        deleted = info.get("max-deleted-entry-id", b"0-0").decode()
        if _order(deleted) > _order(last):
            reason = f"entries behind {last} have been deleted, the last of them {deleted}"
            self.ledger.record("lost", self._place(), None, reason, "")

    @contextmanager
    def _translated_errors(self) -> Iterator[None]:
        """Translates errors of the client to ConnectionLost and SourceError."""
        try:
            yield
        except (ConnectionError, TimeoutError) as error:
            raise ConnectionLost(str(error)) from error
        except RedisError as error:
            raise SourceError(f"`{self.uri}` cannot be read: {error}") from error

    def _read_entries(self) -> list[Entry]:
        if not self.group:
            return self._behind(self._last, _POLL_MS)
        behind = (self._last or "0-0") if self._reads_pending else ">"
        reply = self._redis.xreadgroup(self.group, self.consumer, {self.key: behind}, self.buffer, _POLL_MS)
        entries = _entries(reply)
        self._reads_pending = self._reads_pending and bool(entries)
        return entries

    def _behind(self, last: str, patience: int | None = None) -> list[Entry]:
        """Returns entries behind one, and waits for the first for `patience` ms (None: not at all)."""
        with self._translated_errors():
            return _entries(self._redis.xread({self.key: last}, self.buffer, patience))

    def _events(self, entries: Sequence[Entry]) -> list[Event]:
        names = [name.decode() for name, _ in entries]
        self._unacknowledged.extend(names if self.group else ())
        self._last = names[-1]
        self.reached = max(self._covered, self._last, key=_order)
        return self._messages([entry for entry in entries if _order(entry[0].decode()) > _order(self._covered)])

    def _messages(self, entries: Sequence[Entry]) -> list[Event]:
        return self.events([self._message(name.decode(), fields or {}) for name, fields in entries])

    def _message(self, name: str, fields: dict[bytes, bytes]) -> Message:
        if self.field not in fields:
            reason = f"entry {name}: it has no field `{self.field.decode()}`"
            self.reading.malformed += 1
            self.ledger.record("malformed", self._place(), None, reason, "")
        return Message(fields.get(self.field, b""), self._place(), f"entry {name}")

    def _place(self) -> str:
        return self.uri.partition("?")[0]


class RedisSink(MessageSink):
    """``redis://host:port/KEY``: an entry for each output or evaluation, in its ``field`` (data).

    ``maxlen``: the approximate number of entries that the stream keeps (0: all). Entries that were being added when a
    connection was lost are added again on the next one, and may be duplicated. With a checkpoint they are not: the key
    ``KEY:squall:NAME``, with the name of the checkpoint's deliveries, has the last entry. It is written in one
    transaction with the entries.
    """

    options = ("db", "field", "maxlen")

    def __init__(self, address: Address) -> None:
        super().__init__(address)
        self.key = _key(address)
        self.field = address.get("field", "data")
        self.most = address.integer("maxlen", 0, least=0) or None
        self._redis = _client(address)
        self._write_size = _ENTRIES_PER_WRITE
        self._waiting: list[tuple[int, bytes]] = []
        """Messages with their numbers."""
        self._last_key = ""

    def begin_delivery(self, name: str, number: int) -> None:
        super().begin_delivery(name, number)
        self._last_key = f"{self.key}:squall:{name}"

    def start(self, resume: bool = False, prompt: bool = False) -> None:
        self._write_size = 1 if prompt else _ENTRIES_PER_WRITE
        try:
            self._redis.ping()
        except RedisError as error:
            self.fail(error)

    def send(self, data: bytes) -> None:
        self._waiting.append((self.number, data))
        if len(self._waiting) >= self._write_size:
            self.flush()

    def flush(self) -> None:
        if self._waiting:
            self.retry_until_done(self._add_waiting)

    def disconnect(self) -> None:
        self._redis.close()

    def _add_waiting(self) -> RedisError | None:
        """Adds the waiting entries. Returns the problem if it may succeed later, or None."""
        try:
            last_number = self._last_number()
            new = [data for number, data in self._waiting if number > last_number]
            with self._redis.pipeline() as adding:  # atomically
                for data in new:
                    adding.xadd(self.key, {self.field: data}, maxlen=self.most)
                if new and self._last_key:
                    adding.set(self._last_key, self.identity)
                adding.execute()
        except (ConnectionError, TimeoutError) as error:
            return error
        except RedisError as error:
            self.fail(error)
        self._waiting = []
        return None

    def _last_number(self) -> int:
        """Returns the number of the last message of this delivery that is in the stream; 0 if there is none."""
        last = self._redis.get(self._last_key) if self._last_key else None
        delivery, _, number = (last or b"").decode().rpartition("-")
        return int(number) if delivery and delivery == self.delivery else 0


def _key(address: Address) -> str:
    key = address.endpoint(6379).path
    if not key:
        raise UsageError(f"`{address.text}` names no stream", hint=f"write `{address.scheme}://HOST/KEY`")
    return key


def _client(address: Address) -> Redis:
    """Creates a client, which has not connected yet."""
    endpoint = address.endpoint(6379)
    options: dict[str, Any] = {"ssl": True} if address.scheme == "rediss" else {}
    return Redis(
        endpoint.host or "localhost",
        endpoint.port,
        address.integer("db", 0, least=0),
        endpoint.password,
        username=endpoint.user or None,
        protocol=2,
        socket_timeout=_REQUEST_TIMEOUT_S,
        socket_connect_timeout=_REQUEST_TIMEOUT_S,
        retry=None,
        **options,
    )


def _entries(reply: Any) -> list[Entry]:
    """Returns the entries of one stream in the reply to a command that may read several."""
    return [entry for _, entries in reply or () for entry in entries]


def _order(entry: str) -> tuple[int, int]:
    milliseconds, _, number = entry.partition("-")
    return int(milliseconds or 0), int(number or 0)
