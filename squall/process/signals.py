"""Ctrl-C and SIGTERM: they drain live runs and runs with a checkpoint, and interrupt others."""

from __future__ import annotations

import logging
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, NoReturn

from squall.streams import Sources

_SIGNALS = signal.SIGINT, signal.SIGTERM
_WAKE_UP = signal.SIGURG
"""The signal that wakes the main thread up. Nobody else sends it to a process without out-of-band data."""
DRAIN_TIMEOUT_S = 5.0
"""The seconds within which a run has to process what it has read, after the first signal."""
EXIT_TIMEOUT_S = 2.0
"""The seconds within which an interrupted run has to end."""
KILL_DELAY_S = 1.0
"""The seconds after which the kernel ends a process in which no thread has been able to do so."""
_WAKE_UP_DELAYS_S = 0.02, 0.2, 1.0
"""The seconds after a signal at which to wake up. At the first time, the main thread may be about to wait."""


@contextmanager
def stop_on_signal(
    sources: Sources,
    exit_process: Callable[[], object] | None = None,
    drain_timeout_s: float = DRAIN_TIMEOUT_S,
    exit_timeout_s: float = EXIT_TIMEOUT_S,
) -> Iterator[Shutdown]:
    """Handles signals within a context: the first one stops the sources, so that the run drains.

    It stops live sources, and all sources of a run with a checkpoint. The second signal interrupts the run
    (KeyboardInterrupt). So does the first if the sources are not stoppable (`Sources.is_stoppable`): a bounded run ends
    by itself, and a user who interrupts it does not want to wait. A run that has not drained some time after the first
    signal is interrupted as well: what it reads at once may be much work. An interrupted run is also abandoned
    (`Sources.abandon`), and while the context lasts, libraries do not log what that breaks. Only the main thread
    handles signals, whatever it waits for. In another thread the context has no effect.

    A call of a library may hold Python's global lock for long, in all threads: to free the memory of a large instant
    takes seconds. So the kernel has an alarm (SIGALRM), which ends the process if nothing else does.

    The context's value says whether a signal has come.

    Args:
        sources: The sources of the run.
        exit_process: Ends the process, in a thread of its own, if an interrupted run does not end. None: nothing does.
        drain_timeout_s: The seconds from the first signal until the run is interrupted.
        exit_timeout_s: The seconds from the interruption until `exit_process` is called. The kernel ends the process
            `KILL_DELAY_S` seconds later.
    """
    shutdown = Shutdown(sources, exit_process, drain_timeout_s, exit_timeout_s)
    if threading.current_thread() is not threading.main_thread():
        yield shutdown
        return
    before: dict[signal.Signals, Any] = {number: signal.signal(number, shutdown.on_signal) for number in _SIGNALS}
    disabled_level = logging.root.manager.disable
    try:
        with _waking_main_thread(shutdown.on_wake_up):
            yield shutdown
    finally:
        shutdown.end()
        logging.disable(disabled_level)
        for number, handler in before.items():
            signal.signal(number, handler)


class Shutdown:
    """The end of a run by signals (`stop_on_signal`)."""

    def __init__(
        self,
        sources: Sources,
        exit_process: Callable[[], object] | None,
        drain_timeout_s: float,
        exit_timeout_s: float,
    ) -> None:
        self.sources = sources
        self.exit_process = exit_process
        self.drain_timeout_s = drain_timeout_s
        self.exit_timeout_s = exit_timeout_s
        self.main_thread = threading.get_ident()
        self.has_ended = threading.Event()
        self.has_stopped = False
        """Whether the first signal has come, and has stopped the sources."""
        self.is_overdue = self.is_interrupted = False
        """Whether the run has not drained in time, and whether it has been interrupted."""
        self.abandoning: threading.Thread | None = None
        """The thread that abandons the run, if it has been interrupted."""

    def on_signal(self, number: int, frame: FrameType | None) -> None:
        """Handles a signal. Threads of their own do what needs locks, since the main one may hold them."""
        if self.has_stopped or not self.sources.is_stoppable:
            self._interrupt()
        self.has_stopped = True
        self._set_alarm(self.drain_timeout_s + self.exit_timeout_s)
        _start(self.sources.stop, "stops sources")
        _start(self._interrupt_later, "interrupts the run")

    def on_wake_up(self, number: int, frame: FrameType | None) -> None:
        """Interrupts a run that has not drained in time."""
        if self.is_overdue and not self.is_interrupted:
            self._interrupt()

    def _interrupt(self) -> NoReturn:
        if not self.is_interrupted:
            self.has_stopped = self.is_interrupted = True
            self._set_alarm(self.exit_timeout_s)
            logging.disable()
            self.abandoning = _start(self.sources.abandon, "abandons the run")
            _start(self._exit_later, "ends the process")
        raise KeyboardInterrupt

    def _set_alarm(self, timeout_s: float) -> None:
        """Lets the kernel end the process when this time and a little more has passed."""
        if self.exit_process is not None:
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            signal.setitimer(signal.ITIMER_REAL, timeout_s + KILL_DELAY_S)

    def end(self) -> None:
        """Ends the handling of signals, when the run has ended. What abandons the run has done its work then."""
        if self.abandoning is not None:
            self.abandoning.join()
        if self.has_stopped and self.exit_process is not None:
            signal.setitimer(signal.ITIMER_REAL, 0)
        self.has_ended.set()

    def _interrupt_later(self) -> None:
        self.is_overdue = not self.has_ended.wait(self.drain_timeout_s)
        while not (self.is_interrupted or self.has_ended.wait(_WAKE_UP_DELAYS_S[0])):
            signal.pthread_kill(self.main_thread, _WAKE_UP)

    def _exit_later(self) -> None:
        if not self.has_ended.wait(self.exit_timeout_s) and self.exit_process is not None:
            self.exit_process()


def _start(action: Callable[[], object], name: str) -> threading.Thread:
    thread = threading.Thread(target=action, name=name, daemon=True)
    thread.start()
    return thread


@contextmanager
def _waking_main_thread(on_wake_up: Callable[[int, FrameType | None], None]) -> Iterator[None]:
    """Wakes the main thread, which is the caller, up after each signal within a context, so that it runs the handler.

    Python runs handlers in the main thread, between two instructions. A signal that another thread receives does not
    end a wait of the main thread, nor does one that arrives between its last check for signals and the wait.
    """
    reader, writer = socket.socketpair()
    writer.setblocking(False)
    previous = signal.set_wakeup_fd(writer.fileno(), warn_on_full_buffer=False)
    before = signal.signal(_WAKE_UP, on_wake_up)  # an ignored signal ends no wait
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
