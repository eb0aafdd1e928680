"""What checks find: a code, how bad it is, words, a place and a hint."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from squall.errors import Origin, SquallError, single_errors, format_message

ERROR, WARNING, INFO = "error", "warning", "info"
SEVERITIES = (ERROR, WARNING, INFO)
"""An error: the program is refused. A warning: it hardly does what its author meant. Info: it may be written better."""


@dataclass(frozen=True)
class Finding:
    """One thing that is to be said of a program. Prints as errors do.

    code: what kind of thing (docs/check.md lists them); of what another stage refuses or warns of, that stage.
    severity: ``error``, ``warning`` or ``info``.
    """

    code: str
    severity: str
    message: str
    origin: Origin | None = None
    hint: str | None = None

    def __str__(self) -> str:
        return format_message(f"{self.code} {self.severity}", self.message, self.origin, self.hint)

    def as_data(self) -> dict[str, Any]:
        """The finding as JSON has it: a ``place`` has lines and columns from 1."""
        return {
            "code": self.code,
            "severity": self.severity,
            "message": self.message,
            "place": None if self.origin is None else _place(self.origin),
            "hint": self.hint,
        }


def _place(origin: Origin) -> dict[str, Any]:
    return {"file": origin.name, "line": origin.line, "column": origin.column, "length": origin.length}


def told(error: SquallError, code: str = "") -> list[Finding]:
    """What a stage says, as findings: an error, all of several, or a warning."""
    return [Finding(code or one.stage, one.severity, one.message, one.origin, one.hint) for one in single_errors(error)]


def arranged(found: Iterable[Finding], names: Iterable[str]) -> tuple[Finding, ...]:
    """Each finding once, in the order of the programs and of their texts; those without a place come first."""
    places = {name: number for number, name in enumerate(names)}

    def key(finding: Finding) -> tuple[int, int, int, int, str]:
        origin = finding.origin
        place = (places.get(origin.name, len(places)), origin.line, origin.column) if origin else (-1, 0, 0)
        return (*place, SEVERITIES.index(finding.severity), finding.code)

    return tuple(sorted(dict.fromkeys(found), key=key))
