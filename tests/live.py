"""Helpers for tests of live sources: a run in a thread, and statements that contain their event times."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import squall
from squall.contracts import Options, Output
from squall.plan import Plan
from squall.rdf import Event, iri, triple
from squall.streams import Sources, open_source
from tests.test_docs import ROOT, blocks, expect

PATIENCE = 20  # seconds until a test is given up

P = iri("http://example.org/p")


def output(time: int) -> Output:
    return Output(triple(iri(f"http://example.org/{time}"), P, iri("http://example.org/o")), time, "rule")


def ended(plan: Plan, builder: str, address: str, count: int, options: Options) -> list[tuple[int, str]]:
    """Returns the outputs of a run that is stopped after a number of them."""
    sources = Sources([open_source(address, options.ledger)])
    results = []
    for output in squall.build(plan, builder, options).run(sources):
        results.append((output.time, str(output.fact)))
        if len(results) == count:
            sources.stop()
    return sorted(results)


def line(time: int) -> bytes:
    """Returns a line of timed N-Triples."""
    return f"{time} {output(time).fact}\n".encode()


def wait(holds: Callable[[], bool], seconds: float = 240) -> None:
    """Waits until something holds. The bound is for what never comes: a busy machine may take long."""
    limit = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < limit, "it takes too long"
        time.sleep(0.02)


def threads(*names: str) -> set[str]:
    """Returns which of these threads are running."""
    return {thread.name for thread in threading.enumerate()} & set(names)


def times(events: Sequence[Event]) -> list[int]:
    return [event.time for event in events if event.facts]


def example(
    name: str,
    folder: Path,
    environment: Mapping[str, str],
    page: str = "live.md",
    program: str = "hot.jena",
    **replaced: str,
) -> None:
    """Runs a script of a page of docs/ with the page's program, and compares its output with the page.

    replaced: the addresses of the test's servers, by the usual address that each replaces.
    """
    results = list(blocks((ROOT / "docs" / page).read_text()))
    (text,) = (block.text for block in results if block.rest == program)
    (number,) = (number for number, block in enumerate(results) if block.rest == name)
    (folder / program).parent.mkdir(exist_ok=True)
    (folder / program).write_text(text)
    script = results[number].text
    for existing_items, here in replaced.items():
        assert existing_items in script
        script = script.replace(existing_items, here)
    (folder / "bin").mkdir()
    command = folder / "bin" / "squall"
    command.write_text(f"#!/bin/sh\nexec '{sys.executable}' -m squall \"$@\"\n")
    command.chmod(0o755)
    found_at = os.pathsep.join([str(folder / "bin"), environment.get("PATH", os.environ["PATH"])])
    process = subprocess.Popen(
        ["bash", "-euc", script],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **environment, "PATH": found_at},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        out, err = process.communicate(timeout=2 * PATIENCE)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    assert process.returncode == 0, err
    expect(results[number + 1].text, out, name)


class Run:
    """A live source (`squall.streams.live.base.LiveSource`) that is read by a thread, as a run does.

    seen: the times of the events so far. failed: it is known to have failed.
    """

    def __init__(self, source: Any) -> None:
        self.source = source
        self.seen: list[int] = []
        self.failed = False
        self._changed = threading.Condition()
        self._pool = ThreadPoolExecutor(1)
        self._done: Future[None] = self._pool.submit(self._read)

    def __enter__(self) -> Run:
        while not self.source.connected.wait(0.05):
            if self._done.done():
                self._done.result()
        return self

    def __exit__(self, *error: object) -> None:
        self.source.stop()
        self._pool.shutdown()
        if error[0] is None and not self.failed:
            self._done.result(PATIENCE)

    def until(self, *number: int) -> list[int]:
        """Waits until all of these times have been seen."""
        return self.when(lambda: {*number} <= {*self.seen})

    def when(self, found: Callable[[], bool]) -> list[int]:
        """Waits until something holds; it is looked at whenever a batch has come."""
        with self._changed:
            process = self._changed.wait_for(lambda: found() or self._done.done(), PATIENCE)
            if self._done.done():
                self._done.result()
            assert process, f"only {self.seen} came"
            return list(self.seen)

    def end(self) -> list[int]:
        """Waits for the end of the source."""
        self._done.result(PATIENCE)
        return self.seen

    def _read(self) -> None:
        try:
            for batch in Sources([self.source]):
                with self._changed:
                    self.seen += times(batch)
                    self._changed.notify_all()
        finally:
            with self._changed:
                self._changed.notify_all()
