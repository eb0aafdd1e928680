"""The suite ``cqels``: queries of CQELS over what arrives now."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

from squall.functions.values import value_key
from squall.rdf import ALWAYS, XSD, Event, Term, Triple, iri, literal, term
from tests.conformance import Case, KnownBad, Stages, entries
from tests.conformance.evaluations import Row, answers, bag, query, streams
from tests.conformance.w3c_manifests import triples

HAS_VALUE = iri("http://example.org/ontology#hasValue")
HAS_STREAM = iri("http://example.org/ontology#hasStream")
NAMED = ("streamURIAsVar", "severalStreamsAsVarsFromDataset")
"""The queries whose stream is a variable. A dataset clause says which streams there are."""


def cases(folder: Path) -> Iterator[Case]:
    """Yields the cases with answers, and then the texts without."""
    for entry in entries(folder / "expected.json", "tests"):
        run = partial(_run_averages, folder) if "expected_sequence" in entry else _run
        yield Case(entry["id"], partial(run, entry))
    for entry in entries(folder / "queries_from_tests.json"):
        if entry["context"] in NAMED:
            yield Case(entry["context"], partial(_run_named, folder, entry))


def _run(entry: dict[str, Any], stages: Stages) -> None:
    """Checks that there is one evaluation for each triple that arrives."""
    system = query(entry["query"], "cqels", "cqels")
    (stream,) = streams(system)
    (inputs,) = entry["stream"].values()
    events = [Event(1000 * place, (_triple(item),), stream) for place, item in enumerate(inputs, 1)]
    result = answers(system, events, stages)
    expected = [_terms(row) for row in entry.get("expected") or entry["expected_graph"]]
    assert sorted(result) == [event.time for event in events], f"answers at {sorted(result)}"
    assert bag(_all(result.values())) == bag(expected), f"{result}, not {expected}"


def _all(found: Iterable[list[Row]]) -> list[Row]:
    return list(chain.from_iterable(found))


def _triple(texts: list[str]) -> Triple:
    return Triple(*_terms(texts))


def _terms(texts: Iterable[str]) -> tuple[Term, ...]:
    return tuple(term(text) if text.startswith('"') else iri(text) for text in texts)


def _run_averages(folder: Path, entry: dict[str, Any], stages: Stages) -> None:
    """Checks the averages of a CQELS query.

    The average over ``[NOW]`` is each value that arrives. The average over all values is the sequence that CQELS
    reports, if the triples come in the order in which CQELS has read them: those of a resource together, and the last
    of each resource first.
    """
    results = sorted(triples(folder / entry["stream_file"]), key=lambda item: (item.subject, item.object), reverse=True)
    arriving = sorted(results, key=lambda item: item.subject)
    assert _averages(entry["query"], arriving, stages) == [value_key(item.object) for item in arriving]
    expected = [value_key(literal(str(value), XSD + "decimal")) for value in entry["expected_sequence"]]
    assert _averages(entry["query"].replace("[NOW]", "[ALL]"), arriving, stages) == expected
    raise KnownBad("the averages are those of all that has come, although the window is [NOW]")


def _averages(text: str, arriving: list[Triple], stages: Stages) -> list[object]:
    """Returns the emitted values, in the order of time."""
    system = query(text, "cqels", "cqels")
    (stream,) = streams(system)
    events = [Event(1000 * place, (item,), stream) for place, item in enumerate(arriving, 1)]
    result = answers(system, events, stages, until=1000 * len(events))
    return [value_key(cell) for _, rows in sorted(result.items()) for (cell,) in rows if cell is not None]


def _run_named(folder: Path, entry: dict[str, Any], stages: Stages) -> None:
    """Returns a triple for each stream of the data set: the emitted ones of the streams that the query reads."""
    static = triples(folder / "dataset.ttl")
    existing = {item.object[1:-1]: item.subject for item in static if item.predicate == HAS_STREAM}
    system = query(entry["text"], "cqels", "cqels")
    arriving = [Triple(owner, HAS_VALUE, literal(stream)) for stream, owner in existing.items()]
    events = [
        Event(1000 * place, (item,), stream)
        for place, (stream, item) in enumerate(zip(existing, arriving, strict=True), 1)
    ]
    result = answers(system, events, stages, [Event(ALWAYS, static)])
    request = [
        event
        for event, item in zip(events, arriving, strict=True)
        if item.subject in entry["text"] or "[]" in entry["text"]
    ]
    assert result == {event.time: [tuple(event.facts[0])] for event in request}
