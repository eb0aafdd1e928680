"""What waits between a thread that receives and the run that takes."""

from __future__ import annotations

import threading
from collections import deque
from typing import Generic, TypeVar

T = TypeVar("T")


class Buffer(Generic[T]):
    """A queue of a limited length: who puts waits for room, or is told that there is none.

    limit: how many may wait.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._waiting: deque[T] = deque()
        self._changed = threading.Condition()
        self._closed = False

    def put(self, item: T) -> bool:
        """Waits for room; False if the buffer was closed, and the item is not in it."""
        with self._changed:
            self._changed.wait_for(lambda: self._closed or len(self._waiting) < self.limit)
            return self._put(item)

    def offer(self, item: T, spare: int = 0) -> bool:
        """Waits for nothing: False if there is no room, but for what is to be spared for others."""
        with self._changed:
            return len(self._waiting) < self.limit - spare and self._put(item)

    def take(self, patience: float | None = None) -> list[T]:
        """All that waits; waits for something, for so many seconds at most (None: without end). Nothing once the buffer
        is closed and empty, or when that is over."""
        with self._changed:
            self._changed.wait_for(lambda: self._closed or self._waiting, patience)
            items = list(self._waiting)
            self._waiting.clear()
            self._changed.notify_all()
            return items

    def close(self) -> None:
        """Nothing more can be put; what waits can still be taken."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def _put(self, item: T) -> bool:
        if not self._closed:
            self._waiting.append(item)
            self._changed.notify_all()
        return not self._closed
