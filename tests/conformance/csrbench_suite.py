"""The suite ``csrbench``: what the queries of CSRBench answer over its 34 snapshots, and what its windows hold.

CSRBench's windows hold [from, to), and so do ours. Its oracle tells each window that closes with something in it, from
the one on that begins at t0; so the stream begins at t0 here, the grid of the steps is shifted to it, and what is
emitted of a window without content is left out, and so are windows that begin before t0. Queries in C-SPARQL run under
the profile ``csparql`` as well: its t0 is the second of the first snapshot."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

from squall.model import Report, System
from squall.model.windows import HoppingWindow, SlidingWindow, Window
from squall.rdf import Event, Term, Triple, iri, literal
from tests.conformance import Case, KnownBad, LeftOut, Stages, entries, leave_out
from tests.conformance.evaluations import (
    WHOLE,
    Answers,
    Row,
    answers,
    as_events,
    compare,
    held,
    query,
    sources,
    streams,
    with_content,
)
from tests.conformance.stream_queries_suite import LEXERS, read
from tests.conformance.w3c_manifests import triples
from tests.conformance.yabench_suite import compare_as_cqels, compare_steps, settings

LANGUAGES = {"booleanquery": "sparql", "rspqlquery": "rspql", "csparqlquery": "csparql"}
ELSEWHERE = Path("..", "rsp-query-sets", "yasper", "queries", "csrbench")
"""The other corpora that have the same queries, by language."""


class Expected(NamedTuple):
    """The oracle's answers to a query through a window of this size and slide, in ms, by t0. `names` has its variables;
    some texts select more."""

    number: int
    size: int
    slide: int
    sparql: str
    names: tuple[str, ...]
    by_t0: dict[int, Answers]


def cases(folder: Path) -> Iterator[Case]:
    """Yields the oracle's queries for each t0, all texts of them for t0 = 0, and the windows."""
    for path in sorted((folder / "oracle-expected").glob("*.json")):
        expected = _expected(path)
        for t0 in expected.by_t0:
            yield Case(f"{path.stem} t0={t0}", partial(_run_oracle, folder, path, t0))
    yield from _properties(folder)
    for place in sorted((folder / "yabench-validation").glob("c*_Q*")):
        run = _run_csparql if place.name.startswith("csparql") else _run_cqels
        yield Case(f"yabench-validation/{place.name}", partial(run, folder, place))
    for path in sorted((folder / ELSEWHERE).rglob("query*.*")):
        if path.suffix in (".csparql", ".rspql", ".sparqlstream"):
            run_text = partial(_run_text, folder, _number(path.name), path.read_text(encoding="utf-8"), path.suffix[1:])
            yield Case(f"{path.parent.name}/{path.name}", run_text)
    for entry in entries(folder / "window_scopes.json"):
        yield Case(entry["id"], partial(_run_scopes, entry))


def _properties(folder: Path) -> Iterator[Case]:
    for path in sorted(folder.glob("*/srbench-queries*.properties")):
        file, result = path.relative_to(folder), _read_properties(path)
        for name, text in result.items():
            prefix, _, kind = name.rpartition(".")
            if kind in LANGUAGES:
                window = HoppingWindow(int(result[f"{prefix}.window.size"]), int(result[f"{prefix}.window.slide"]))
                run = partial(_run_text, folder, _number(prefix), text, LANGUAGES[kind], window=window)
                yield Case(f"{file}/{name}", run)
            elif kind.endswith("query"):
                yield Case(f"{file}/{name}", partial(leave_out, f"there is no lexer for a `{kind}`"))


def _number(name: str) -> int:
    match = re.search(r"(?:query|Q)(\d+)", name)
    assert match, f"no number of a query in {name}"
    return int(match[1])


def _read_properties(path: Path) -> dict[str, str]:
    """Returns the values of a file of properties. A line that begins no property continues the one before it."""
    results: dict[str, str] = {}
    name = ""
    for line in path.read_text(encoding="utf-8").splitlines():
        entry = re.match(r"(#|srb\.[\w.]+) ?=? ?(.*)", line)
        if entry:
            name, line = entry.groups()
        results[name] = results.get(name, "") + line.rstrip().removesuffix("\\").replace("\\n", "\n") + "\n"
    return {name: text.strip() for name, text in results.items() if name.startswith("srb.")}


# The oracle's answers


@cache
def _expected(path: Path) -> Expected:
    document = json.loads(path.read_text(encoding="utf-8"))
    selected = re.sub(r"\([^)]*\)\s+AS", "", document["sparql"].partition("WHERE")[0])
    names = tuple(re.findall(r"\?(\w+)", selected))
    by_t0 = {
        int(t0): {window["to"]: [_row(binding, names) for binding in window["bindings"]] for window in windows}
        for t0, windows in document["expected_by_t0"].items()
    }
    size, slide = document["window_size_ms"], document["window_slide_ms"]
    return Expected(_number(document["query"]), size, slide, document["sparql"], names, by_t0)


def _row(binding: dict[str, Any], names: tuple[str, ...]) -> Row:
    return tuple(_term(binding[name]) for name in names)


def _term(cell: dict[str, str]) -> Term:
    return iri(cell["value"]) if cell["type"] == "uri" else literal(cell["value"], cell.get("datatype"))


def _due(folder: Path, number: int, window: HoppingWindow) -> Expected | None:
    """Returns the expected result of a query through a window; None if the case has none."""
    for path in sorted((folder / "oracle-expected").glob("*.json")):
        expected = _expected(path)
        if (expected.number, expected.size, expected.slide) == (number, window.size, window.step):
            return expected
    return None


