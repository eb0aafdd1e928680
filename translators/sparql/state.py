"""The state of a translation: errors and warnings, fresh names, and helper rules."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from hashlib import blake2b

from squall.errors import Origin, SquallError, TranslatorError, TranslatorWarning
from squall.lexers.sparql.tree import StepName
from squall.model import System, Variable
from squall.rdf import Term, iri


@dataclass
class Notes:
    """The errors and warnings of a program."""

    errors: list[SquallError] = field(default_factory=list)
    warnings: list[TranslatorWarning] = field(default_factory=list)

    def fail(self, message: str, origin: Origin | None, hint: str | None = None) -> None:
        """Records an error."""
        self.errors.append(TranslatorError(message, origin, hint))

    def warn(self, message: str, origin: Origin | None, hint: str | None = None) -> None:
        """Records a warning once, since a group may be translated for each of several graphs."""
        warning = TranslatorWarning(message, origin, hint)
        if all(warning.args != previous.args for previous in self.warnings):
            self.warnings.append(warning)


class State:
    """The state of the translation of one statement.

    Attributes:
        base: The IRI against which ``IRI()`` resolves.
        is_graph_in_scope: Whether the variable of ``GRAPH ?g`` has a value inside of its pattern.
        key: Distinguishes the statement from all others of all programs.
        relations: The rules of the relations that its property paths need, by relation.
        steps: The names of the steps of its pattern over time, by their texts without a question mark.
        documents: The IRIs of the documents in its dataset, if it has a pattern over time.
        sequences: The rules that its pattern over time needs.
    """

    def __init__(self, notes: Notes, text: str, base: str = "", is_graph_in_scope: bool = False) -> None:
        self.notes = notes
        self.base = base
        self.is_graph_in_scope = is_graph_in_scope
        self.key = digest(text)
        self.relations: dict[Term, tuple[System, ...]] = {}
        self.steps: dict[str, StepName] = {}
        self.documents: set[str] = set()
        self.sequences: list[System] = []
        self._count = 0

    def number(self) -> int:
        """Returns a number that nothing else in the statement has."""
        self._count += 1
        return self._count

    def fresh(self, what: str) -> Variable:
        """Returns a variable whose name no variable of a program can have."""
        return Variable(f"{what} {self.number()}")

    def relation(self, text: str, rules: Callable[[Term], tuple[System, ...]]) -> Term:
        """Returns the relation that a text describes, derived by these rules. Equal texts mean the same relation."""
        name = iri(f"urn:x-squall:relation:{digest(text)}")
        if name not in self.relations:
            self.relations[name] = ()  # it may be asked for while it is made
            self.relations[name] = rules(name)
        return name


def digest(text: str) -> str:
    """Returns a short digest of a text."""
    return blake2b(text.encode(), digest_size=8).hexdigest()
