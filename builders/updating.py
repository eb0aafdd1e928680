"""Updates at work: what they demand at an instant is done at the next one, all deletions before all insertions.

Over static data there is no next instant: there it is done at once, again and again, until nothing more is demanded
(docs/decisions/0011-updates.md).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence

from squall.builders.machine import Machine
from squall.builders.rows.entries import Row, triple
from squall.builders.rows.update import Demand
from squall.errors import BuilderError
from squall.rdf import ALWAYS, FOREVER


class Updating:
    """The updates of a machine. limit: how many steps they may take without an event in between."""

    def __init__(self, machine: Machine, limit: int) -> None:
        self.machine = machine
        self.limit = limit
        self.steps = 0
        self.coming: deque[int] = deque()
        """When events come of which nothing is read here, in order (integer ms)."""
        self.demands: dict[int, dict[Demand, str]] = {}
        """What is to be done, by the time at which it is; with the node of the first update to demand it."""

    @property
    def due(self) -> int:
        """The next time at which something is to be done (integer ms); FOREVER: never."""
        return min(self.demands, default=FOREVER)

    def rest(self) -> None:
        """An event has come: steps are counted anew."""
        self.steps = 0

    def expect(self, times: Iterable[int]) -> None:
        """Events come at these times, and at some of them none of which anything is read here."""
        self.coming = deque([*list(self.coming)[-1:], *sorted(times)])

    def settle(self) -> None:
        """Updates static data, read before, until nothing more is demanded. Then streams that the program makes are
        told what they are told of these, and again at each step to which that leads. What rules without a body insert
        is there from the start."""
        for id, op in self.machine.updates.items():
            for demand in op.initial:
                self._apply(demand, ALWAYS, id)
        for streams_are_told in (False, True):
            self.machine.run(ALWAYS, complete=streams_are_told)
            while self.collect(ALWAYS):
                self.apply(ALWAYS)
                self.machine.run(ALWAYS, complete=streams_are_told)

    def collect(self, now: int) -> bool:
        """Takes down what is demanded at an instant; whether anything is. What comes of it is an evaluation instant."""
        found = self.machine.demanded(now)
        for since, id, demand in found:
            time = ALWAYS if since == ALWAYS else since + 1
            self.demands.setdefault(time, {}).setdefault(demand, id)
        for instants in self.machine.instants if found else ():
            instants.add_instant(self.due)
        return bool(found)

    def apply(self, time: int) -> None:
        """Does what is to be done at this time. Raises BuilderError if it goes on like this for too long."""
        due = self.demands.pop(time, {})
        if not due:
            return
        while self.coming and self.coming[0] <= time:
            self.coming.popleft()
            self.rest()
        self.steps += 1
        if self.steps > self.limit:
            raise self._endless(due)
        for demand in sorted(due, key=_insertions_last):
            self._apply(demand, time, due[demand])

    def _apply(self, demand: Demand, time: int, id: str) -> None:
        if demand.inserts:
            assert demand.stream is not None
            self.machine.insert(demand.fact, time, demand.stream, id)
        else:
            self.machine.remove(demand.fact, time, demand.stream)

    # What there is to do, as rows of text (`squall.builders.rows.memory.Listed`)

    def rows(self) -> Iterator[Row]:
        """All that is to be done, and how many steps were taken."""
        yield "steps", str(self.steps)
        for time, demands in self.demands.items():
            for number, (demand, id) in enumerate(demands.items()):
                what = "insert" if demand.inserts else "delete"
                yield (what, str(time), str(number), id, demand.stream, *demand.fact)

    def take(self, rows: Sequence[Row]) -> None:
        """This is all that is to be done."""
        self.demands = {}
        for row in sorted(rows, key=_place):
            what, *cells = map(str, row)
            if what == "steps":
                self.steps = int(cells[0])
                continue
            time, _, id, *_ = cells
            demand = Demand(what == "insert", row[4], triple(row[5:]))
            self.demands.setdefault(int(time), {})[demand] = id

    def _endless(self, due: dict[Demand, str]) -> BuilderError:
        names = dict.fromkeys(self.machine.updates[id].rule for id in due.values())
        named = ", ".join(f"`{name}`" for name in names)
        return BuilderError(
            f"after {self.limit} steps without an event there is still something to do for {named}",
            hint="let an update delete what it acts on, or test for what it has inserted; `steps` in the options "
            "allows more",
        )


def _insertions_last(demand: Demand) -> bool:
    return demand.inserts


def _place(row: Row) -> int:
    """The place of a demand among those of its time."""
    return int(str(row[2])) if len(row) > 2 else 0
