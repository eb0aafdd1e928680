"""Sinks that are a file for each evaluation: ``results-{time}.srj``."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from squall.contracts import Output
from squall.errors import SinkError
from squall.rdf import ALWAYS, Evaluated
from squall.streams.formats.evaluations import answered
from squall.streams.formats.event_json import as_json, output_of

_TIME, _QUERY = "{time}", "{query}"


def is_pattern(path: str) -> bool:
    """Whether the path stands for a file for each evaluation."""
    return _TIME in path


def expanded(path: str, time: int, query: str) -> Path:
    """The path of one evaluation: its time (integer ms, or ``always``) and the name of its query or rule, in which
    letters, digits and ``_.-~`` stay as they are and others are percent-encoded, in their places."""
    when = "always" if time == ALWAYS else str(time)
    return Path(path.replace(_TIME, when).replace(_QUERY, quote(query, safe="")))


class PatternSink:
    """Writes the outputs of an instant when time goes on: those for which the path is the same into one file.

    A file that is there is replaced. It comes complete: it is written under a name that ends in ``.tmp`` and renamed.
    `write_file` writes outputs at a path; messages name what they are for.
    """

    def __init__(self, uri: str, path: str, write_file: Callable[[str, Path, Sequence[Output]], None]) -> None:
        self.uri = uri
        self._path = path
        self._write_file = write_file
        self._time = ALWAYS
        self._outputs: dict[Path, list[Output]] = {}

    def start(self, resume: bool = False, prompt: bool = False) -> None:
        """What earlier runs wrote stays, where this one does not write it anew."""

    def write(self, output: Output) -> None:
        """Raises SinkError where the format cannot hold the outputs of an instant, or the system refuses them."""
        if output.time != self._time:
            self._finish()
            self._time = output.time
        path = expanded(self._path, output.time, output.rule)
        self._outputs.setdefault(path, []).append(output)
        if isinstance(answered(output), Evaluated) and _QUERY in self._path:
            self._write(path, self._outputs.pop(path))

    def snapshot(self, last: bool = False) -> Any:
        """See `squall.contracts.CheckpointedSink`: what is to be written when time goes on. A file is written as a
        whole, and by a run that goes on as it was."""
        return [as_json(output) for outputs in self._outputs.values() for output in outputs]

    def restore(self, state: Any) -> None:
        for output in map(output_of, state):
            self.write(output)

    def close(self) -> None:
        self._finish()

    def _finish(self) -> None:
        outputs, self._outputs = self._outputs, {}
        for path, each in outputs.items():
            self._write(path, each)

    def _write(self, path: Path, outputs: Sequence[Output]) -> None:
        temporary = path.with_name(f"{path.name}.tmp")
        try:
            self._write_file(str(path), temporary, outputs)
            os.replace(temporary, path)
        except OSError as error:
            raise SinkError(f"`{path}` cannot be written: {error.strerror}") from error
        finally:
            temporary.unlink(missing_ok=True)
