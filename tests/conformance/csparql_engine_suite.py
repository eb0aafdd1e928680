"""The suite ``csparql-engine``: how many triples the windows of C-SPARQL's engine count, and its query texts.

It runs under the profile of the engine. An engine that takes its time from the triples sees a window close when a
triple comes at its end or later; so windows that close behind the last triple are left out. A window that is reported
at T holds [T - range, T), and the steps begin at the second of the first triple.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

from squall.rdf import Event, Triple, iri, parts
from tests.conformance import Case, KnownBad, Stages, stream_queries_suite
from tests.conformance.evaluations import answers, query, streams


def cases(folder: Path) -> Iterator[Case]:
    """Yields the cases with counts, and then the texts."""
    return chain(_counts(folder), stream_queries_suite.cases(folder))


def _counts(folder: Path) -> Iterator[Case]:
    path = folder / "external_timestamp_window_counts.json"
    if path.is_file():
        document = json.loads(path.read_text(encoding="utf-8"))
        for entry in document["cases"]:
            yield Case(entry["id"], partial(_run, document["query_template"], entry))


def _run(template: str, entry: dict[str, Any], stages: Stages) -> None:
    text = template.replace("{range_s}", str(entry["range_s"])).replace("{step_s}", str(entry["step_s"]))
    system = query(text, "csparql", "csparql")
    (stream,) = streams(system)
    times = entry["timestamps_ms"]
    events = [Event(time, (_triple(place),), stream) for place, time in enumerate(times)]
    results = {time: rows for time, rows in answers(system, events, stages).items() if times[0] < time <= times[-1]}
    counts = [int(parts(cell).lexical) for _, rows in sorted(results.items()) for (cell,) in rows if cell is not None]
    if not entry.get("agrees_with_clean_semantics"):  # the authors describe a defect of the engine
        assert counts == _plain(times, 1000 * entry["range_s"], 1000 * entry["step_s"])
        raise KnownBad(f"the engine counts {entry['expected_counts'][:6]} ..., the windows hold {counts[:6]} ...")
    assert counts == entry["expected_counts"], f"{counts}, not {entry['expected_counts']}"


def _triple(place: int) -> Triple:
    return Triple(*(iri(f"http://example.org/{slot}{place:02}") for slot in "spo"))


def _plain(times: list[int], size: int, step: int) -> list[int]:
    """Returns how many triples came in [T - size, T), for each step T from the second of the first triple on."""
    first = times[0] // 1000 * 1000 + step
    return [sum(end - size <= time < end for time in times) for end in range(first, times[-1] + 1, step)]
