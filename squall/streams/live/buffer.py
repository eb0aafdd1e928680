"""A bounded buffer between a thread that receives and the run that processes."""

from __future__ import annotations

import threading
from collections import deque
from typing import Generic, TypeVar

T = TypeVar("T")


class Buffer(Generic[T]):
    """A queue of a limited length, which gives backpressure to the thread that fills it.

    Attributes:
        limit: The number of items that it can have.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._waiting: deque[T] = deque()
        self._changed = threading.Condition()
        self._closed = False

    def put(self, item: T) -> bool:
        """Waits for room, and adds an item. Returns whether it did: a closed buffer does not."""
        with self._changed:
            self._changed.wait_for(lambda: self._closed or len(self._waiting) < self.limit)
            return self._put(item)

    def offer(self, item: T, spare: int = 0) -> bool:
        """Adds an item if there is room, and returns whether it did.

        Args:
            item: The item.
            spare: The room to leave for other items.
        """
        with self._changed:
            return len(self._waiting) < self.limit - spare and self._put(item)

    def take(self, patience: float | None = None) -> list[T]:
        """Removes and returns all items, and waits for the first one.

        Returns nothing if the buffer is closed and empty, or there is no item in time.

        Args:
            patience: The longest time to wait, in seconds; None: no limit.
        """
        with self._changed:
            self._changed.wait_for(lambda: self._closed or self._waiting, patience)
            items = list(self._waiting)
            self._waiting.clear()
            self._changed.notify_all()
            return items

    def close(self) -> None:
        """Closes the buffer. No more items can be added, but those in it can be taken."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def _put(self, item: T) -> bool:
        if not self._closed:
            self._waiting.append(item)
            self._changed.notify_all()
        return not self._closed
