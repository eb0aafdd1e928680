"""Ctrl-C and SIGTERM: what they mean to a run that would go on for ever, and to one that goes on another time."""

from __future__ import annotations

import signal
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from squall.streams import Sources

_SIGNALS = signal.SIGINT, signal.SIGTERM
_NUDGE = signal.SIGURG
"""What wakes the main thread up. Nobody sends it of his own accord to a process that has not asked for it."""
_PAUSES = 0.02, 0.2, 1.0
"""Seconds between a signal and the nudges behind it: the main thread may be about to wait when the first one comes."""


@contextmanager
def stop_on_signal(sources: Sources) -> Iterator[None]:
    """Lets the first signal within end live sources, so that the run drains, and comes to its end as if they had ended;
    and all sources of a run with a checkpoint.

    The second one interrupts it (KeyboardInterrupt), and so does the first where sources cannot be ended or are not
    being read here, or where none is live: what is finite comes to its end anyway, and who interrupts it does not mean
    to wait for that. Signals are heard of in the main thread alone, whatever it waits for; in another one nothing is
    changed.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    heard = threading.Event()

    def on_signal(number: int, frame: FrameType | None) -> None:
        if heard.is_set() or not sources.is_stoppable:
            raise KeyboardInterrupt
        heard.set()
        # In a thread of its own: this one may hold the locks that are needed for it.
        threading.Thread(target=sources.stop, name="ends live sources", daemon=True).start()

    before: dict[signal.Signals, Any] = {number: signal.signal(number, on_signal) for number in _SIGNALS}
    try:
        with _woken():
            yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def _woken() -> Iterator[None]:
    """Wakes the main thread, which is the caller, up behind each signal within, so that it runs the handler.

    Python runs handlers there, between two instructions. A signal that another thread is sent does not end what the
    main thread waits for, nor does one that comes between its last look for signals and the wait.
    """
    reader, writer = socket.socketpair()
    writer.setblocking(False)
    previous = signal.set_wakeup_fd(writer.fileno(), warn_on_full_buffer=False)
    before = signal.signal(_NUDGE, lambda *_: None)  # a signal that is ignored ends no wait
    watcher = threading.Thread(target=_nudge, args=(reader, threading.get_ident()), name="hears signals", daemon=True)
    watcher.start()
    try:
        yield
    finally:
        signal.set_wakeup_fd(previous)
        writer.close()
        watcher.join()
        reader.close()
        signal.signal(_NUDGE, before)


def _nudge(reader: socket.socket, sleeper: int) -> None:
    """Sends a thread nudges behind each signal of which a socket tells, until that is closed."""
    pauses: list[float] = []
    while True:
        reader.settimeout(pauses[0] if pauses else None)
        try:
            numbers = reader.recv(64)
        except TimeoutError:
            del pauses[0]
            signal.pthread_kill(sleeper, _NUDGE)
            continue
        if not numbers:
            return
        if any(number != _NUDGE for number in numbers):
            pauses = list(_PAUSES)
