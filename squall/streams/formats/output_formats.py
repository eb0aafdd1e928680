"""The formats of outputs, by name and by file ending."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Collection, Iterable
from functools import partial
from typing import Any

from squall.contracts import Output
from squall.errors import UsageError
from squall.rdf import (
    ALWAYS,
    XSD_STRING,
    Boolean,
    Evaluated,
    Quad,
    Solution,
    Term,
    Triple,
    iri_text,
    is_blank,
    is_iri,
    parts,
)
from squall.streams.formats import check_library, rdf_messages
from squall.streams.formats.encoders import (
    DocumentEncoder,
    Encoder,
    EvaluationEncoder,
    LineEncoder,
    ResultSetEncoder,
    TableEncoder,
    comment_line,
)
from squall.streams.formats.evaluations import NO_DECLARATIONS, Declarations, Evaluation, answer_of, query_in_log
from squall.streams.formats.graphs import TriGEncoder, quad, timed_quad
from squall.streams.formats.plain_json import plain_json_line
from squall.streams.formats.quintuples import QuintupleEncoder
from squall.streams.formats.rdf_patch import transaction
from squall.streams.formats.results import DOCUMENTS, json_line, plain_value
from squall.streams.formats.update_requests import update_request


def _nt(output: Output) -> bytes:
    fact = output[0]  # by index, for speed: it is called for each output
    if not isinstance(fact, Triple) or output[3]:
        return comment_line(output)
    subject, predicate, object = fact
    return f"{subject} {predicate} {object} .\n".encode()


def _ntt(output: Output) -> bytes:
    time = "-infinity" if output.time == ALWAYS else output.time
    is_triple = isinstance(output.fact, Triple) and not output.change
    return f"{time} {output.fact}\n".encode() if is_triple else comment_line(output, f"{time} ")


def _ndjson(output: Output) -> bytes:
    time = None if output.time == ALWAYS else output.time
    entry: dict[str, Any] = {"time": time, "rule": output.rule}
    if output.change:
        entry["change"] = output.change
    answer = answer_of(output)
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
    """Returns a term as in SPARQL 1.1 Query Results JSON (section 3.2.2), with ``language`` for ``xml:lang``."""
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
    """Returns a line of CSV (RFC 4180)."""
    row = io.StringIO()
    csv.writer(row).writerow(cells)
    return row.getvalue().encode()


def _tsv(cells: Iterable[str]) -> bytes:
    """Returns a line of TSV. Tabs in cells are escaped, as N-Triples allows."""
    return ("\t".join(cell.replace("\t", "\\t") for cell in cells) + "\n").encode()


_ESCAPED = str.maketrans({"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r"})


def _plain_line(term: Term) -> str:
    """Returns the plain value of a term on one line and without tabs, as a cell of TSV."""
    return plain_value(term).translate(_ESCAPED)


TABLES: dict[str, tuple[Callable[[Iterable[str]], bytes], Callable[[Term], str] | None]] = {
    "csv": (_csv, plain_value),
    "tsv": (_tsv, _plain_line),
    "csv-terms": (_csv, None),
    "tsv-terms": (_tsv, None),
}
"""Functions that encode a row, and the term in a cell (None: in N-Triples)."""
LINES: dict[str, Callable[[Output], bytes]] = {
    "nt": _nt,
    "ntt": _ntt,
    "nq": quad,
    "nqt": timed_quad,
    "ndjson": _ndjson,
    "ndjson-values": plain_json_line,
}
"""Functions that encode an output as a line."""
FILES = ("parquet",)
"""The formats that are written as whole files, by a sink of their own (`squall.streams.sinks.parquet_files`)."""
ONE_HEADER = frozenset((*TABLES, *FILES))
"""The formats of a table of all evaluations, whose columns are the same for all of them."""
RESERVED_NAMES = frozenset(("ndjson-values", *ONE_HEADER))
"""The formats in which no variable may have the name of a column of all outputs."""
SOLUTIONS = frozenset((*ONE_HEADER, *DOCUMENTS))
"""The formats of a table, which has the columns of the solutions of a query."""
BINARY = frozenset(("jelly", "jelly-messages"))
"""The binary formats."""
MESSAGES: dict[str, Callable[[Evaluation], bytes]] = {
    "nt-messages": rdf_messages.lines,
    "nq-messages": rdf_messages.lines,
    "trig-messages": rdf_messages.trig,
}
"""Functions that encode an evaluation as the text of a message."""
LOGS: dict[str, Callable[[Evaluation, Collection[str]], bytes]] = {"rdfp": transaction, "ru": update_request}
"""Functions that encode an evaluation in a log of changes. Their last argument is the rules and queries whose outputs
have ceased to hold."""
FACTS = frozenset((*LINES, "jelly", "trig")) - {"ndjson", "ndjson-values"}
"""The formats of facts, in which the answers of queries are result sets."""
ENDS = "nt5"
"""The format that has an output when it ceases to hold, with the time since which it held."""
NO_SOLUTIONS = frozenset((*LOGS, ENDS))
"""The formats that cannot express the answers of queries: a log has facts, which it deletes again."""
CHANGES = frozenset((*LOGS, *ONE_HEADER, "ndjson", "ndjson-values", "table", ENDS))
"""The formats that say whether an output is inserted or deleted (`changes`)."""
NO_GRAPHS = frozenset(("nt", "ntt", "nt-messages", ENDS))
"""The formats that can only express triples."""
EVALUATIONS = {"ndjson-evaluations": json_line}
"""Functions that encode an evaluation as one or several lines."""
NAMES = (*LINES, *TABLES, "trig", *MESSAGES, *BINARY, *DOCUMENTS, *EVALUATIONS, *LOGS, ENDS, "table", *FILES)
"""The names of all formats of outputs."""
_RENAMED = {"csv-values": "csv", "tsv-values": "tsv"}
"""Names that formats had, and their present ones."""

_ENDINGS = (*LINES, "csv", "tsv", "trig", "jelly", *LOGS, ENDS, *DOCUMENTS, *FILES)
BY_ENDING = {f".{name}": name for name in _ENDINGS if name != "ndjson-values"} | {".jsonl": "ndjson"}


def of_ending(name: str) -> str | None:
    """Returns the format of a file by its ending, in which capitals do not matter; None if that is unknown."""
    return next((format for ending, format in BY_ENDING.items() if name.lower().endswith(ending)), None)


def check_format(name: str) -> None:
    """Checks the name of a format of sinks.

    Raises:
        UsageError: There is no such format.
        PluginError: Its library is not installed.
    """
    if name in _RENAMED:
        new_name = _RENAMED[name]
        hint = f"write `{new_name}`, which has plain values; `{new_name}-terms` has terms in N-Triples"
        raise UsageError(f"there is no format `{name}` any more", hint=hint)
    if name not in NAMES:
        raise UsageError(f"outputs cannot be written as `{name}`", hint=f"formats: {', '.join(NAMES)}")
    check_library(name)


def log_encoder(format: str, declarations: Declarations) -> Callable[[Evaluation], bytes]:
    """Returns the function that encodes an evaluation in a log of changes, by the name of the format."""
    encode = LOGS[format]
    return lambda evaluation: encode(evaluation, declarations.retracting)


def encoder(format: str, uri: str, alone: bool = False, declarations: Declarations = NO_DECLARATIONS) -> Encoder:
    """Returns the encoder of a format.

    Args:
        format: The name of the format.
        uri: The address of the sink, for messages.
        alone: Whether what is written must be readable without what was written before.
        declarations: What the program declares of its outputs.
    """
    if format in FACTS:
        return ResultSetEncoder(_fact_encoder(format, alone), declarations.ordered)
    if format in TABLES:
        return TableEncoder(uri, *TABLES[format], declarations.is_one_query)
    if format in DOCUMENTS:
        return DocumentEncoder(uri, format, DOCUMENTS[format])
    if format in LOGS:
        return EvaluationEncoder(log_encoder(format, declarations), query_in_log)
    if format == ENDS:
        if alone:
            hint = "write a file, or a log of changes: `rdfp`"
            raise UsageError(f"`{uri}` cannot be written as `{ENDS}`: an interval outlasts a connection", hint=hint)
        return QuintupleEncoder()
    if format in EVALUATIONS:
        return EvaluationEncoder(EVALUATIONS[format])
    if format in MESSAGES:
        return rdf_messages.MessageLogEncoder(MESSAGES[format], alone, declarations.ordered)
    if format in BINARY:
        from squall.streams.formats import jelly

        return jelly.MessageFrameEncoder(alone, declarations.ordered)
    if format == "table":
        from squall.streams.formats.tables import TextTableEncoder  # on demand: it needs `rich` and `squall.explain`

        return TextTableEncoder()
    if format in FILES:
        hint = f"name a file: `--sink out.{format}`; or write lines: `ndjson-values`, `csv`"
        raise UsageError(f"`{uri}` cannot be written as `{format}`, which is a format of files", hint=hint)
    return LineEncoder(line_function(format, declarations.is_one_query))


def line_function(format: str, is_one_query: bool = False) -> Callable[[Output], bytes]:
    """Returns the function that encodes an output as a line of a format of `LINES`.

    Args:
        format: The name of the format.
        is_one_query: Whether all outputs are answers of one query, so that plain values need no ``rule``.
    """
    is_plain = LINES[format] is plain_json_line
    return partial(plain_json_line, is_one_query=True) if is_plain and is_one_query else LINES[format]


def _fact_encoder(format: str, alone: bool) -> Encoder:
    """Returns the encoder of a format of facts."""
    if format == "trig":
        return TriGEncoder()
    if format == "jelly":
        from squall.streams.formats import jelly

        return jelly.FrameEncoder(alone)
    return LineEncoder(LINES[format])
