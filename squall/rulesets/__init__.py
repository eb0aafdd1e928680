"""The rule sets of squall, by name: files in squall's own languages (docs/rulesets.md)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

from squall.errors import UsageError, did_you_mean
from squall.model import AtomPattern, Consequence, Construct, Pattern, System
from squall.rdf import Term

_FOLDER = files(__name__)
HELPER = "<urn:x-squall:helper:"
"""The prefix of predicates of facts that the rules of a set derive only for each other."""
VARIANT = Term("<urn:x-squall:helper:variant>")
"""The relation of different literals of the same value. Rules that read it put one in place of the other."""
VIOLATED_BY = Term("<urn:x-squall:violatedBy>")
"""The predicate of violations. The subject is the rule, an IRI that ends in its name; the object violates it."""


def names() -> tuple[str, ...]:
    """Returns the names of the rule sets, in alphabetical order."""
    entries = (Path(entry.name) for entry in _FOLDER.iterdir())
    return tuple(sorted(file.stem for file in entries if file.suffix == ".jena"))


def description(name: str) -> str:
    """Returns what a rule set is: the first line of its file."""
    with path(name).open(encoding="utf-8") as file:
        return file.readline().lstrip("# ").strip()


def path(name: str) -> Path:
    """Returns the file of a rule set.

    Run as a program it also outputs the facts that its rules derive for each other. `squall.compile` with
    ``rules=(name,)`` and ``squall run --rules NAME`` do not.

    Raises:
        UsageError: There is no rule set of that name.
    """
    if name not in names():
        raise UsageError(
            f"there is no rule set `{name}`", hint=did_you_mean(name, names()) or f"there is {', '.join(names())}"
        )
    with as_file(_FOLDER / f"{name}.jena") as file:  # squall is never imported from a zip file: the file stays
        return file


def prepared(rules: System, background: bool) -> System:
    """Returns the system of a rule set in which facts with a `HELPER` predicate are internal relations.

    No pattern with a variable as predicate reads these facts, and they are no part of the answer.

    Args:
        rules: The system.
        background: Nothing that it derives is part of the answer. Rules read it all the same.
    """
    return replace(
        rules,
        joinables=tuple(map(_relation, rules.joinables)),
        consequences=tuple(part for consequence in rules.consequences for part in _constructs(consequence, background)),
        subsystems=tuple(prepared(rule, background) for rule in rules.subsystems),
    )


def _relation(part: Any) -> Any:
    """Returns a pattern or template of a helper predicate as one of a relation, and anything else as it is."""
    if isinstance(part, Pattern) and isinstance(part.predicate, str) and part.predicate.startswith(HELPER):
        return AtomPattern(part.predicate, (part.subject, part.object), exact=part.exact, origin=part.origin)
    return part


def _constructs(consequence: Consequence, background: bool) -> Iterator[Consequence]:
    """Yields the consequence in two parts: what is part of the answer, and what is not."""
    if not isinstance(consequence, Construct):
        yield consequence
        return
    template = tuple(map(_relation, consequence.template))
    internal = tuple(pattern for pattern in template if background or isinstance(pattern, AtomPattern))
    visible = tuple(pattern for pattern in template if pattern not in internal)
    if visible:
        yield replace(consequence, template=visible)
    if internal:
        yield Construct(internal, internal=True)
