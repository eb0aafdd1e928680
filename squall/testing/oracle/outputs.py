"""What comes out at which instants (relation to stream)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from squall.model import OutputSpec, Report
from squall.rdf import Event, Fact, Quad
from squall.testing.oracle.base import BEGIN, Answer, Item, Names
from squall.testing.oracle.validity import is_heard, sources_of

_Answered = tuple[str, Item]
"""What is answered, with the query that does: each has answers of its own. Facts are everybody's."""
Items = list[tuple[_Answered, Names]]
"""An answer, each item as often as it is in it, with the rules that may be named."""


def with_makers(timeline: dict[int, Answer]) -> dict[int, Items]:
    found: dict[int, Items] = {}
    since: dict[Fact | Quad, Names] = {}
    for time, answer in timeline.items():
        since = {fact: names | since.get(fact, frozenset()) for fact, names in answer.facts.items()}
        items: Items = [(("", fact), since[fact]) for fact in sorted(answer.facts, key=str)]
        items += [((query, item), frozenset((query,))) for item, query in answer.solutions]
        found[time] = items
    return found


def reported(
    telling: OutputSpec, events: Sequence[Event], timeline: dict[int, Items], instants: set[int], latest: int
) -> Iterator[tuple[int, Items]]:
    """The instants at which the answer is told, with the answer. latest: the time to which any stream has come."""
    if telling.report.policy == "periodic":
        last = max(instants) if telling.output == "rstream" else max(timeline)
        yield from _without_gaps(_periodic(telling, events, timeline, max(last, latest)), timeline)
        return
    previous: list[_Answered] = []
    for time, items in timeline.items():
        if telling.output != "rstream":
            yield time, items
        elif time in instants:
            now = [item for item, _ in items]
            if _is_told(telling.report, previous, now):
                yield time, items
            previous = now


def _is_told(report: Report, previous: Sequence[_Answered], now: Sequence[_Answered]) -> bool:
    """Both are in order, that of a query or else by their text."""
    return {"close": True, "change": now != previous, "nonempty": bool(now)}[report.policy]


def _periodic(
    telling: OutputSpec, events: Sequence[Event], timeline: dict[int, Items], last: int
) -> Iterator[tuple[int, Items]]:
    """What is at `ALWAYS`, and the multiples of the period from the first event that is read to the last time, rounded
    up."""
    yield from ((time, items) for time, items in timeline.items() if time < BEGIN)
    period = telling.report.period
    read = [event.time for source in sources_of(telling.rules) for event in events if is_heard(source, event)]
    if read:
        for time in range(_up(min(read), period), _up(last, period) + 1, period):
            yield time, timeline[max(at for at in timeline if at <= time)]


def _without_gaps(told: Iterator[tuple[int, Items]], timeline: dict[int, Items]) -> Iterator[tuple[int, Items]]:
    """The same, where gaps between what is told at one time and at the next are not looked at: any rule that made it in
    between may be named."""
    made: dict[_Answered, Names] = {}
    left = list(timeline.items())
    for time, items in told:
        while left and left[0][0] <= time:
            for item, names in left.pop(0)[1]:
                made[item] = made.get(item, frozenset()) | names
        found = [(item, made[item]) for item, _ in items]
        yield time, found
        made = dict(found)


def _up(time: int, period: int) -> int:
    return -(-time // period) * period


def handed_on(output: str, before: Items, now: Items) -> Items:
    """All (rstream), or what one answer has more than the other: a fact once, a solution as often as it is more."""
    if output == "rstream":
        return now
    left, right = (now, before) if output == "istream" else (before, now)
    others = Counter(item for item, _ in right)
    found: Items = []
    for item, names in left:
        others[item] -= 1
        if others[item] < 0:
            found.append((item, names))
    return found
