"""A dataflow that counts and times what each node does, for ``--profile-nodes``. The rows are the same, at a cost."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from functools import cached_property
from time import perf_counter

from squall.builders.runtime import layout
from squall.builders.runtime.dataflow import Dataflow, Target
from squall.builders.runtime.operators.scan import ScannedFacts
from squall.builders.runtime.operators.stateless import Step
from squall.builders.runtime.zset import Delta
from squall.plan.node_metrics import NodeMetric
from squall.plan.operators import Match, Scan, Sink, Union


class ProfiledDataflow(Dataflow):
    """A dataflow that counts and times its nodes."""

    apart = (object,)

    @cached_property
    def rows(self) -> Counter[str]:
        """The number of deltas that each node has emitted."""
        return Counter()

    @cached_property
    def seconds(self) -> defaultdict[str, float]:
        """The time that each node took by itself."""
        return defaultdict(float)

    def metrics(self, outputs: int) -> dict[str, NodeMetric]:
        """Returns the metrics of each node.

        The time of a `Match` is not known: facts are looked up for all matches together.

        Args:
            outputs: The number of outputs that were emitted.
        """
        state = self.state()
        metrics_by_node = {}
        for node in map(self.plan.by_id.__getitem__, self.layout.nodes):
            rows = outputs if isinstance(node.op, Sink) else self.rows[node.id]
            seconds = None if isinstance(node.op, Match | Scan | Union) else self.seconds[node.id]
            metrics_by_node[node.id] = NodeMetric(
                None, rows, state.get(node.id), seconds, node.op.joins_replaced or None
            )
        return metrics_by_node

    def forget(self) -> None:
        """Resets the counts and times."""
        self.rows.clear()
        self.seconds.clear()

    def emit(self, id: str, deltas: Sequence[Delta]) -> None:
        self.rows[id] += len(deltas)
        super().emit(id, deltas)

    def apply(self, id: str, port: int, deltas: Sequence[Delta]) -> Sequence[Delta]:
        began = perf_counter()
        output = super().apply(id, port, deltas)
        self.seconds[id] += perf_counter() - began
        return output

    def _emit_facts(self, id: str, facts: ScannedFacts) -> None:
        pairs = sum(map(len, facts.boxes.values())) + sum(map(len, facts.columnar.values()))
        self.rows[id] += max(0, pairs - len(facts.triples))  # `emit` counts the others
        super()._emit_facts(id, facts)

    def _target(self, target: layout.Target) -> Target:
        step, address, inner = super()._target(target)
        return Target(None if step is None else self._timed(inner, step), address, inner)

    def _timed(self, id: str, step: Step) -> Callable[[Sequence[Delta]], list[Delta]]:
        def timed(deltas: Sequence[Delta]) -> list[Delta]:
            began = perf_counter()
            rows = step(deltas)
            self.seconds[id] += perf_counter() - began
            return rows

        return timed
