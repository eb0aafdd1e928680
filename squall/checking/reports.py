"""Reports of findings as text, as JSON, and as SARIF, which editors show beside the code.

Source: Static Analysis Results Interchange Format (SARIF) 2.1.0, OASIS 2020.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from urllib.parse import quote

from squall.checking.findings import ERROR, INFO, SEVERITIES, WARNING, Finding
from squall.errors import Origin

_LEVELS = {ERROR: "error", WARNING: "warning", INFO: "note"}
_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


def text(findings: Sequence[Finding]) -> str:
    """Formats the findings for a terminal, with an empty line between them."""
    return "\n\n".join(map(str, findings))


def as_json(findings: Sequence[Finding]) -> str:
    """Formats the findings as JSON, with the number of each severity (docs/check.md)."""
    data = [finding.as_data() for finding in findings]
    return json.dumps({"findings": data, "summary": counts(findings)}, indent=2, ensure_ascii=False)


def counts(findings: Sequence[Finding]) -> dict[str, int]:
    """Counts the findings of each severity."""
    severities = Counter(finding.severity for finding in findings)
    return {severity: severities[severity] for severity in SEVERITIES}


def summary(findings: Sequence[Finding]) -> str:
    """Returns the counts as words."""
    texts = [f"{count} {kind if count == 1 else _PLURALS[kind]}" for kind, count in counts(findings).items() if count]
    return ", ".join(texts) or "nothing found"


_PLURALS = {ERROR: "errors", WARNING: "warnings", INFO: "infos"}


def sarif(findings: Sequence[Finding]) -> str:
    """Formats the findings as a SARIF log."""
    from squall import __version__

    rules = [{"id": code} for code in dict.fromkeys(finding.code for finding in findings)]
    driver = {"name": "squall check", "version": __version__, "rules": rules}
    run = {"tool": {"driver": driver}, "columnKind": "unicodeCodePoints", "results": list(map(_result, findings))}
    return json.dumps({"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2, ensure_ascii=False)


def _result(finding: Finding) -> dict[str, Any]:
    words = finding.message if finding.hint is None else f"{finding.message} ({finding.hint})"
    result = {"ruleId": finding.code, "level": _LEVELS[finding.severity], "message": {"text": words}}
    return result if finding.origin is None else result | {"locations": [_location(finding.origin)]}


def _location(origin: Origin) -> dict[str, Any]:
    first, lines = origin.column, origin.text.splitlines()
    width = len(lines[origin.line - 1]) if 0 < origin.line <= len(lines) else 0
    region = {
        "startLine": origin.line,
        "startColumn": first,
        "endColumn": max(first + 1, min(first + origin.length, width + 1)),
    }
    return {"physicalLocation": {"artifactLocation": {"uri": quote(origin.name)}, "region": region}}


FORMATS: Mapping[str, Callable[[Sequence[Finding]], str]] = {"text": text, "json": as_json, "sarif": sarif}
"""The formats of reports, by name."""
