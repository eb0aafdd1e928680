"""CQELS-QL in the words of C-SPARQL, for the suites that have queries in it.

``STREAM <s> [RANGE 5s] { ... }`` becomes ``GRAPH <s> { ... }`` over ``FROM NAMED STREAM <s> [RANGE 5s]``, a continuous
window: CQELS looks at each arrival, so that its ``SLIDE`` says nothing. ``[NOW]`` is a window of 1 ms: what arrives at
an instant holds at that instant. The profile ``cqels`` does the rest.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

_BLOCK = re.compile(r"STREAM\s+(<[^>]*>|\?\w+)\s*\[(NOW|RANGE\s+\w+)[^\]]*\]\s*\{")


def as_csparql(text: str, streams: Sequence[str] = (), window: str | None = None) -> str:
    """A query with its windows in front. streams: the IRIs that a stream given as a variable may be. window: in the
    place of those of the text."""
    clauses: list[str] = []

    def graph(block: re.Match[str]) -> str:
        name, size = block.groups()
        within = window or ("RANGE 1ms" if size == "NOW" else size)
        for stream in (name,) if name.startswith("<") else tuple(f"<{one}>" for one in streams):
            clauses.append(f"FROM NAMED STREAM {stream} [{within}]")
        return f"GRAPH {name} {{"

    shown, where, pattern = _BLOCK.sub(graph, text).partition("WHERE")
    return "\n".join(("REGISTER QUERY q AS", shown, *dict.fromkeys(clauses), where + pattern))
