"""A parser of server-sent events.

Source: https://html.spec.whatwg.org/multipage/server-sent-events.html#event-stream-interpretation
"""

from __future__ import annotations

import codecs
import re

_LINE_END = re.compile(r"\r\n|\n|\r")


class EventStream:
    """An incremental parser of an event stream.

    Attributes:
        id: The id of the last complete event that had one; ``""`` if none had.
    """

    def __init__(self) -> None:
        self.id = ""
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._text = ""
        self._is_first = True
        self._data: list[str] = []
        self._id = ""

    @property
    def waiting(self) -> int:
        """The length of the event that is not complete yet, in characters."""
        return len(self._text) + sum(map(len, self._data))

    def read(self, chunk: bytes) -> list[str]:
        """Parses more bytes, and returns the data of the events that these complete."""
        self._text += self._decoder.decode(chunk)
        if self._is_first and self._text:
            self._text = self._text.removeprefix("\ufeff")
            self._is_first = False
        *lines, remainder = _LINE_END.split(self._text)
        if self._text.endswith("\r"):  # a line feed may follow, which belongs to it
            remainder = lines.pop() + "\r"
        self._text = remainder
        return [data for line in lines if (data := self._line(line)) is not None]

    def _line(self, line: str) -> str | None:
        if not line:
            return self._dispatched()
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "data":
            self._data.append(value)
        elif name == "id" and "\0" not in value:
            self._id = value
        return None

    def _dispatched(self) -> str | None:
        self.id = self._id
        data, self._data = self._data, []
        return "\n".join(data) if data else None
