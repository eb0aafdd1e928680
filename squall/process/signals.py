"""Ctrl-C and SIGTERM: they drain live runs and runs with a checkpoint, and interrupt others."""

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
_WAKE_UP = signal.SIGURG
"""The signal that wakes the main thread up. Nobody else sends it to a process without out-of-band data."""
SUSPENSION_TIMEOUT_S = 20.0
"""The seconds within which a run with a checkpoint has to process what it has read, after the first signal."""
_WAKE_UP_DELAYS_S = 0.02, 0.2, 1.0
"""The seconds after a signal at which to wake up. At the first time, the main thread may be about to wait."""


@contextmanager
def stop_on_signal(sources: Sources, suspension_timeout_s: float = SUSPENSION_TIMEOUT_S) -> Iterator[None]:
    """Handles signals within a context: the first one stops the sources, so that the run drains.

    It stops live sources, and all sources of a run with a checkpoint. The second signal interrupts the run
    (KeyboardInterrupt). So does the first if the sources are not stoppable (`Sources.is_stoppable`): a bounded run ends
    by itself, and a user who interrupts it does not want to wait. A run that resumes from its checkpoint
    (`Sources.is_resumable`) is interrupted as well if it has not ended some time after the first signal: what it reads
    at once may be much work. Only the main thread handles signals, whatever it waits for. In another thread the context
    has no effect.

    Args:
        sources: The sources of the run.
        suspension_timeout_s: The seconds until a resumable run is interrupted.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    has_stopped, has_ended = threading.Event(), threading.Event()
    main_thread = threading.get_ident()

    def interrupt_later() -> None:
        if sources.is_resumable and not has_ended.wait(suspension_timeout_s):
            signal.pthread_kill(main_thread, signal.SIGTERM)

    def on_signal(number: int, frame: FrameType | None) -> None:
        if has_stopped.is_set() or not sources.is_stoppable:
            raise KeyboardInterrupt
        has_stopped.set()
        # In a thread of its own, since this one may hold the locks that it needs.
        threading.Thread(target=sources.stop, name="stops sources", daemon=True).start()
        threading.Thread(target=interrupt_later, name="interrupts the run", daemon=True).start()

    before: dict[signal.Signals, Any] = {number: signal.signal(number, on_signal) for number in _SIGNALS}
    try:
        with _waking_main_thread():
            yield
    finally:
        has_ended.set()
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def _waking_main_thread() -> Iterator[None]:
    """Wakes the main thread, which is the caller, up after each signal within a context, so that it runs the handler.

    Python runs handlers in the main thread, between two instructions. A signal that another thread receives does not
    end a wait of the main thread, nor does one that arrives between its last check for signals and the wait.
    """
    reader, writer = socket.socketpair()
    writer.setblocking(False)
    previous = signal.set_wakeup_fd(writer.fileno(), warn_on_full_buffer=False)
    before = signal.signal(_WAKE_UP, lambda *_: None)  # an ignored signal ends no wait
    watcher = threading.Thread(target=_wake_up, args=(reader, threading.get_ident()), name="hears signals", daemon=True)
    watcher.start()
    try:
        yield
    finally:
        signal.set_wakeup_fd(previous)
        writer.close()
        watcher.join()
        reader.close()
        signal.signal(_WAKE_UP, before)


def _wake_up(reader: socket.socket, sleeper: int) -> None:
    """Wakes a thread up after each signal whose number a socket receives, until that is closed."""
    pauses: list[float] = []
    while True:
        reader.settimeout(pauses[0] if pauses else None)
        try:
            numbers = reader.recv(64)
        except TimeoutError:
            del pauses[0]
            signal.pthread_kill(sleeper, _WAKE_UP)
            continue
        if not numbers:
            return
        if any(number != _WAKE_UP for number in numbers):
            pauses = list(_WAKE_UP_DELAYS_S)
