"""Sinks: where outputs are written, and the formats in which they are."""

from __future__ import annotations

import csv
import gzip
import io
import json
import os
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import IO, Any, NoReturn, Protocol, cast, runtime_checkable

from squall.errors import SinkError, UsageError
from squall.rdf import ALWAYS, XSD_STRING, Solution, Triple, iri_text, is_blank, is_iri, parts
from squall.stages import Output
from squall.streams.address import Address


@runtime_checkable
class Sink(Protocol):
    """What a plug-in of the group ``squall.sinks`` makes: it is called with an Address and raises UsageError if outputs
    cannot be written there. Nothing is changed before `start`."""

    uri: str

    def start(self, resume: bool = False, prompt: bool = False) -> None:
        """Opens it. `resume`: go on after what an earlier run wrote. `prompt`: hand each output on at once."""
        ...

    def write(self, output: Output) -> None: ...

    def close(self) -> None: ...


class StreamSink:
    """Standard output, or a compressed file: written from its beginning to its end.

    Raises SinkError where the system refuses to open or write it.
    """

    def __init__(self, uri: str, format: str, open: Callable[[bool], IO[bytes]], path: Path | None = None) -> None:
        self.uri = uri
        self.format = format
        self._path = path
        self._open = open
        self._line = self._row if format in _TABLES else _LINES[format]
        self._columns: tuple[str, ...] | None = None
        """Of a table: those of its head, where they are known."""
        self._headed = False
        self._prompt = False
        self._file: IO[bytes] | None = None

    @property
    def file(self) -> IO[bytes]:
        """The open file; only after `start`."""
        if self._file is None:
            raise ValueError(f"the sink {self.uri} is not open")
        return self._file

    def start(self, resume: bool = False, prompt: bool = False) -> None:
        begun = resume and self._path is not None and self._path.exists() and self._path.stat().st_size > 0
        try:
            self._file = self._open(resume)
        except OSError as error:
            self._refused(error)
        self._prompt = prompt
        self._headed = begun

    def write(self, output: Output) -> None:
        """Raises SinkError where the format cannot hold the output, or the system refuses it."""
        try:
            self.file.write(self._line(output))
            if self._prompt:
                self.file.flush()
        except OSError as error:
            self._refused(error)

    def _row(self, output: Output) -> bytes:
        """A row of a table, with the head before the first one; the others have to have the same columns."""
        write = _TABLES[self.format]
        columns = output.fact.names if isinstance(output.fact, Solution) else _FACT
        if self._headed and self._columns not in (None, columns):
            raise SinkError(
                f"`{self.uri}` cannot hold outputs with other columns than {', '.join(self._columns or ())}",
                hint="the format `ndjson` can",
            )
        head = b"" if self._headed else write(("time", "rule", *columns))
        self._headed, self._columns = True, columns
        return head + write(_cells(output))

    def close(self) -> None:
        if self._file is not None:
            try:
                self._file.close()
            except OSError as error:
                self._refused(error)

    def _refused(self, error: OSError) -> NoReturn:
        """What the system refuses is a SinkError; a reader who has gone is not (BrokenPipeError)."""
        if isinstance(error, BrokenPipeError):
            raise error
        raise SinkError(f"`{self.uri}` cannot be written: {error.strerror}") from error


class FileSink(StreamSink):
    """A plain file: it can be cut back to where a batch began (`squall.stages.Rewindable`)."""

    def mark(self) -> int:
        self.file.flush()
        os.fsync(self.file.fileno())
        return self.file.tell()

    def rewind(self, mark: int) -> None:
        self.file.flush()
        self.file.truncate(mark)
        self.file.seek(mark)
        if mark == 0:
            self._headed, self._columns = False, None


def open_path(address: Address) -> Sink:
    """The sink of a ``file:`` address or a path; ``format`` is its one option, ``.gz`` compresses."""
    address.only("format")
    path = Path(address.path)
    name = address.get("format") or _ending(path.name.removesuffix(".gz"))
    if name is None:
        raise UsageError(
            f"the format of `{path}` cannot be told from its name",
            hint=f"known endings: {', '.join(_BY_ENDING)}, each also with .gz; or name it: `{path}?format=nt`",
        )
    _check_format(name)
    check_writable(path)
    if path.name.endswith(".gz") or name.endswith(".gz"):
        plain = name.removesuffix(".gz")
        return StreamSink(address.text, plain, lambda resume: cast(IO[bytes], gzip.open(path, _mode(resume))), path)
    return FileSink(address.text, name, lambda resume: path.open(_mode(resume)), path)


