"""How many rows events bring to the first nodes that keep rows: counted by the driver, to choose what goes to all
tasks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from squall.builders.distributed.spread import Address
from squall.builders.machine import Machine
from squall.plan import Plan
from squall.rdf import Event

_TOGETHER = 1000
"""Events that are counted at a time."""


class Arriving:
    """Counts, by input, the rows that come there from the sources. rows: so far."""

    def __init__(self, plan: Plan) -> None:
        self.rows: Counter[Address] = Counter()
        self._machine = Machine(plan, hosted=())

    def seen(self, events: Iterable[Event]) -> Iterator[Event]:
        """The events, which are counted when they are taken."""
        left = iter(events)
        while some := list(islice(left, _TOGETHER)):
            self.count(some)
            yield from some

    def count(self, events: Sequence[Event]) -> None:
        """Counts what events bring."""
        self._machine.read(events)
        self._machine.run()
        waiting, self._machine.outbox = self._machine.outbox, {}
        self.rows.update({address: len(entries) for address, entries in waiting.items()})
