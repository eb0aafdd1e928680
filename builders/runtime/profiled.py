"""A machine that counts and times what each node does, for ``--profile-nodes``: the same rows, at a cost."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from time import perf_counter
from types import MappingProxyType

from squall.builders.runtime.dataflow import Dataflow, Target
from squall.builders.runtime.multiway_join import FusedJoin
from squall.builders.runtime.operators.scan import ScannedFacts
from squall.builders.runtime.operators.stateless import StatelessOperator, Step
from squall.builders.runtime.zset import Delta
from squall.plan import Node, Plan
from squall.plan.node_metrics import NodeMetric
from squall.plan.operators import Match, Scan, Sink, Union, is_stateful


class ProfiledDataflow(Dataflow):
    """rows: the entries that each node has made; seconds: the time that it took by itself."""

    def __init__(
        self,
        plan: Plan,
        hosted: Collection[str] | None = None,
        fused: Mapping[str, FusedJoin] = MappingProxyType({}),
        reading: Collection[str] | None = None,
    ) -> None:
        self.rows: Counter[str] = Counter()
        self.seconds: defaultdict[str, float] = defaultdict(float)
        super().__init__(plan, hosted, fused, reading)

    def figures(self, outputs: int) -> dict[str, NodeMetric]:
        """The figures of each node. outputs: how many have been handed on. The time of a `Match` is not known: facts
        are looked up for all matches together."""
        state = self.state()
        metrics = {}
        for node in self.plan.nodes:
            rows = outputs if isinstance(node.op, Sink) else self.rows[node.id]
            seconds = None if isinstance(node.op, Match | Scan | Union) else self.seconds[node.id]
            metrics[node.id] = NodeMetric(None, rows, state.get(node.id), seconds)
        return metrics

    def forget(self) -> None:
        """Counts and times from the beginning again."""
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

    def _put_facts(self, id: str, facts: ScannedFacts) -> None:
        self.rows[id] += max(len(facts.triples), sum(map(len, facts.boxes.values()))) + len(facts.atoms)
        super()._put_facts(id, facts)

    def _constant_targets(self, id: str) -> Iterator[Target]:
        return iter(())

    def _target(self, node: Node, port: int) -> Target:
        """Node by node, so that each is seen."""
        if is_stateful(node.op):
            return super()._target(node, port)
        op = self.operators[node.id]
        assert isinstance(op, StatelessOperator)
        return Target(self._timed(node.id, op.step), None, node.id)

    def _timed(self, id: str, step: Step) -> Callable[[Sequence[Delta]], list[Delta]]:
        def timed(deltas: Sequence[Delta]) -> list[Delta]:
            began = perf_counter()
            rows = step(deltas)
            self.seconds[id] += perf_counter() - began
            return rows

        return timed