@cache
def _snapshots(folder: Path) -> tuple[tuple[int, Triple], ...]:
    """Yields the triples of all snapshots, each with its time in ms."""
    results = []
    for path in sorted((folder / "data").glob("data_*.ttl")):
        time = 1000 * int(path.stem.rpartition("_")[2])
        results += [(time, triple) for triple in triples(path)]
    return tuple(results)


def _run_oracle(folder: Path, path: Path, t0: int, stages: Stages) -> None:
    expected = _expected(path)
    window = HoppingWindow(expected.size, expected.slide, origin=t0 + expected.size)
    events = as_events((time, fact) for time, fact in _snapshots(folder) if time >= t0)
    system = query(expected.sparql, "sparql", window=window, output="rstream", report=WHOLE)
    _check(system, events, window, expected, t0, stages)


def _check(
    system: System, events: list[Event], window: HoppingWindow, expected: Expected, t0: int, stages: Stages
) -> None:
    result = answers(system, events, stages, names=expected.names)
    outputs = with_content(result, events, lambda to: (to - window.size, to))
    compare({to: rows for to, rows in outputs.items() if to >= t0 + window.size}, expected.by_t0[t0])


def _run_text(
    folder: Path, number: int, text: str, language: str, stages: Stages, window: Window | None = None
) -> None:
    """Checks a query in its original text. A query without a window of its own reads through the given one."""
    read(text, language, LEXERS[f".{language}"])
    for profile in ("default", "csparql") if language == "csparql" else ("default",):
        outer = window if language == "sparql" and window is not None else SlidingWindow(1)
        system = query(text, language, profile, outer, "rstream", WHOLE)
        (own,) = {item for source in sources(system) for item in source.all_windows if isinstance(item, HoppingWindow)}
        (stream,) = streams(system) or ("",)
        expected = _due(folder, number, own)
        if expected is None:
            compare_steps(system, own, text, _snapshots(folder), stages)
            raise KnownBad(f"nobody says what query {number} answers through {own}; pyoxigraph answers the same")
        events = as_events(_snapshots(folder), stream)
        _check(system, events, own, expected, events[0].time if profile == "csparql" else 0, stages)


def _run_csparql(folder: Path, place: Path, stages: Stages) -> None:
    text, oracle, values = settings(place)
    window = HoppingWindow(values["WSIZE"], values["WSLIDE"])
    _run_text(folder, _number(place.name), text, "csparql", stages)
    _run_text(folder, _number(place.name), oracle, "sparql", stages, window=window)


def _run_cqels(folder: Path, place: Path, stages: Stages) -> None:
    """Checks a CQELS query against another engine. CQELS evaluates where the content changes, and the oracle has no
    answers for these times."""
    compare_as_cqels(place, _snapshots(folder), stages)


# Windows


def _facts(times: list[int]) -> list[tuple[int, Triple]]:
    return [(time, Triple(iri(f"urn:at:{time}"), iri("urn:p"), iri("urn:o"))) for time in times]


_ALL = "SELECT ?s WHERE { ?s ?p ?o }"


def _contents(window: Window, events: list[Event], stages: Stages) -> dict[int, set[Term | None]]:
    result = answers(query(_ALL, "sparql", window=window, output="rstream", report=WHOLE), events, stages)
    return {time: {row[0] for row in rows} for time, rows in result.items()}


def _subjects(events: list[Event], begin: int, end: int) -> set[Term]:
    return {triple.subject for triple in held(events, begin, end)}


def _run_window_close(entry: dict[str, Any], stages: Stages) -> None:
    """Checks facts at both ends of every window and next to them. The first windows, which begin before t0, are left
    out."""
    scopes, t0, size = entry["expected_scopes"], entry["t0_ms"], entry["size_ms"]
    times = sorted({max(edge + beside, t0) for scope in scopes for edge in scope for beside in (-1, 0, 1)})
    events = as_events(_facts(times))
    result = _contents(HoppingWindow(size, entry["slide_ms"], origin=t0 + size), events, stages)
    ends = [time for time in sorted(result) if time >= t0 + size][: len(scopes)]
    assert ends == [end for _, end in scopes]
    for begin, end in scopes:
        assert result[end] == _subjects(events, begin, end), f"[{begin}, {end}): {result[end]}"


def _run_content_change(entry: dict[str, Any], stages: Stages) -> None:
    """Runs a window with steps under the report policy `change`. What is reported at an arrival is what the oldest open
    window has; on a grid of time units that is [from, t + unit). What came before t0 is in no window; ours are also
    evaluated when a fact expires."""
    scopes = [scope for scope in entry["expected_scopes"] if scope is not None]
    times = [time for time in entry["data_timestamps_ms"] if time >= entry["t0_ms"]]
    events = as_events(_facts(times))
    window = HoppingWindow(entry["size_ms"], entry["slide_ms"], origin=entry["t0_ms"])
    system = query(_ALL, "sparql", window=window, output="rstream", report=Report("change"))
    results = {time: {row[0] for row in rows} for time, rows in answers(system, events, stages).items()}
    assert [time for time in results if time in times] == [end - entry["time_unit_ms"] for _, end in scopes]
    for begin, end in scopes:
        content = results[end - entry["time_unit_ms"]]
        assert content == _subjects(events, begin, end), f"[{begin}, {end}): {content}"


SCOPES = {"window_close": _run_window_close, "content_change": _run_content_change}


def _run_scopes(entry: dict[str, Any], stages: Stages) -> None:
    if entry["policy"] not in SCOPES:
        raise LeftOut(f"the policy `{entry['policy']}` is not known")
    SCOPES[entry["policy"]](entry, stages)
