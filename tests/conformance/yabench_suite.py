"""The suite ``yabench``: the contents of windows, and queries with their configurations over YABench's streams.

YABench's windows hold [from, to), and so do ours. What it expects of a query is what its oracle query answers over the
content of each window: pyoxigraph says what that is. ``<http://yabench/avg>`` is AVG here, which of nothing is 0
(SPARQL 1.1 Query, section 18.5.1.5), while YABench's own function is unbound.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from squall.model import Report, System
from squall.model.windows import HoppingWindow, milliseconds
from squall.rdf import ALWAYS, Event, Fact, Triple, iri
from tests.conformance import Case, Stages, entries
from tests.conformance.evaluations import (
    WHOLE,
    Row,
    answers,
    as_events,
    bag,
    compare,
    held,
    peer,
    query,
    sources,
    streams,
    timed_lines,
)

ALL = "SELECT ?s ?p ?o WHERE { ?s ?p ?o }"
INPUT = Path("oracle-tests", "tests", "AbstractOracleTestTest", "input.stream")
"""The stream over which the configured queries run. Their own stream comes from a generator that is not available."""


def cases(folder: Path) -> Iterator[Case]:
    """Yields the windows, the averages, and the configurations of queries."""
    for entry in entries(folder / "windows.json", "tests"):
        yield Case(entry["id"], partial(_run_calls if "calls" in entry else _run_windows, folder, entry))
    for place in sorted((folder / "oracle-tests" / "QueryExecutorTest").glob("*")):
        yield Case(place.name, partial(_run_average, place))
    for path in sorted(folder.rglob("config.json")):
        run = _run_cqels if _is_cqels(path) else _run_csparql
        yield Case(str(path.parent.relative_to(folder)), partial(run, path.parent, folder / INPUT))


def _is_cqels(path: Path) -> bool:
    return "cqels" in str(path.parent.relative_to(path.parents[2]))


# Windows


def _run_windows(folder: Path, entry: dict[str, Any], stages: Stages) -> None:
    """Checks every window that closes. The first of them begin before the stream does."""
    place = folder / entry["dir"]
    events = as_events(timed_lines(place / "input.stream"))
    window = HoppingWindow(entry["size"], entry["slide"], entry["t0"])
    result = answers(query(ALL, "sparql", window=window, output="rstream", report=WHOLE), events, stages)
    expected = {item["to"]: [tuple(fact) for _, fact in timed_lines(place / item["file"])] for item in entry["windows"]}
    assert entry["then"] == "no further window"
    compare({time: rows for time, rows in result.items() if rows}, expected)


def _run_calls(folder: Path, entry: dict[str, Any], stages: Stages) -> None:
    """Runs a case that expects the content of the window whenever it changes: that of the oldest open window, under the
    report policy `change`. Both ends of these scopes count. So they hold what a window [from, to) has, and what a
    window (from, to] has."""
    times = [time for time, _ in entry["calls"]]
    events = [Event(time, (Triple(iri(f"urn:at:{time}"), iri("urn:p"), iri("urn:o")),)) for time in times]
    results: dict[int, list[Row]] = {}
    for closed in (False, True):
        window = HoppingWindow(entry["size"], entry["slide"], closed=closed)
        system = query(ALL, "sparql", window=window, output="rstream", report=Report("change"))
        for time, rows in answers(system, events, stages).items():
            results[time] = list(dict.fromkeys([*results.get(time, ()), *rows])) if time in times else []
    results = {time: rows for time, rows in results.items() if rows}
    expected = {time: [tuple(fact) for fact in held(events, begin, end + 1)] for time, (begin, end) in entry["calls"]}
    compare(results, expected)


# Queries


def settings(place: Path) -> tuple[str, str, dict[str, int]]:
    """Returns the query of an engine, that of the oracle, and the sizes in ms of a configuration. A superfluous comma
    in a file of settings is ignored."""
    text = re.sub(r",(\s*[\]}])", r"\1", (place / "config.json").read_text(encoding="utf-8"))
    values = json.loads(text)["vars"]
    engine, oracle = (
        _filled((place / f"{name}.query").read_text(encoding="utf-8"), values) for name in ("engine", "oracle")
    )
    return engine, oracle, {name: milliseconds(values[name]) for name in ("WSIZE", "WSLIDE")}


def _filled(text: str, values: dict[str, str]) -> str:
    filled = re.sub(r"\$\{(\w+)\}", lambda name: values[name[1]], text)
    return filled.replace("<http://yabench/avg>", "AVG")


def _run_average(place: Path, stages: Stages) -> None:
    text = _filled((place / "query.template").read_text(encoding="utf-8"), {"TEMP": "50.0"})
    window = HoppingWindow(60_000, 30_000)
    system = query(text, "sparql", window=window, output="rstream", report=WHOLE)
    compare_steps(system, window, text, timed_lines(place / "input.stream"), stages)


def _run_csparql(place: Path, stream: Path, stages: Stages) -> None:
    text, oracle, values = settings(place)
    system = query(text, "csparql", "csparql")
    compare_steps(system, HoppingWindow(values["WSIZE"], values["WSLIDE"]), oracle, timed_lines(stream), stages)


def compare_steps(
    system: System, window: HoppingWindow, oracle: str, timed: Sequence[tuple[int, Fact]], stages: Stages
) -> None:
    """Compares what is emitted at each step with the oracle's query over [to - size, to): at each at which that is not
    empty, and at others that are emitted."""
    (stream,) = streams(system) or ("",)
    events = as_events(timed, stream)
    is_begun = any(window.begins_at_first_triple for source in sources(system) for window in source.all_windows)
    origin = events[0].time // 1000 * 1000 if is_begun else 0
    results = {to: rows for to, rows in answers(system, events, stages).items() if to != ALWAYS}
    grid = range(origin + window.step, events[-1].time + window.size + window.step, window.step)
    steps = {to for to in grid if held(events, to - window.size, to)}
    compare(results, {to: peer(oracle, held(events, to - window.size, to)) for to in steps.union(results)})


def _run_cqels(place: Path, stream: Path, stages: Stages) -> None:
    compare_as_cqels(place, timed_lines(stream), stages)


def compare_as_cqels(place: Path, timed: Sequence[tuple[int, Fact]], stages: Stages) -> None:
    """Holds a query of CQELS against what the oracle's query answers of what came in (T - size, T]: what is new at each
    instant T, and what has gone."""
    text, oracle, values = settings(place)
    size = values["WSIZE"]
    events = as_events(timed)
    instants = sorted({time for event in events for time in (event.time, event.time + size)})
    total = [bag(peer(oracle, held(events, time - size + 1, time + 1))) for time in instants]
    changes = list(zip(instants, [bag(peer(oracle, ())), *total], total, strict=False))
    new = {time: after - before for time, before, after in changes if after - before}
    removed_items = {time: before - after for time, before, after in changes if before - after}
    for output, expected in (("istream", new), ("dstream", removed_items)):
        system = query(text, "cqels", "cqels", output=output)
        (name,) = streams(system)
        outputs = answers(system, [event._replace(stream=name) for event in events], stages)
        results = {time: bag(rows) for time, rows in outputs.items() if time in instants}
        wrong = [time for time in instants if results.get(time) != expected.get(time)]
        assert not wrong, f"{output} at {wrong[0]}: {results.get(wrong[0])}, not {expected.get(wrong[0])}"
