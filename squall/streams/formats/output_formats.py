"""The formats that outputs are written in, by name and by the endings of files."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterable
from typing import Any

from squall.contracts import Output
from squall.errors import UsageError
from squall.rdf import ALWAYS, XSD_STRING, Boolean, Evaluated, Quad, Solution, Triple, iri_text, is_blank, is_iri, parts
from squall.streams.formats import check_library, rdf_messages
from squall.streams.formats.encoders import Encoder, EvaluationLines, Lines, OneDocument, Rows, comment_line
from squall.streams.formats.evaluations import Evaluation, answered
from squall.streams.formats.graphs import TriG, quad, timed_quad
from squall.streams.formats.rdf_patch import transaction
from squall.streams.formats.results import DOCUMENTS, json_line


def _nt(output: Output) -> bytes:
    fact = output[0]  # by number and at once: every line of every run is made here
    if not isinstance(fact, Triple):
        return comment_line(output)
    subject, predicate, object = fact
    return f"{subject} {predicate} {object} .\n".encode()


def _ntt(output: Output) -> bytes:
    time = "-infinity" if output.time == ALWAYS else output.time
    return f"{time} {output.fact}\n".encode() if isinstance(output.fact, Triple) else comment_line(output, f"{time} ")


def _ndjson(output: Output) -> bytes:
    time = None if output.time == ALWAYS else output.time
    entry: dict[str, Any] = {"time": time, "rule": output.rule}
    answer = answered(output)
    match answer:
        case Evaluated():
            return b""
        case Boolean(value=value):
            entry["boolean"] = value
        case Solution(names=names, values=values):
            terms = (None if term is None else _json_term(term) for term in values)
            entry["solution"] = dict(zip(names, terms, strict=True))
        case Triple():
            entry.update(zip(("subject", "predicate", "object"), map(_json_term, answer), strict=True))
        case Quad():
            entry.update(zip(("subject", "predicate", "object", "graph"), map(_json_term, answer), strict=True))
        case _:
            arguments = [_json_term(term) for term in answer.arguments]
            entry.update(relation=_json_term(answer.relation), arguments=arguments)
    return (json.dumps(entry, ensure_ascii=False) + "\n").encode()


def _json_term(term: str) -> dict[str, str]:
    """A term as SPARQL 1.1 Query Results JSON has it (section 3.2.2), but for the member ``language``, which is
    ``xml:lang`` there."""
    if is_iri(term):
        return {"type": "uri", "value": iri_text(term)}
    if is_blank(term):
        return {"type": "bnode", "value": term[2:]}
    lexical, datatype, language = parts(term)
    entry = {"type": "literal", "value": lexical}
    if language:
        entry["language"] = language
    elif datatype != XSD_STRING:
        entry["datatype"] = datatype
    return entry


def _csv(cells: Iterable[str]) -> bytes:
    """RFC 4180."""
    row = io.StringIO()
    csv.writer(row).writerow(cells)
    return row.getvalue().encode()


def _tsv(cells: Iterable[str]) -> bytes:
    """Tabs inside of cells are escaped, as they may be in N-Triples."""
    return ("\t".join(cell.replace("\t", "\\t") for cell in cells) + "\n").encode()


_TABLES: dict[str, Callable[[Iterable[str]], bytes]] = {"csv": _csv, "tsv": _tsv}
LINES: dict[str, Callable[[Output], bytes]] = {
    "nt": _nt,
    "ntt": _ntt,
    "nq": quad,
    "nqt": timed_quad,
    "ndjson": _ndjson,
}
"""What makes a line of each output."""
SOLUTIONS = frozenset((*_TABLES, *DOCUMENTS))
"""The formats of a table: where there are solutions of a query, nothing else has its columns."""
BINARY = frozenset(("jelly", "jelly-messages"))
"""The formats that are no text."""
MESSAGES: dict[str, Callable[[Evaluation], bytes]] = {
    "nt-messages": rdf_messages.lines,
    "nq-messages": rdf_messages.lines,
    "trig-messages": rdf_messages.trig,
}
"""What makes the text of a message of each evaluation."""
NO_SOLUTIONS = frozenset((*LINES, "trig", "rdfp", *BINARY, *MESSAGES)) - {"ndjson"}
"""The formats of triples and quads alone."""
NO_GRAPHS = frozenset(("nt", "ntt", "nt-messages"))
"""The formats of triples alone."""
EVALUATIONS = {"ndjson-evaluations": json_line, "rdfp": transaction}
"""What makes of each evaluation a line, or several."""
NAMES = (*LINES, *_TABLES, "trig", *MESSAGES, *BINARY, *DOCUMENTS, *EVALUATIONS, "table")
"""The names of all formats of outputs."""

_ENDINGS = (*LINES, *_TABLES, "trig", "jelly", "rdfp", *DOCUMENTS)
BY_ENDING = {f".{name}": name for name in _ENDINGS} | {".jsonl": "ndjson"}


def of_ending(name: str) -> str | None:
    """The format of a file by the ending of its name; None if that is not known."""
    return next((format for ending, format in BY_ENDING.items() if name.endswith(ending)), None)


def check_format(name: str) -> None:
    """Raises UsageError if there is no such format of sinks, PluginError where what it needs is not installed."""
    if name not in NAMES:
        raise UsageError(f"outputs cannot be written as `{name}`", hint=f"formats: {', '.join(NAMES)}")
    check_library(name)


def encoder(format: str, uri: str, alone: bool = False) -> Encoder:
    """What writes a format to the sink of an address. alone: what is written may have to be read without what was
    before."""
    if format in _TABLES:
        return Rows(uri, _TABLES[format])
    if format in DOCUMENTS:
        return OneDocument(uri, format, DOCUMENTS[format])
    if format in EVALUATIONS:
        return EvaluationLines(EVALUATIONS[format])
    if format == "trig":
        return TriG()
    if format in MESSAGES:
        return rdf_messages.MessageLog(MESSAGES[format], alone)
    if format in BINARY:
        from squall.streams.formats import jelly

        return jelly.Frames(alone) if format == "jelly" else jelly.MessageFrames(alone)
    if format == "table":
        from squall.streams.formats.tables import Tables  # on demand: it needs `rich` and `squall.explain`

        return Tables()
    return Lines(LINES[format])
