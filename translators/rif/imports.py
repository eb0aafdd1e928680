"""What a document imports: RIF documents, RDF data under a profile, and streams.

Source: RIF-BLD, section 2.5 (Import); RIF RDF and OWL Compatibility, section 5 (profiles).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from squall import plugins
from squall.errors import SquallError, TranslatorError, UsageError, each
from squall.lexers.rif import tree
from squall.streams.documents import path_of
from squall.system import Document, Stream

ENTAILMENT = "http://www.w3.org/ns/entailment/"
STREAMS = "http://www.w3.org/ns/stream/"
"""What the profile of a stream begins with; what follows names a format."""

ORDER = ("Simple", "RDF", "RDFS")
"""The profiles of RDF data that can be had by rules, each with all that the one before it has."""

_OTHERS = {
    "D": "values of datatypes are not compared in joins; import under `RDFS`",
    "OWL-Direct": "import the data under `RDFS`, and rules for what of OWL is needed",
    "OWL-RDF-Based": "import the data under `RDFS`, and rules for what of OWL is needed",
    "RIF": "a RIF document is imported without a profile",
}


@dataclass
class Closure:
    """A document and all that it imports."""

    documents: list[tree.Document] = field(default_factory=list)
    data: tuple[Document, ...] = ()
    streams: tuple[Stream, ...] = ()
    profile: str = "Simple"


def closure(document: tree.Document, places: Mapping[str, str], errors: list[SquallError]) -> Closure:
    """The closure of a document's imports; what is wrong is added to `errors`. places: files by IRI."""
    found = _Finder(places, errors)
    found.add(document, Path(document.name))
    found.check_profiles()
    return found.closure


class _Finder:
    def __init__(self, places: Mapping[str, str], errors: list[SquallError]) -> None:
        self.places = places
        self.errors = errors
        self.closure = Closure()
        self.seen: set[Path] = set()
        self.profiled: dict[str, tree.Import] = {}

    def add(self, document: tree.Document, path: Path) -> None:
        self.seen.add(path.resolve())
        self.closure.documents.append(document)
        for one in document.imports:
            try:
                self._import(one)
            except SquallError as error:
                self.errors += each(error)

    def _import(self, one: tree.Import) -> None:
        if one.profile is None:
            self._rules(one)
        elif one.profile.startswith(STREAMS):
            self.closure.streams += (Stream(one.location, one.origin),)
        else:
            self.profiled.setdefault(self._profile(one), one)
            self.closure.data += (Document(one.location, one.origin, FORBIDDEN),)

    def _profile(self, one: tree.Import) -> str:
        name = (one.profile or "").removeprefix(ENTAILMENT)
        if name not in ORDER and name not in _OTHERS:
            hint = (
                f"profiles are {', '.join(f'<{ENTAILMENT}{known}>' for known in ORDER)}, and <{STREAMS}...> of streams"
            )
            raise TranslatorError(f"there is no profile <{one.profile}>", one.origin, hint)
        return name

    def _rules(self, one: tree.Import) -> None:
        try:
            path = Path(path_of(Document(one.location, origin=one.origin), self.places))
        except UsageError as error:
            raise TranslatorError(
                f"the document <{one.location}> is not loaded from there", one.origin, error.hint
            ) from error
        if path.resolve() in self.seen:
            return
        self.seen.add(path.resolve())
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise TranslatorError(f"the document `{path}` cannot be read: {error}", one.origin) from error
        lex: Any = plugins.load(plugins.LEXERS, "rif" if text.lstrip("\ufeff \t\r\n").startswith("<") else "rifps")
        self.add(lex(text, str(path)), path)

    def check_profiles(self) -> None:
        """All profiles have to be ones that can be had; the highest of them is the one for all data."""
        for name, one in self.profiled.items():
            if name in _OTHERS:
                message = f"the profile <{one.profile}> cannot be had by rules"
                others = [other for other in self.profiled if other in ORDER]
                if name.startswith("OWL") and others:
                    message += f", nor goes it together with <{ENTAILMENT}{others[0]}>"
                self.errors.append(TranslatorError(message, one.origin, _OTHERS[name]))
        if "OWL-Direct" in self.profiled:
            self.errors += [_variable_attribute(frame) for frame in _variable_frames(self.closure.documents)]
        known = [name for name in self.profiled if name in ORDER]
        self.closure.profile = max(known, key=ORDER.index, default="Simple")


def _variable_frames(documents: Sequence[tree.Document]) -> Iterator[tree.Frame]:
    for document in documents:
        for node in tree.parts(document.group):
            if isinstance(node, tree.Frame) and any(isinstance(attribute, tree.Var) for attribute, _ in node.slots):
                yield node


def _variable_attribute(frame: tree.Frame) -> TranslatorError:
    hint = "OWL-Direct has no variables for properties (RIF RDF and OWL Compatibility, section 4.1.2)"
    return TranslatorError("this frame has an attribute that is a variable", frame.origin, hint)


FORBIDDEN = (tree.IRI, tree.LOCAL, tree.PLAIN)
"""The datatypes that no literal of imported data may have (RIF RDF and OWL Compatibility, section 3.1.1)."""
