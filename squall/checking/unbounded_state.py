"""The checks ``unbounded-state`` and ``window-gaps``: state that grows without end, and events that no window shows."""

from __future__ import annotations

from collections.abc import Iterator

from squall.checking.findings import WARNING, Finding, as_findings
from squall.checking.program import Program
from squall.model.unbounded_state import unbounded_state_warnings


def check(program: Program) -> Iterator[Finding]:
    """Yields a finding for each query whose state grows without bound (`squall.model.unbounded_state`), and for gaps.

    A window that was given from outside has gaps if its step is longer than its size. (Translators warn of those in
    programs.)
    """
    for warning in unbounded_state_warnings(program.system, program.growing):
        yield from as_findings(warning, "unbounded-state")
    for window in dict.fromkeys(program.windows):
        if window.leaves_gaps:
            message = f"the window `{window}` leaves gaps: what comes between its steps is never seen"
            yield Finding("window-gaps", WARNING, message, None, "let the step be no longer than the range")
