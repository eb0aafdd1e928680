"""Relation to stream: which outputs appear at which instants."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from squall.model import OutputSpec, Report
from squall.rdf import Event, Fact, Quad
from squall.testing.oracle.base import BEGIN, Answer, Item, Names
from squall.testing.oracle.validity import affects, sources_of

_Answered = tuple[str, Item]
"""An answer with the name of its query: each query has answers of its own, and facts (`""`) are shared by all."""
Items = list[tuple[_Answered, Names]]
"""An answer as a bag of items, each with the names of the rules that an output may give for it."""


def with_rule_names(timeline: dict[int, Answer]) -> dict[int, Items]:
    items_by_time: dict[int, Items] = {}
    since: dict[Fact | Quad, Names] = {}
    for time, answer in timeline.items():
        since = {fact: names | since.get(fact, frozenset()) for fact, names in answer.facts.items()}
        items: Items = [(("", fact), since[fact]) for fact in sorted(answer.facts, key=str)]
        items += [((query, item), frozenset((query,))) for item, query in answer.solutions]
        items_by_time[time] = items
    return items_by_time


def reported(
    spec: OutputSpec, events: Sequence[Event], timeline: dict[int, Items], instants: set[int], latest: int
) -> Iterator[tuple[int, Items]]:
    """Yields the instants at which the answer is reported, with the answer. latest: the latest time of any stream."""
    if spec.report.policy == "periodic":
        last = max(instants) if spec.output == "rstream" else max(timeline)
        yield from _without_gaps(_periodic(spec, events, timeline, max(last, latest)), timeline)
        return
    previous: list[_Answered] = []
    for time, items in timeline.items():
        if spec.output != "rstream":
            yield time, items
        elif time in instants:
            now = [item for item, _ in items]
            if _is_reported(spec.report, previous, now):
                yield time, items
            previous = now


def _is_reported(report: Report, previous: Sequence[_Answered], now: Sequence[_Answered]) -> bool:
    """Returns whether the policy reports the answer. Both answers are sorted, by the query or by their text."""
    return {"close": True, "change": now != previous, "nonempty": bool(now)}[report.policy]


def _periodic(
    spec: OutputSpec, events: Sequence[Event], timeline: dict[int, Items], last: int
) -> Iterator[tuple[int, Items]]:
    """Yields the answer at `ALWAYS` and at the multiples of the period, from the first relevant event to the last time,
    rounded up."""
    yield from ((time, items) for time, items in timeline.items() if time < BEGIN)
    period = spec.report.period
    read = [event.time for source in sources_of(spec.rules) for event in events if affects(source, event)]
    if read:
        for time in range(_up(min(read), period), _up(last, period) + 1, period):
            yield time, timeline[max(at for at in timeline if at <= time)]


def _without_gaps(reports: Iterator[tuple[int, Items]], timeline: dict[int, Items]) -> Iterator[tuple[int, Items]]:
    """Yields the same reports, with the names of all rules that derived an item since the report before."""
    makers: dict[_Answered, Names] = {}
    remaining = list(timeline.items())
    for time, items in reports:
        while remaining and remaining[0][0] <= time:
            for item, names in remaining.pop(0)[1]:
                makers[item] = makers.get(item, frozenset()) | names
        named_items = [(item, makers[item]) for item, _ in items]
        yield time, named_items
        makers = dict(named_items)


def _up(time: int, period: int) -> int:
    return -(-time // period) * period


def emitted(output: str, before: Items, now: Items) -> list[tuple[_Answered, Names, str]]:
    """Returns the whole answer (rstream), or what one answer has more than the other: a fact once, a solution as often
    as its count differs. Each has its change: of `changes`, what was deleted comes first, then what was inserted."""
    match output:
        case "rstream":
            differences = [(now, "")]
        case "istream":
            differences = [(_surplus(now, before), "")]
        case "dstream":
            differences = [(_surplus(before, now), "")]
        case _:
            differences = [(_surplus(before, now), "delete"), (_surplus(now, before), "insert")]
    return [(item, names, change) for items, change in differences for item, names in items]


def _surplus(left: Items, right: Items) -> Items:
    """Returns what the left answer has more than the right one."""
    counts = Counter(item for item, _ in right)
    surplus: Items = []
    for item, names in left:
        counts[item] -= 1
        if counts[item] < 0:
            surplus.append((item, names))
    return surplus
