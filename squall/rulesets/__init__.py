"""Rule sets that come with squall, by name, as files in squall's own languages; docs/rulesets.md says what they are."""

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
"""How the predicates of facts begin that rules of a set make for each other."""
VIOLATED_BY = Term("<urn:x-squall:violatedBy>")
"""The predicate of what contradicts the data: the subject is the rule, an IRI that ends in its name, the object is who
or what violates it."""


def names() -> tuple[str, ...]:
    """The names of the rule sets, in alphabetical order."""
    found = (Path(entry.name) for entry in _FOLDER.iterdir())
    return tuple(sorted(file.stem for file in found if file.suffix == ".jena"))


def path(name: str) -> Path:
    """The file of a rule set. Raises UsageError where there is none of that name.

    As a program it tells the facts that its rules make for each other as well: `squall.compile` with ``rules=(name,)``
    and ``squall build --rules NAME`` do not.
    """
    if name not in names():
        raise UsageError(f"there is no rule set `{name}`", hint=did_you_mean(name, names()) or f"there is {', '.join(names())}")
    with as_file(_FOLDER / f"{name}.jena") as file:  # squall is never imported from a zip file: the file stays
        return file


def prepared(rules: System, background: bool) -> System:
    """The system of a rule set in which the facts with a predicate of `HELPER` are relations of their own: no pattern
    with a variable for a predicate reads them, and they are no part of the answer.

    background: nothing that it derives is part of the answer. Rules read it all the same.
    """
    return replace(
        rules,
        joinables=tuple(map(_relation, rules.joinables)),
        consequences=tuple(made for one in rules.consequences for made in _constructs(one, background)),
        subsystems=tuple(prepared(rule, background) for rule in rules.subsystems),
    )


def _relation(part: Any) -> Any:
    """A pattern or template of a helper's predicate as one of a relation; anything else as it is."""
    if isinstance(part, Pattern) and isinstance(part.predicate, str) and part.predicate.startswith(HELPER):
        return AtomPattern(part.predicate, (part.subject, part.object), exact=part.exact, origin=part.origin)
    return part


def _constructs(made: Consequence, background: bool) -> Iterator[Consequence]:
    """The consequence, what is part of the answer apart from what is not."""
    if not isinstance(made, Construct):
        yield made
        return
    template = tuple(map(_relation, made.template))
    inside = tuple(one for one in template if background or isinstance(one, AtomPattern))
    outside = tuple(one for one in template if one not in inside)
    if outside:
        yield replace(made, template=outside)
    if inside:
        yield Construct(inside, internal=True)
