"""The imports of a document: RIF documents, RDF data under a profile, and streams.

Sources: RIF-BLD, section 2.5 (Import); RIF RDF and OWL Compatibility, section 5 (profiles).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from squall import plugins
from squall.errors import SquallError, TranslatorError, UsageError, single_errors
from squall.lexers.owl import tree as owl
from squall.lexers.rif import tree
from squall.model import Document, Stream
from squall.streams.sources.documents import path_of
from squall.translators.owl import issue_error
from squall.translators.owl.imports import closure as imported_ontologies
from squall.translators.owl.imports import read as read_ontology
from squall.translators.rif.direct import check_direct
from squall.translators.rif.entailment import DIRECT, SETS, axioms_of

ENTAILMENT = "http://www.w3.org/ns/entailment/"
STREAMS = "http://www.w3.org/ns/stream/"
"""The prefix of the profile of a stream. A format follows it."""

ORDER = tuple(name for name in SETS if name != DIRECT)
"""The profiles of RDF data that rules can implement. Each includes the ones before it."""

_REFUSED = {
    "OWL-RDF-Based": f"import an ontology in OWL 2 RL under `{DIRECT}`, or data under `RDFS` and rules for the rest",
    "RIF": "a RIF document is imported without a profile",
}
"""The profiles that are refused, each with a hint."""


@dataclass
class Closure:
    """A document and all of its imports."""

    documents: list[tree.Document] = field(default_factory=list)
    data: tuple[Document, ...] = ()
    ontologies: list[owl.Ontology] = field(default_factory=list)
    streams: tuple[Stream, ...] = ()
    profile: str = "Simple"


def closure(
    document: tree.Document, places: Mapping[str, str], errors: list[SquallError], prefixes: Mapping[str, str]
) -> Closure:
    """Returns the closure of a document's imports.

    Args:
        document: The document.
        places: Files by IRI.
        errors: The list to which errors are added.
        prefixes: Prefixes that imported documents may use without declaring them.
    """
    finder = _ImportResolver(places, errors, prefixes)
    finder.add(document, Path(document.name))
    finder.check_profiles()
    finder.check_ontologies()
    return finder.closure


class _ImportResolver:
    def __init__(self, places: Mapping[str, str], errors: list[SquallError], prefixes: Mapping[str, str]) -> None:
        self.prefixes = prefixes
        self.places = places
        self.errors = errors
        self.closure = Closure()
        self.seen: set[Path] = set()
        self.profiled: dict[str, tree.Import] = {}

    def add(self, document: tree.Document, path: Path) -> None:
        self.seen.add(path.resolve())
        self.closure.documents.append(document)
        for import_ in document.imports:
            try:
                self._import(import_)
            except SquallError as error:
                self.errors += single_errors(error)

    def _import(self, import_: tree.Import) -> None:
        if import_.profile is None:
            self._rules(import_)
        elif import_.profile.startswith(STREAMS):
            self.closure.streams += (Stream(import_.location, import_.origin),)
        else:
            profile = self._profile(import_)
            self.profiled.setdefault(profile, import_)
            if profile == DIRECT:
                self.closure.ontologies.append(self._ontology(import_))
            else:
                self.closure.data += (Document(import_.location, import_.origin, FORBIDDEN),)

    def _profile(self, import_: tree.Import) -> str:
        name = (import_.profile or "").removeprefix(ENTAILMENT)
        if name in _REFUSED:
            raise TranslatorError(
                f"the profile <{import_.profile}> cannot be had by rules", import_.origin, _REFUSED[name]
            )
        if name not in SETS:
            profiles = ", ".join(f"<{ENTAILMENT}{profile_name}>" for profile_name in SETS)
            hint = f"profiles are {profiles}, and <{STREAMS}...> of streams"
            raise TranslatorError(f"there is no profile <{import_.profile}>", import_.origin, hint)
        return name

    def _rules(self, import_: tree.Import) -> None:
        try:
            path = Path(path_of(Document(import_.location, origin=import_.origin), self.places))
        except UsageError as error:
            raise TranslatorError(
                f"the document <{import_.location}> is not loaded from there", import_.origin, error.hint
            ) from error
        if path.resolve() in self.seen:
            return
        self.seen.add(path.resolve())
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise TranslatorError(f"the document `{path}` cannot be read: {error}", import_.origin) from error
        lex: Any = plugins.load(plugins.LEXERS, "rif" if text.lstrip("\ufeff \t\r\n").startswith("<") else "rifps")
        self.add(lex(text, str(path), prefixes=self.prefixes), path)

    def _ontology(self, import_: tree.Import) -> owl.Ontology:
        ontology = read_ontology(import_.location, import_.origin, self.places, "")
        if not ontology.is_declared:
            hint = "declare it: `<> a owl:Ontology .`"
            message = f"<{import_.location}> is not OWL DL: it does not declare an owl:Ontology"
            raise TranslatorError(message, import_.origin, hint)
        forbidden = [f'"^^<{datatype}>' for datatype in FORBIDDEN]
        for axiom in ontology.axioms:
            if any(datatype in str(axiom) for datatype in forbidden):
                hint = "no literal of what is imported may have this datatype"
                message = f"<{import_.location}> has a literal of a forbidden datatype: `{axiom}`"
                raise TranslatorError(message, import_.origin, hint)
        return ontology

    def check_ontologies(self) -> None:
        """Adds what ontologies import, and records what is not in OWL 2 RL as an error of the first import."""
        if DIRECT not in self.profiled:
            return
        origin = self.profiled[DIRECT].origin
        self.closure.ontologies = imported_ontologies(self.closure.ontologies, self.places, self.errors)
        hint = "{remedy}: correct it, or import it under RDFS"
        name = self.profiled[DIRECT].location
        issues = axioms_of(self.closure.ontologies)
        issues.rules()
        self.errors += (issue_error(issue, name, hint, origin) for issue in issues.issues)

    def check_profiles(self) -> None:
        """Sets the profile for all data, which is the highest one. OWL's direct profile cannot be combined
        with others."""
        other_profiles = [name for name in self.profiled if name in ORDER]
        if DIRECT not in self.profiled:
            self.closure.profile = max(other_profiles, key=ORDER.index, default="Simple")
            return
        self.closure.profile = DIRECT
        direct_import = self.profiled[DIRECT]
        if other_profiles:
            message = (
                f"the profile <{direct_import.profile}> does not go together with <{ENTAILMENT}{other_profiles[0]}>"
            )
            self.errors.append(TranslatorError(message, direct_import.origin, "import all data under one of them"))
        self.errors += check_direct(self.closure.documents)


FORBIDDEN = (tree.IRI, tree.LOCAL, tree.PLAIN)
"""The datatypes that no literal of imported data may have (RIF RDF and OWL Compatibility, section 3.1.1)."""
