"""The closure of an ontology's imports: the axioms of all of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from squall.errors import Origin, SquallError, TranslatorError, UsageError, single_errors
from squall.lexers.owl import lexer, tree
from squall.model import Document
from squall.streams.sources.documents import path_of


def read(location: str, origin: Origin | None, places: Mapping[str, str], importer: str) -> tree.Ontology:
    """Reads an ontology that a program names.

    Args:
        location: Its IRI.
        origin: Where the program names it.
        places: Files by IRI.
        importer: The name of the program, beside which relative IRIs are looked for.

    Raises:
        TranslatorError: There is no file for the IRI, or it cannot be read.
        LexerError: It is no ontology.
    """
    try:
        path = path_of(Document(location, origin or Origin(importer, "", 1, 1)), places)
        text = Path(path).read_text(encoding="utf-8")
    except UsageError as error:
        message = f"the ontology <{location}> is not loaded from there"
        raise TranslatorError(message, origin, error.hint) from error
    except (OSError, UnicodeDecodeError) as error:
        raise TranslatorError(f"the ontology <{location}> cannot be read: {error}", origin) from error
    return lexer(text, path)


def closure(
    ontologies: Iterable[tree.Ontology], places: Mapping[str, str], errors: list[SquallError]
) -> list[tree.Ontology]:
    """Returns ontologies with all that they import, each once.

    Args:
        ontologies: The ontologies.
        places: Files by IRI.
        errors: The list to which errors are added.
    """
    closed = list(ontologies)
    seen = {ontology.iri for ontology in closed} | {ontology.name for ontology in closed}
    for ontology in closed:  # which grows
        for import_ in ontology.imports:
            if import_.location in seen:
                continue
            seen.add(import_.location)
            try:
                imported = read(import_.location, import_.origin, places, ontology.name)
            except SquallError as error:
                errors += single_errors(error)
                continue
            if not {imported.iri, imported.name} & seen - {import_.location, ""}:
                closed.append(imported)
            seen |= {imported.iri, imported.name}
    return closed
