"""Sinks with a file for each evaluation, such as ``results-{time}.srj``."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from squall.contracts import Output
from squall.errors import SinkError
from squall.rdf import ALWAYS, Evaluated
from squall.streams.formats.evaluations import NO_DECLARATIONS, Declarations, answer_of
from squall.streams.formats.event_json import as_json, output_of

_TIME, _QUERY = "{time}", "{query}"


def is_pattern(path: str) -> bool:
    """Returns whether a path is a pattern, for a file for each evaluation."""
    return _TIME in path


def expanded(path: str, time: int, query: str) -> Path:
    """Returns the path of one evaluation: the pattern with its time (or ``always``) and the name of its query.

    Characters of the name other than letters, digits and ``_.-~`` are percent-encoded.
    """
    when = "always" if time == ALWAYS else str(time)
    return Path(path.replace(_TIME, when).replace(_QUERY, quote(query, safe="")))


class PatternSink:
    """A sink that writes the outputs of an instant when there is a later one: those of one path into one file.

    It replaces existing files. A file appears when it is complete: it is written under a name that ends in ``.tmp``,
    and renamed. The function `write_file` writes outputs to a path; its first argument is the final path, for messages,
    its last one what `declare` declares.

    Attributes:
        uri: The address.
        format: The name of the format.
        is_by_query: Whether each query has files of its own.
    """

    def __init__(
        self,
        uri: str,
        path: str,
        format: str,
        write_file: Callable[[str, Path, Sequence[Output], Declarations], None],
    ) -> None:
        self.uri = uri
        self.format = format
        self.is_by_query = _QUERY in path
        self._path = path
        self._write_file = write_file
        self._declarations = NO_DECLARATIONS
        self._time = ALWAYS
        self._outputs: dict[Path, list[Output]] = {}

    def declare(self, declarations: Declarations) -> None:
        """Declares what the outputs are (`squall.streams.sinks.SupportsDeclarations`)."""
        self._declarations = declarations

    def start(self, resume: bool = False, prompt: bool = False) -> None:
        """Does nothing. Files of earlier runs stay until this one writes them anew."""

    def write(self, output: Output) -> None:
        """Buffers an output, and writes those of earlier instants.

        Raises:
            SinkError: The format cannot express them, or the system cannot write them.
        """
        if output.time != self._time:
            self._finish()
            self._time = output.time
        path = expanded(self._path, output.time, output.rule)
        self._outputs.setdefault(path, []).append(output)
        if isinstance(answer_of(output), Evaluated) and self.is_by_query:
            self._write(path, self._outputs.pop(path))

    def snapshot(self, last: bool = False) -> Any:
        """Returns the buffered outputs as a JSON value (`squall.contracts.CheckpointedSink`).

        A resumed run writes each file again, completely and equally.
        """
        return [as_json(output) for outputs in self._outputs.values() for output in outputs]

    def restore(self, state: Any) -> None:
        for output in map(output_of, state):
            self.write(output)

    def close(self) -> None:
        self._finish()

    def _finish(self) -> None:
        outputs, self._outputs = self._outputs, {}
        for path, outputs_of_path in outputs.items():
            self._write(path, outputs_of_path)

    def _write(self, path: Path, outputs: Sequence[Output]) -> None:
        temporary = path.with_name(f"{path.name}.tmp")
        try:
            self._write_file(str(path), temporary, outputs, self._declarations)
            os.replace(temporary, path)
        except OSError as error:
            raise SinkError(f"`{path}` cannot be written: {error.strerror}") from error
        finally:
            temporary.unlink(missing_ok=True)
