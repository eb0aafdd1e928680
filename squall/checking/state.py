"""``unbounded-state``, ``window-gaps``: what is kept for ever, and what no window ever shows."""

from __future__ import annotations

from collections.abc import Iterator

from squall.checking.findings import WARNING, Finding, told
from squall.checking.program import Program
from squall.model.unbounded_state import unbounded_state_warnings
from squall.model.windows import CountWindow, HoppingWindow


def check(program: Program) -> Iterator[Finding]:
    """A finding for each query that keeps all that streams ever bring (`squall.model.unbounded_state`), and for each window that was
    given from outside whose steps are longer than its size. (Of those in programs, translators warn.)"""
    for warning in unbounded_state_warnings(program.system, program.growing):
        yield from told(warning, "unbounded-state")
    for window in dict.fromkeys(program.windows):
        if isinstance(window, HoppingWindow | CountWindow) and window.step > window.size:
            message = f"the window `{window}` leaves gaps: what comes between its steps is never seen"
            yield Finding("window-gaps", WARNING, message, None, "let the step be no longer than the range")