def open_standard_output(address: Address) -> Sink:
    """Standard output (``-?format=ndjson``), N-Triples unless told otherwise."""
    address.only("format")
    name = address.get("format", "nt")
    _check_format(name)
    return StreamSink(address.text, name, lambda _: _StandardOutput(sys.stdout.fileno()))


class _StandardOutput(io.BufferedWriter):
    """Standard output in blocks; closing it leaves the descriptor open."""

    def __init__(self, descriptor: int) -> None:
        super().__init__(io.FileIO(descriptor, "wb", closefd=False), 1 << 16)


def _ending(name: str) -> str | None:
    return next((format for ending, format in _BY_ENDING.items() if name.endswith(ending)), None)


def _mode(resume: bool) -> str:
    return "ab" if resume else "wb"


def _check_format(name: str) -> None:
    if name.removesuffix(".gz") not in _FORMATS:
        raise UsageError(f"outputs cannot be written as `{name}`", hint=f"formats: {', '.join(_FORMATS)}")


def check_writable(path: Path) -> None:
    """Raises UsageError if nothing can be written there."""
    if path.is_dir():
        raise UsageError(f"`{path}` cannot be written: it is a folder")
    if not path.parent.is_dir():
        raise UsageError(f"`{path}` cannot be written: there is no folder `{path.parent}`")
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise UsageError(f"`{path}` cannot be written: permission denied")


def _nt(output: Output) -> bytes:
    return f"{_statement(output)}\n".encode()


def _ntt(output: Output) -> bytes:
    time = "-infinity" if output.time == ALWAYS else output.time
    prefix = "" if isinstance(output.fact, Triple) else _comment(output)
    return f"{prefix}{time} {output.fact}\n".encode()


def _statement(output: Output) -> str:
    return str(output.fact) if isinstance(output.fact, Triple) else f"{_comment(output)}{output.fact}"


def _comment(output: Output) -> str:
    """What begins the line of an atom, which has no RDF serialisation. Raises SinkError for a solution."""
    if isinstance(output.fact, Solution):
        raise SinkError(
            "the solutions of a query are no triples",
            hint="write them as ndjson, csv or tsv: `--format ndjson`, or `--sink` with such an ending",
        )
    return "# "


def _ndjson(output: Output) -> bytes:
    time = None if output.time == ALWAYS else output.time
    entry: dict[str, Any] = {"time": time, "rule": output.rule}
    fact = output.fact
    if isinstance(fact, Solution):
        terms = (None if term is None else _json_term(term) for term in fact.values)
        entry["solution"] = dict(zip(fact.names, terms, strict=True))
    elif isinstance(fact, Triple):
        entry.update(zip(("subject", "predicate", "object"), map(_json_term, fact), strict=True))
    else:
        entry.update(relation=_json_term(fact.relation), arguments=[_json_term(term) for term in fact.arguments])
    return (json.dumps(entry, ensure_ascii=False) + "\n").encode()


def _json_term(term: str) -> dict[str, str]:
    """A term as SPARQL 1.1 Query Results JSON has it (section 3.2.2)."""
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


_FACT = ("subject", "predicate", "object")


def _cells(output: Output) -> tuple[str, ...]:
    """The cells of a table; terms in N-Triples, so that nothing is lost. An atom's relation is the predicate, its
    arguments are the object."""
    fact = output.fact
    time = "" if output.time == ALWAYS else str(output.time)
    if isinstance(fact, Solution):
        return time, output.rule, *(term or "" for term in fact.values)
    if isinstance(fact, Triple):
        return time, output.rule, *fact
    return time, output.rule, "", fact.relation, " ".join(fact.arguments)


def _csv(cells: Iterable[str]) -> bytes:
    """RFC 4180."""
    row = io.StringIO()
    csv.writer(row).writerow(cells)
    return row.getvalue().encode()


def _tsv(cells: Iterable[str]) -> bytes:
    """Tabs inside of cells are escaped, as they may be in N-Triples."""
    return ("\t".join(cell.replace("\t", "\\t") for cell in cells) + "\n").encode()


_TABLES: dict[str, Callable[[Iterable[str]], bytes]] = {"csv": _csv, "tsv": _tsv}
_LINES: dict[str, Callable[[Output], bytes]] = {
    "nt": _nt,
    "ntt": _ntt,
    "nq": _nt,
    "ndjson": _ndjson,
}
_FORMATS = (*_LINES, *_TABLES)
_BY_ENDING = {f".{name}": name for name in _FORMATS} | {".jsonl": "ndjson"}
