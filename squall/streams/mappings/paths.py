"""Paths into JSON: the part of JSONPath that goes down to places, without filters and searches.

Source: RFC 9535 (JSONPath), sections 2.2 to 2.5 and 2.7.
"""

from __future__ import annotations

import json
import re

Steps = tuple[str | int | None, ...]
"""The steps of a path: a key, an index (from 0), or None for each element of an array."""

_STEP = re.compile(
    r"""\.(?P<name>[^.\[\]'"*\s$@?()]+)
    |\[\s*(?:(?P<index>[0-9]{1,9})|(?P<star>\*)|(?P<double>"(?:[^"\\]|\\.)*")|(?P<single>'(?:[^'\\]|\\.)*'))\s*\]
    |(?P<dot_star>\.\*)""",
    re.VERBOSE,
)
_SUPPORTED = "a path has keys (`.name`, `['a name']`), indexes (`[0]`) and `[*]`"


def steps_of(text: str) -> Steps:
    """Returns the steps of a path such as ``$.a['b c'][0].d[*]``. The ``$`` may be left out; ``@`` is ``$``.

    Raises:
        ValueError: It is no path, or has something else than keys, indexes and ``[*]``. Its text says what.
    """
    remainder = text.strip()
    if remainder[:1] in ("$", "@"):
        remainder = remainder[1:]
    elif remainder and not remainder.startswith("["):
        remainder = f".{remainder}"
    steps: list[str | int | None] = []
    position = 0
    while position < len(remainder):
        match = _STEP.match(remainder, position)
        if match is None:
            raise ValueError(f"`{text}` is not supported from `{remainder[position:]}` on: {_SUPPORTED}")
        if match["dot_star"]:
            raise ValueError(f"`.*` in `{text}` is not supported: write `[*]` for the elements of an array")
        steps.append(_step(match))
        position = match.end()
    return tuple(steps)


def _step(match: re.Match[str]) -> str | int | None:
    if match["star"]:
        return None
    if match["index"]:
        return int(match["index"])
    if match["single"]:
        inner = match["single"][1:-1].replace("\\'", "'").replace('"', '\\"')
        return str(json.loads(f'"{inner}"'))
    return str(json.loads(match["double"])) if match["double"] else match["name"]
