"""Gates: rows pass while an occurrence that they could follow is open."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from squall.builders.runtime.operators.event_time import EventTimeOperator
from squall.builders.runtime.operators.sequence_join import cells_getter
from squall.builders.runtime.tuning import DEFAULT_TUNING, Tuning
from squall.builders.runtime.zset import Delta, Row
from squall.plan import operators as ops
from squall.rdf import FOREVER

Span = tuple[int, int]
"""Since when and until when a gate is open (integer ms)."""
ROWS, OPENERS = 0, 1


class GateOperator(EventTimeOperator):
    """Rows that hold while an opener of their key has begun before, as `squall.plan.operators.Gate` says.

    Rows wait until all openers up to the present are there. Those that hold longer than that pass, since an opener may
    still come. The state is when the gate is open for each key, as the openers that say it; what they hold besides does
    not matter, but rows of state are divided among tasks as those of their input are.

    Args:
        op: The node of the plan.
        tuning: The tuning values of the runtime.
    """

    kind = "gate"

    def __init__(self, op: ops.Gate, tuning: Tuning = DEFAULT_TUNING) -> None:
        super().__init__()
        self.row_key, self.opener_key = map(cells_getter, op.join_keys)
        self.waiting: list[Delta] = []
        """The rows that came since time advanced last."""
        self.spans: dict[Row, list[Span]] = {}
        """When the gate is open, by key. What is over may be left out."""
        self.watermark = 0
        self.min_rows_to_sweep = tuning.min_rows_to_sweep
        self.rows_after_sweep = 0

    @property
    def next_time(self) -> int:
        return FOREVER

    def apply(self, port: int, deltas: Sequence[Delta]) -> list[Delta]:
        if port == ROWS:
            self.waiting += deltas
        else:
            self._open(delta for delta in deltas if delta[-1] > 0)
        return []

    def _open(self, openers: Iterable[Delta]) -> None:
        for opener in openers:
            key, (start, end, _) = self.opener_key(opener), opener[-3:]
            spans = self.spans.setdefault(key, [])
            if spans and spans[-1][0] <= start and end <= spans[-1][1]:
                continue
            self.note(OPENERS, [opener])
            if spans and spans[-1][0] <= start <= spans[-1][1]:
                spans[-1] = (spans[-1][0], end)
            else:
                spans[:] = [span for span in spans if span[1] > self.watermark]
                spans.append((start, end))

    def advance(self, now: int) -> list[Delta]:
        waiting, self.waiting = self.waiting, []
        self.watermark = now
        key_of, spans_of = self.row_key, self.spans.get
        output = []
        for delta in waiting:
            last = delta[-2] - 1
            if last > now:
                output.append(delta)
                continue
            for start, end in spans_of(key_of(delta), ()):
                if start < last and delta[-3] < end:
                    output.append(delta)
                    break
        return output

    # State

    def resume_at(self, watermark: int) -> None:
        self.watermark = watermark

    def restore(self, slot: int, deltas: Sequence[Delta]) -> None:
        self._open(sorted(deltas, key=lambda delta: delta[-3]))

    def size(self) -> int:
        return len(self.spans)

    def expire(self, now: int) -> None:
        if self.size() <= max(self.min_rows_to_sweep, 2 * self.rows_after_sweep):
            return
        for key in [key for key, spans in self.spans.items() if all(end <= now for _, end in spans)]:
            del self.spans[key]
        self.rows_after_sweep = self.size()
