"""Update steps: the deletions and insertions of an instant take effect at the next one, deletions first.

Static data have no next instant. There steps follow one another at once until no update demands anything
(docs/decisions/0011-updates.md).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence

from squall.builders.runtime.dataflow import Dataflow
from squall.builders.runtime.operators.update import GraphUpdate
from squall.builders.runtime.zset import Row, triple
from squall.errors import BuilderError
from squall.rdf import ALWAYS, FOREVER

GraphUpdates = dict[GraphUpdate, list[str]]
"""The deletions and insertions of a time, each with the nodes of the updates that demand it."""


class UpdateSteps:
    """Applies the updates of a dataflow, step by step.

    Args:
        machine: The dataflow.
        limit: The most steps without an event in between.
    """

    def __init__(self, machine: Dataflow, limit: int) -> None:
        self.machine = machine
        self.limit = limit
        self.steps = 0
        self.coming: deque[int] = deque()
        """The times of events of which this dataflow reads nothing, in order (integer ms)."""
        self.demands: dict[int, GraphUpdates] = {}
        """The pending deletions and insertions, by time."""

    @property
    def due(self) -> int:
        """The time of the next step (integer ms), or FOREVER."""
        return min(self.demands, default=FOREVER)

    def rest(self) -> None:
        """Resets the number of steps, since an event has come."""
        self.steps = 0

    def expect(self, times: Iterable[int]) -> None:
        """Sets the times of events, at some of which this dataflow reads nothing."""
        self.coming = deque([*list(self.coming)[-1:], *sorted(times)])

    def settle(self) -> None:
        """Updates static data until no update demands anything.

        Then the facts of derived streams are output, again at each step that follows. What rules without a body insert
        is there from the start.
        """
        self._do(_together((id, demand) for id, op in self.machine.updates.items() for demand in op.initial), ALWAYS)
        for streams_emit in (False, True):
            self.machine.run(ALWAYS, complete=streams_emit)
            while self.collect(ALWAYS):
                self.apply(ALWAYS)
                self.machine.run(ALWAYS, complete=streams_emit)

    def collect(self, now: int) -> bool:
        """Collects what updates demand at an instant, and returns whether there is anything.

        The time of its effect is an evaluation instant.
        """
        demands = self.machine.pop_graph_updates(now)
        for since, id, demand in demands:
            time = ALWAYS if since == ALWAYS else since + 1
            _note(self.demands.setdefault(time, {}), id, demand)
        for instants in self.machine.instants if demands else ():
            instants.add_instant(self.due)
        return bool(demands)

    def apply(self, time: int) -> None:
        """Applies the deletions and insertions of this time. Raises BuilderError after too many steps."""
        ready = self.demands.pop(time, {})
        if not ready:
            return
        while self.coming and self.coming[0] <= time:
            self.coming.popleft()
            self.rest()
        self.steps += 1
        if self.steps > self.limit:
            raise self._endless(ready)
        self._do(ready, time)

    def _do(self, demands: GraphUpdates, time: int) -> None:
        for demand in sorted(demands, key=_insertions_last):
            if demand.inserts:
                assert demand.stream is not None
                self.machine.insert(demand.fact, time, demand.stream, demands[demand])
            else:
                self.machine.remove(demand.fact, time, demand.stream)

    # Pending deletions and insertions as rows of text (`squall.builders.runtime.operators.state.RowSerializable`)

    def rows(self) -> Iterator[Row]:
        """Yields the number of steps, and a row for each pending deletion and insertion."""
        yield "steps", str(self.steps)
        for time, demands in self.demands.items():
            each = ((demand, id) for demand, ids in demands.items() for id in ids)
            for number, (demand, id) in enumerate(each):
                what = "insert" if demand.inserts else "delete"
                yield (what, str(time), str(number), id, demand.stream, *demand.fact)

    def load_rows(self, rows: Sequence[Row]) -> None:
        """Replaces the pending deletions and insertions by those of the rows."""
        self.demands = {}
        for row in sorted(rows, key=_place):
            what, *cells = map(str, row)
            if what == "steps":
                self.steps = int(cells[0])
                continue
            time, _, id, *_ = cells
            demand = GraphUpdate(what == "insert", row[4], triple(row[5:]))
            _note(self.demands.setdefault(int(time), {}), id, demand)

    def _endless(self, ready: GraphUpdates) -> BuilderError:
        names = dict.fromkeys(self.machine.updates[id].rule for ids in ready.values() for id in ids)
        rule_names = ", ".join(f"`{name}`" for name in names)
        return BuilderError(
            f"after {self.limit} steps without an event there is still something to do for {rule_names}",
            hint="let an update delete what it acts on, or test for what it has inserted; "
            "`max_update_steps` in the options allows more",
        )


def _together(demanded: Iterable[tuple[str, GraphUpdate]]) -> GraphUpdates:
    """Returns the updates that demand each deletion or insertion."""
    demands: GraphUpdates = {}
    for id, demand in demanded:
        _note(demands, id, demand)
    return demands


def _note(demands: GraphUpdates, id: str, demand: GraphUpdate) -> None:
    """Notes that an update demands a deletion or insertion."""
    ids = demands.setdefault(demand, [])
    if id not in ids:
        ids.append(id)


def _insertions_last(demand: GraphUpdate) -> bool:
    return demand.inserts


def _place(row: Row) -> int:
    """Returns the position of a demand among those of its time."""
    return int(str(row[2])) if len(row) > 2 else 0
