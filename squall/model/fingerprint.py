"""Fingerprints of sources and windows: texts that stay the same when a class or a field is renamed.

Node ids, the names of relations, and checkpoints are made of them, and planners break ties by them. So a checkpoint
stays valid as long as a program means the same, whatever its classes are called
(docs/decisions/0063-checkpoint-format.md).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields, is_dataclass
from functools import lru_cache
from hashlib import sha256

from squall.model.sources import Source
from squall.model.windows import CountWindow, EmptyWindow, HoppingWindow, SlidingWindow

STABLE_NAMES: dict[type, str] = {
    SlidingWindow: "Range",
    HoppingWindow: "Stepped",
    CountWindow: "Count",
    EmptyWindow: "Nothing",
}
"""The names of classes in fingerprints, where they differ from those in the code. An entry is never changed. A class
that is renamed gets an entry with its name before.
"""
STABLE_FIELDS = {"sparql_dataset": "apart"}
"""The same for fields."""


@lru_cache(maxsize=4096)
def source_fingerprint(source: Source) -> str:
    """Returns the fingerprint of a source. One that has cliques has a digest of them behind it."""
    text, cliques = _text(source), source.cliques
    if cliques is None:
        return text
    suffix = " with their terms" if cliques.keeps_terms else ""
    return f"{text} of {sha256(cliques.term.encode()).hexdigest()}{suffix}"


def sources_fingerprint(sources: Iterable[Source]) -> str:
    """Returns the fingerprint of several sources, in their order."""
    return _tuple(map(source_fingerprint, sources))


def _text(value: object) -> str:
    """Returns the `repr` of a value by the stable names of the classes and fields inside."""
    if isinstance(value, tuple):
        return _tuple(map(_text, value))
    if not is_dataclass(value) or isinstance(value, type):
        return repr(value)
    kind = type(value)
    printed_fields = (
        f"{STABLE_FIELDS.get(part.name, part.name)}={_text(getattr(value, part.name))}"
        for part in fields(value)
        if part.repr
    )
    return f"{STABLE_NAMES.get(kind, kind.__name__)}({', '.join(printed_fields)})"


def _tuple(texts: Iterable[str]) -> str:
    items = list(texts)
    return f"({', '.join(items)}{',' if len(items) == 1 else ''})"
