"""Runs a command and measures it with all processes it starts (Spark's JVM and Python workers), from Linux's /proc."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

INTERVAL = 0.1
"""The seconds between two samples."""
MAX_MEMORY_SHARE = 0.05
"""The share of the time that is spent on sampling memory: Linux adds up the pages of large processes for long."""

_TICK = os.sysconf("SC_CLK_TCK")


@dataclass
class Usage:
    """What the processes of a session have used so far. A process is looked at every `INTERVAL` seconds, so that what
    it does between the last look and its end is not seen.

    cpu: seconds, user and system, by process. peak: bytes of memory, at the moment when it was most; memory shared by
    several processes counts once (proportional set size).
    """

    session: int
    cpu: dict[int, float] = field(default_factory=dict)
    peak: int = 0
    _memory_due: float = 0

    def look(self) -> None:
        folders = [folder for folder in Path("/proc").iterdir() if folder.name.isdigit() and self._look_at(folder)]
        begun = time.perf_counter()
        if begun >= self._memory_due:
            self.peak = max(self.peak, sum(map(resident, folders)))
            ended = time.perf_counter()
            self._memory_due = ended + (ended - begun) / MAX_MEMORY_SHARE

    def _look_at(self, folder: Path) -> bool:
        """Notes the CPU time of a process, and returns whether it is of the session."""
        try:
            # The name of the program, in brackets, may hold blanks; fields are counted from behind it.
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            return False  # it has ended in the meantime
        if int(fields[3]) != self.session:
            return False
        self.cpu[int(folder.name)] = (int(fields[11]) + int(fields[12])) / _TICK
        return True

    @property
    def seconds(self) -> float:
        return sum(self.cpu.values())


def resident(folder: Path) -> int:
    """Returns the bytes of memory of a process, by its folder in ``/proc``. Memory that several processes share counts
    once. A process that has ended has none."""
    with suppress(FileNotFoundError, ProcessLookupError):
        for line in (folder / "smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
    return 0


@dataclass(frozen=True)
class Measured:
    """One run. wall and cpu: seconds between the command's lines ``{"at": "start"}`` and ``{"at": "end"}``, or what the
    latter says of them; total: seconds from its start to its end; peak: bytes until the work's end; said: what the
    line ``{"at": "found", ...}`` says besides."""

    wall: float
    cpu: float
    total: float
    peak: int
    said: dict[str, Any]


class Failed(Exception):
    """The command ended with an error; the message is what it wrote to standard error last."""


def measure(command: list[str], cwd: Path, limit: float = 3600) -> Measured:
    """Runs a command that prints when its work begins and ends, and its result.

    limit: seconds after which it is ended. Raises Failed.
    """
    began = time.perf_counter()
    with subprocess.Popen(
        command, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        usage = Usage(process.pid)
        stop = threading.Event()
        looking = threading.Thread(target=_keep_looking, args=(usage, stop))
        complaints: list[str] = []
        listening = threading.Thread(target=lambda: complaints.append(process.stderr.read()))  # type: ignore[union-attr]
        looking.start()
        listening.start()
        patience = threading.Timer(limit, _end, (process,))
        patience.start()
        try:
            marks = [_mark(line, usage) for line in process.stdout or ()]
            process.wait()
        finally:
            patience.cancel()
            _end(process)
            stop.set()
            looking.join()
            listening.join()
    if time.perf_counter() - began > limit:
        raise Failed(f"no end after {limit:,.0f} s")
    if process.returncode or [mark["at"] for mark in marks] != ["start", "end", "found"]:
        raise Failed(_last("".join(complaints)) or f"exit code {process.returncode}")
    start, end, result = marks
    wall, cpu = end.get("wall", end["time"] - start["time"]), end.get("cpu", end["used"] - start["used"])
    message = {name: value for name, value in result.items() if name not in ("at", "time", "used", "peak")}
    return Measured(wall, cpu, time.perf_counter() - began, end["peak"], message)


def _last(complaint: str) -> str:
    """Returns at most 30 lines of the last traceback, or of the whole text if it has none."""
    _, traceback, remainder = complaint.rpartition("Traceback (most recent call last)")
    return "\n".join((traceback + remainder if traceback else remainder).splitlines()[:30])


def _mark(line: str, usage: Usage) -> dict[str, Any]:
    now = time.perf_counter()
    usage.look()
    message: dict[str, Any] = json.loads(line)
    return message | {"time": now, "used": usage.seconds, "peak": usage.peak}


def _keep_looking(usage: Usage, stop: threading.Event) -> None:
    while not stop.wait(INTERVAL):
        usage.look()


def _end(process: subprocess.Popen[str]) -> None:
    """Ends the processes of the command that are still running, when it takes too long or the harness is
    interrupted."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGTERM)
