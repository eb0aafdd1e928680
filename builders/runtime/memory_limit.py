"""The limit on the memory of a run: a run that needs more ends with an error that says which node needs it, and why.

The size of the process is compared with the limit between two batches, and whenever nodes have made so many rows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Protocol

from squall.errors import BuilderError
from squall.plan import Plan
from squall.plan.node_rules import rules_by_node
from squall.plan.operators import Join, LeftJoin, Sink
from squall.process.memory import ResidentMemory, size_text
from squall.wording import counted

ROWS_BETWEEN_CHECKS = 20_000
"""After so many rows that nodes have made, the memory is looked at. They take 10 MB at most."""
MAX_SHARE_BETWEEN_BATCHES = 0.9
"""The share of the limit from which on a run looks for a plan that stores less, between two batches. If the run has a
checkpoint, and there is none, it ends then, with all of its state."""
BYTES_PER_OUTPUT = 200
"""So much an output takes, with its fact. All outputs of an instant are made at once, behind the last step."""
MIN_FAN_OUT = 10
"""A join is to blame if it has made so many times as many rows of a batch as it stores."""
_MORE = "or allow more by `--memory-limit`"
_WINDOWS = "give the streams windows, such as `--window 'RANGE 10m'`"


class CountsRows(Protocol):
    """A dataflow, of either kind."""

    def state(self) -> Mapping[str, int]:
        """Returns the number of rows in the state of each node."""
        ...

    def pending_rows(self) -> Mapping[str, int]:
        """Returns the number of rows that wait for each node."""
        ...


class MemoryLimit:
    """The limit of one run.

    Args:
        max_bytes: The limit.
        plan: The plan of the run.
    """

    def __init__(self, max_bytes: int, plan: Plan) -> None:
        self.max_bytes = max_bytes
        self.set_plan(plan)
        self.memory = ResidentMemory()
        self.rows: Counter[str] = Counter()
        """The rows that each node has made of the current batch."""
        self._unchecked_rows = self._output_rows = 0

    def set_plan(self, plan: Plan) -> None:
        """Sets the plan that the run has from now on."""
        self.plan = plan
        self._sinks = frozenset(node.id for node, _ in plan.sinks)

    def begin_batch(self) -> None:
        """Notes that a batch begins."""
        self.rows.clear()

    def begin_instant(self) -> None:
        """Notes that the outputs of the instant before have been consumed."""
        self._output_rows = 0

    def count(self, id: str, input_rows: int, rows: int, dataflow: CountsRows) -> None:
        """Counts the rows that a node has made of others.

        Raises:
            BuilderError: The memory is larger than the limit, or will be with the outputs of the instant.
        """
        if id in self._sinks:
            rows = input_rows
            self._output_rows += input_rows
        self.rows[id] += rows
        self._unchecked_rows += rows
        if self._unchecked_rows >= ROWS_BETWEEN_CHECKS:
            self._unchecked_rows = 0
            if self.share() > 1:
                raise self.error(dataflow)

    def share(self) -> float:
        """Returns the share of the limit that is needed."""
        return self._needed_bytes() / self.max_bytes

    def error(self, dataflow: CountsRows, buffered_facts: int = 0, other_plans: str = "") -> BuilderError:
        """Returns the error for a run that needs more memory: which node needs it, why, and what the user may do.

        Args:
            dataflow: The dataflow.
            buffered_facts: The number of facts whose instant is not complete yet.
            other_plans: What the run knows of other plans, as a clause.
        """
        state, pending = dataflow.state(), dataflow.pending_rows()
        sizes = Counter({id: state.get(id, 0) + pending.get(id, 0) for id in {*state, *pending}})
        reason, remedy = self._fan_out(state) or self._large_state(sizes, buffered_facts)
        sizes_text = f"{size_text(self._needed_bytes())} of {size_text(self.max_bytes)}"
        reason = "; ".join(filter(None, (reason, other_plans)))
        return BuilderError(f"the run reaches its memory limit ({sizes_text}): {reason}", hint=f"{remedy}, {_MORE}")

    def _needed_bytes(self) -> int:
        """Returns the memory in use, and what the outputs of the current instant will take."""
        return int(self.memory.bytes()) + self._output_rows * BYTES_PER_OUTPUT

    def _fan_out(self, state: Mapping[str, int]) -> tuple[str, str] | None:
        """Returns why a join is to blame, with the remedy; None if none is."""
        joins = {id: rows for id, rows in self.rows.items() if isinstance(self.plan.by_id[id].op, Join | LeftJoin)}
        worst = max(joins, key=joins.__getitem__, default=None)
        if worst is None or joins[worst] < MIN_FAN_OUT * max(1, state.get(worst, 0)):
            return None
        out, stored = counted(joins[worst], "row"), counted(state.get(worst, 0), "row")
        planners = [name for name in ("rete", "greedy") if name != self.plan.planner]
        planner = f"another one (`--planner {planners[0]}`)" if len(planners) == 1 else "another one (`--planner`)"
        fewer = "give the streams shorter windows" if self.plan.has_expiring_windows else _WINDOWS
        return (
            f"{self._name(worst)} has made {out} of the {stored} that it stores, since many of them agree on what is "
            "joined",
            f"join on more variables; or {fewer}; or let a planner find another order: one with `--statistics` "
            f"(`--collect-statistics` makes them), or {planner}",
        )

    def _large_state(self, sizes: Counter[str], buffered_facts: int) -> tuple[str, str]:
        """Returns which node has most rows, and why, with the remedy."""
        if buffered_facts > max(sizes.values(), default=0):
            waiting = f"{counted(buffered_facts, 'fact')} of the input wait for the end of their instant"
            return waiting, "let fewer facts have the same time, or events be less out of order"
        inner = Counter({id: rows for id, rows in sizes.items() if not isinstance(self.plan.by_id[id].op, Sink)})
        (id, rows), *_ = (inner or sizes or Counter({self.plan.nodes[-1].id: 0})).most_common(1)
        holds = f"{self._name(id)} has {counted(rows, 'row')}, the most of all nodes"
        if not self.plan.has_expiring_windows:
            return (
                f"{holds}, and none of them expires, since no stream has a window that ends",
                _WINDOWS,
            )
        return f"{holds}: so many rows hold at the same time", "give the streams shorter windows"

    def _name(self, id: str) -> str:
        """Returns a node with the rules that it serves."""
        rules = rules_by_node(self.plan).get(id, ())
        names = ", ".join(f"`{rule}`" for rule in rules[:3]) + (f" and {len(rules) - 3} more" if len(rules) > 3 else "")
        return f"`{id}`" if not names else f"`{id}` of the {'rule' if len(rules) == 1 else 'rules'} {names}"
