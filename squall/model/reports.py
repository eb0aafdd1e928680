"""Report policies: at which of the instants at which it may have changed an answer is output (docs/semantics.md).

All other modules ask the members of `Report`, and not which policy it is; the oracle has a definition of its own.
"""

from __future__ import annotations

from dataclasses import dataclass

from squall.errors import UsageError
from squall.model.windows import duration, milliseconds
from squall.rdf import ALWAYS, FOREVER


@dataclass(frozen=True)
class Report:
    """The report policy: at which instants an answer is evaluated (the SECRET model, Botan et al., VLDB 2010).

    Attributes:
        policy: ``close``: whenever the content of a window may have changed: at an event in a landmark, sliding or
            count window, at the end of its validity, and at a step of a hopping window that has content or has just
            lost it. ``change``: of these instants, those at which the answer differs from the one before. ``nonempty``:
            those at which the answer is not empty. ``periodic``: at the multiples of `period`, from the first after the
            first event.
        period: The period in integer ms.
        empty: A `squall.rdf.Evaluated` ends what each query answers at each of these instants, so that an empty answer
            is visible (``rstream``).
    """

    policy: str = "close"
    period: int = 0
    empty: bool = False

    @property
    def is_periodic(self) -> bool:
        """Whether the clock gives the instants, and not the windows."""
        return self.policy == "periodic"

    @property
    def only_changes(self) -> bool:
        """Whether an answer is reported only if it differs from the one before. Then windows with steps are read before
        they close."""
        return self.policy == "change"

    @property
    def depends_on_whole_answer(self) -> bool:
        """Whether the answer of all rules together decides if it is reported, or if its end is."""
        return self.only_changes or (self.policy == "nonempty" and self.empty)

    def marks_end(self, has_answer: bool) -> bool:
        """Returns whether the end of an evaluation is visible, if the ends of evaluations are (`empty`).

        Args:
            has_answer: Whether the answer has rows.
        """
        return has_answer or self.policy != "nonempty"

    def next_report(self, time: int) -> int:
        """Returns the first instant at a time (integer ms) or later at which the answer may be reported."""
        if not self.is_periodic or time in (ALWAYS, FOREVER):
            return time
        return -(-time // self.period) * self.period


CLOSE = Report()
_LABELS = {"close": "", "change": " on change", "nonempty": " unless empty"}


def report_label(report: Report) -> str:
    """Describes the report policy of an output; empty for the default one (`close`)."""
    label = f" every {duration(report.period)}" if report.is_periodic else _LABELS.get(report.policy, "")
    return f"{label}, with end markers" if report.empty else label


def parse_report(text: str) -> Report:
    """Parses a report policy: ``close``, ``change``, ``nonempty`` or ``periodic:5s``. Raises UsageError."""
    policy, colon, period = text.partition(":")
    if policy == "periodic" and colon and (length := milliseconds(period)) > 0:
        return Report(policy, length)
    if policy in _LABELS and not colon:
        return Report(policy)
    raise UsageError(f"`{text}` is no report policy", hint="policies: close, change, nonempty, periodic:5s")
