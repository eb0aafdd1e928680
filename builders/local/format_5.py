"""Reads checkpoints of format 5, whose names came from the code of that time, as if they had the present format.

Digests of rules are the same in both formats, since fingerprints do not change (`squall.plan.fingerprint`). What
differs are the names in this module. See docs/decisions/0063-checkpoint-format.md.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from squall.builders.runtime.zset import Delta

FORMAT = 5
ID_PREFIXES = {
    "read": "scan",
    "where": "constantfilter",
    "test": "filter",
    "apply": "tablefunction",
    "closure": "transitiveclosure",
    "emit": "construct",
    "answer": "select",
    "deliver": "sink",
    "feed": "derivedstream",
}
"""The beginnings of node ids, and the present ones."""
OWN_KEYS = {"/working": "/inserted", "/held": "/buffered"}
"""The keys of state that belongs to no node."""
KEY_SUFFIXES = {"/instants": "/report-times"}
"""What may follow the node in the key of a state."""
STATE_KINDS = {
    "Reader": "scan",
    "Join": "join",
    "AntiJoin": "anti-join",
    "LeftJoin": "left-join",
    "Star": "multiway-join",
    "GrowingDistinct": "append-only-distinct",
    "CountingDistinct": "retractable-distinct",
    "RecursiveDistinct": "dred-distinct",
    "Timed": "time-dependent",
    "Closure": "transitive-closure",
    "Group": "group",
    "Slice": "slice",
    "Update": "update",
    "Working": "inserted-facts",
    "Feed": "derived-stream",
    "Deliver": "output",
    "GrowingDeliver": "append-only-output",
    "Whole": "snapshot",
}
"""The classes of operator state, and their present kinds."""
CLOCKS = {"EventClock": "event-time", "WallClock": "processing-time"}
PROGRESS_FIELDS = {
    "passed": "watermark",
    "begin": "begin",
    "begun": "started",
    "sources": "offsets",
    "sink": "sink",
    "ledger": "dead_letters",
}
REPORT_TIME_ROWS = {
    "last": "last_time",
    "passed": "reported_until",
    "first": "first_time",
    "single": "single_time",
    "came": "fact_count",
}
"""The first cells of the rows of report times."""
_STAR = re.compile(r"Star Shape\(widths=(\(.*\)), on=(\(.*\)), keep=(\(.*\))\)")
_SINK, _STATELESS = "end ", " forgets"
_REPORT_TIMES = "/instants"


def converted_header(header: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the first line of a file with the present names."""
    identity = {kind: dict(names) for kind, names in header["belongs"].items()}
    options = identity.get("options", {})
    if "clock" in options:
        options["clock"] = CLOCKS.get(options["clock"], options["clock"])
    for kind in ("sources", "sinks"):  # their values were the names of classes
        if kind in identity:
            identity[kind] = dict.fromkeys(identity[kind], "")
    state_kinds = {converted_key(key): converted_state_kind(kind) for key, kind in header["memories"].items()}
    return {"identity": identity, "state_kinds": state_kinds}


def converted_key(key: str) -> str:
    """Returns the present key of an operator state."""
    if key.startswith("/"):
        return OWN_KEYS.get(key, key)
    node, slash, suffix = key.partition("/")
    prefix = node.partition("-")[0].rstrip("0123456789")
    suffix = KEY_SUFFIXES.get(slash + suffix, slash + suffix)
    return f"{ID_PREFIXES.get(prefix, prefix)}{node[len(prefix) :]}{suffix}"


def converted_state_kind(kind: str) -> str:
    """Returns the present kind of an operator state."""
    if star := _STAR.fullmatch(kind):
        return f"multiway-join ({star[1]}, {star[2]}, {star[3]})"
    if kind.startswith(_SINK):
        name, space, op = kind.removeprefix(_SINK).partition(" ")
        stateless = op.endswith(_STATELESS)
        return f"sink {STATE_KINDS[name]}{space}{op.removesuffix(_STATELESS)}{' without state' if stateless else ''}"
    name, space, op = kind.partition(" ")
    return f"{STATE_KINDS.get(name, name)}{space}{op}"


def converted_deltas(changes: tuple[str, int, Sequence[Delta]]) -> tuple[str, int, Sequence[Delta]]:
    """Returns deltas of an operator state with its present key, and rows of report times with their present names."""
    key, slot, deltas = changes
    if key.endswith(_REPORT_TIMES):
        deltas = [(REPORT_TIME_ROWS.get(str(name), name), *cells) for name, *cells in deltas]
    return converted_key(key), slot, deltas


def converted_progress(progress: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the progress of a run by the present names."""
    return {name: progress[previous] for previous, name in PROGRESS_FIELDS.items()}
