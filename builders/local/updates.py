"""Update steps: the deletions and insertions of an instant take effect at the next one, deletions first.

Static data have no next instant. There steps follow one another at once until no update demands anything
(docs/decisions/0011-updates.md). Timers that updates have set fire at their times (docs/decisions/0102-timers.md).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import attrgetter

from squall.builders.local.timers import Timers
from squall.builders.runtime.dataflow import Dataflow
from squall.builders.runtime.operators.update import GraphUpdate
from squall.builders.runtime.zset import Row, triple
from squall.contracts import DeadLetterLedger
from squall.errors import BuilderError
from squall.functions.timers import TIMERS, fired
from squall.rdf import ALWAYS, FOREVER

GraphUpdates = dict[GraphUpdate, list[str]]
"""The deletions and insertions of a time, each with the nodes of the updates that demand it."""


class UpdateSteps:
    """Applies the updates of a dataflow, step by step.

    Args:
        dataflow: The dataflow.
        max_steps: The most steps without an event in between, or a timer that fires before one.
        ledger: The ledger for timers that cannot be set, or None: then they are errors.
    """

    def __init__(self, dataflow: Dataflow, max_steps: int, ledger: DeadLetterLedger | None = None) -> None:
        self.dataflow = dataflow
        self.max_steps = max_steps
        self.step_count = 0
        self.has_input_ended = False
        """Whether no event is known to follow: timers that fire now are no reason for further steps."""
        self.timers = Timers(dataflow.input.inserted, dataflow.plan.sets_timers, ledger)
        """The timers that updates have set."""
        self.expected_times: deque[int] = deque()
        """The times of events, at some of which this dataflow reads nothing, in order (integer ms)."""
        self.pending: dict[int, GraphUpdates] = {}
        """The pending deletions and insertions, by time."""

    @property
    def next_step_time(self) -> int:
        """The time of the next step, or of the next timer (integer ms), or FOREVER."""
        return min(self._next_effect_time, self.timers.next_time)

    @property
    def _next_effect_time(self) -> int:
        return min(self.pending, default=FOREVER)

    def continue_with(self, dataflow: Dataflow, new_ids: Mapping[str, str]) -> None:
        """Continues with a dataflow of another plan of the same program.

        Args:
            dataflow: The other dataflow.
            new_ids: The ids that the update nodes have there.
        """
        self.dataflow = dataflow
        self.pending = {
            time: {update: [new_ids[id] for id in ids] for update, ids in graph_updates.items()}
            for time, graph_updates in self.pending.items()
        }

    def reset_step_count(self) -> None:
        """Resets the number of steps, since an event has come."""
        self.step_count, self.has_input_ended = 0, False

    def expect_events(self, times: Iterable[int]) -> None:
        """Sets the times of events, at some of which this dataflow reads nothing."""
        self.expected_times = deque([*list(self.expected_times)[-1:], *sorted(times)])

    def update_static_data(self, begin: int) -> None:
        """Updates static data until no update demands anything. begin: the time of what always holds (integer ms).

        Then the facts of derived streams are output, again at each step that follows. What rules without a body insert
        is there from the start.
        """
        self.timers.begin = begin
        updates = self.dataflow.input.updates.items()
        self._change_graphs(_nodes_by_update((id, update) for id, op in updates for update in op.initial), ALWAYS)
        for streams_emit in (False, True):
            self.dataflow.run(ALWAYS, complete=streams_emit)
            while self.collect(ALWAYS):
                self.apply(ALWAYS)
                self.dataflow.run(ALWAYS, complete=streams_emit)

    def collect(self, now: int) -> bool:
        """Collects what updates demand at an instant, and returns whether there is anything.

        The time of its effect is an evaluation instant.
        """
        is_any = False
        for id, op in self.dataflow.input.updates.items():
            for since, graph_update in op.pop_graph_updates(now):
                time, is_any = ALWAYS if since == ALWAYS else since + 1, True
                _add_node(self.pending.setdefault(time, {}), id, graph_update)
        for schedule in self.dataflow.instants if is_any else ():
            schedule.add_instant(self._next_effect_time)
        return is_any

    def apply(self, time: int) -> None:
        """Applies the deletions and insertions of this time, and then fires the timers that are due.

        Raises:
            BuilderError: There are too many steps, or a timer cannot be set.
        """
        graph_updates = self.pending.pop(time, {})
        if graph_updates:
            self._apply(graph_updates, time)
        self._fire(time)

    def _fire(self, time: int) -> None:
        """Fires the timers that are due: an evaluation instant."""
        has_fired = False
        for timer, updates in self.timers.pop_due(time):
            has_fired = True
            self.dataflow.change(self.dataflow.input.remove(timer, time, TIMERS))
            self.dataflow.change(self.dataflow.input.insert(fired(timer), time, TIMERS, updates))
        if has_fired:
            self.step_count = self.step_count if self.has_input_ended else 0
            for schedule in self.dataflow.instants:
                schedule.add_instant(time)

    def _apply(self, graph_updates: GraphUpdates, time: int) -> None:
        while self.expected_times and self.expected_times[0] <= time:
            self.expected_times.popleft()
            self.reset_step_count()
        self.step_count += 1
        if self.step_count > self.max_steps:
            raise self._endless(graph_updates)
        self._change_graphs(graph_updates, time)

    def _change_graphs(self, graph_updates: GraphUpdates, time: int) -> None:
        for update in sorted(graph_updates, key=attrgetter("inserts")):
            if update.inserts:
                self._insert(update, time, graph_updates[update])
            else:
                self.dataflow.change(self.dataflow.input.remove(update.fact, time, update.stream))

    def _insert(self, update: GraphUpdate, time: int, ids: Sequence[str]) -> None:
        assert update.stream is not None
        fact = self.timers.inserted_fact(update, time, self.dataflow.input.updates[ids[0]].rule)
        if fact is not None:
            self.dataflow.change(self.dataflow.input.insert(fact, time, update.stream, ids))

    # Pending deletions and insertions as rows of text (`squall.builders.runtime.operators.state.RowSerializable`)

    def rows(self) -> Iterator[Row]:
        """Yields the number of steps, and a row for each pending deletion and insertion."""
        yield "steps", str(self.step_count)
        for time, graph_updates in self.pending.items():
            pairs = ((update, id) for update, ids in graph_updates.items() for id in ids)
            for number, (update, id) in enumerate(pairs):
                kind = "insert" if update.inserts else "delete"
                yield (kind, str(time), str(number), id, update.stream, *update.fact)

    def load_rows(self, rows: Sequence[Row]) -> None:
        """Replaces the pending deletions and insertions by those of the rows."""
        self.pending = {}
        for row in sorted(rows, key=_place):
            kind, *cells = map(str, row)
            if kind == "steps":
                self.step_count = int(cells[0])
                continue
            time, _, id, *_ = cells
            graph_update = GraphUpdate(kind == "insert", row[4], triple(row[5:]))
            _add_node(self.pending.setdefault(int(time), {}), id, graph_update)

    def _endless(self, graph_updates: GraphUpdates) -> BuilderError:
        names = dict.fromkeys(self.dataflow.input.updates[id].rule for ids in graph_updates.values() for id in ids)
        rule_names = ", ".join(f"`{name}`" for name in names)
        return BuilderError(
            f"after {self.max_steps} steps without an event there is still something to do for {rule_names}",
            hint="let an update delete what it acts on, or test for what it has inserted, and set no timer for ever "
            "behind the end of the input; `max_update_steps` in the options allows more",
        )


def _nodes_by_update(pairs: Iterable[tuple[str, GraphUpdate]]) -> GraphUpdates:
    """Returns the nodes that demand each deletion or insertion, from pairs of both."""
    graph_updates: GraphUpdates = {}
    for id, graph_update in pairs:
        _add_node(graph_updates, id, graph_update)
    return graph_updates


def _add_node(graph_updates: GraphUpdates, id: str, graph_update: GraphUpdate) -> None:
    """Adds a node that demands a deletion or insertion."""
    ids = graph_updates.setdefault(graph_update, [])
    if id not in ids:
        ids.append(id)


def _place(row: Row) -> int:
    """Returns the position of a deletion or insertion among those of its time."""
    return int(str(row[2])) if len(row) > 2 else 0
