"""Ctrl-C and SIGTERM: what they mean to a run that would go on for ever, and to one that goes on another time."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from squall.streams import Sources

_SIGNALS = signal.SIGINT, signal.SIGTERM


@contextmanager
def endable(sources: Sources) -> Iterator[None]:
    """Lets the first signal within end live sources, so that the run drains, and comes to its end as if they had ended;
    and all sources of a run with a checkpoint.

    The second one interrupts it (KeyboardInterrupt), and so does the first where sources cannot be ended or are not
    being read here, or where none is live: what is finite comes to its end anyway, and who interrupts it does not mean
    to wait for that. Signals are heard of in the main thread alone; in another one nothing is changed.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    heard = threading.Event()

    def on_signal(number: int, frame: FrameType | None) -> None:
        if heard.is_set() or not sources.endable:
            raise KeyboardInterrupt
        heard.set()
        # In a thread of its own: this one may hold the locks that are needed for it.
        threading.Thread(target=sources.stop, name="ends live sources", daemon=True).start()

    before: dict[signal.Signals, Any] = {number: signal.signal(number, on_signal) for number in _SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
