"""Findings: the results of checks, each with a code, a severity, a message, a place and a hint."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from squall.errors import Origin, SquallError, format_message, single_errors

ERROR, WARNING, INFO = "error", "warning", "info"
SEVERITIES = (ERROR, WARNING, INFO)
"""Error: the program is refused. Warning: it hardly does what its author meant. Info: it could be written better."""


@dataclass(frozen=True)
class Finding:
    """A finding about a program. It prints as errors do.

    Attributes:
        code: The kind of finding (docs/check.md lists them). For errors and warnings of another stage, that stage.
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
        """Returns the finding as JSON data. A ``place`` has lines and columns from 1."""
        return {
            "code": self.code,
            "severity": self.severity,
            "message": self.message,
            "place": None if self.origin is None else _place(self.origin),
            "hint": self.hint,
        }


def _place(origin: Origin) -> dict[str, Any]:
    return {"file": origin.name, "line": origin.line, "column": origin.column, "length": origin.length}


def as_findings(error: SquallError, code: str = "") -> list[Finding]:
    """Converts what a stage reports to findings: an error, all of several, or a warning."""
    return [
        Finding(code or single.stage, single.severity, single.message, single.origin, single.hint)
        for single in single_errors(error)
    ]


class Findings(tuple[Finding, ...]):
    """The findings about some programs, in the order of their texts. A notebook shows them as a table."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        """Returns a table of the findings, for notebooks."""
        if not self:
            return "<p>no findings</p>"
        rows = "".join(f"<tr>{''.join(map(_cell, _cells(finding)))}</tr>" for finding in self)
        head = "".join(f"<th>{name}</th>" for name in ("severity", "code", "place", "message", "hint"))
        return f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"


def _cells(finding: Finding) -> tuple[str, ...]:
    place = "" if finding.origin is None else str(finding.origin)
    return finding.severity, finding.code, place, finding.message, finding.hint or ""


def _cell(text: str) -> str:
    from html import escape

    return f"<td>{escape(text)}</td>"


def sorted_findings(findings: Iterable[Finding], names: Iterable[str]) -> Findings:
    """Returns each finding once, in the order of the programs and of their texts. Those without a place come first."""
    places = {name: number for number, name in enumerate(names)}

    def key(finding: Finding) -> tuple[int, int, int, int, str]:
        origin = finding.origin
        place = (places.get(origin.name, len(places)), origin.line, origin.column) if origin else (-1, 0, 0)
        return (*place, SEVERITIES.index(finding.severity), finding.code)

    return Findings(sorted(dict.fromkeys(findings), key=key))
