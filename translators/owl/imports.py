"""The closure of an ontology's imports: the axioms of all of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from squall.errors import Origin, SquallError, TranslatorError, UsageError, single_errors
from squall.lexers.owl import lexer, tree
from squall.model import Document
from squall.streams import address
from squall.streams.formats import format_named
from squall.streams.formats.compression import check_installed, decompressed, split_ending
from squall.streams.formats.compression import errors as compression_errors
from squall.streams.sources.documents import path_of

MAX_BYTES = 2**30
"""The size up to which a compressed ontology is read."""


def read(location: str, origin: Origin | None, places: Mapping[str, str], importer: str) -> tree.Ontology:
    """Reads an ontology that a program names.

    Args:
        location: Its IRI.
        origin: Where the program names it.
        places: Files by IRI, compressed or not. The name of a format may follow (``?format=ttl``).
        importer: The name of the program, beside which relative IRIs are looked for.

    Raises:
        TranslatorError: There is no file for the IRI, or it cannot be read.
        LexerError: It is no ontology.
    """
    unreadable: tuple[type[Exception], ...] = (UnicodeDecodeError, *compression_errors())
    where = "" if origin else f" (in `{importer}`)"
    try:
        place = address.parse(path_of(Document(location, origin or Origin(importer, "", 1, 1)), places), "file")
        place.only("format")
        format, compression = format_named(place.get("format")) if place.get("format") else (None, "")
        text = _text(Path(place.path), compression or split_ending(place.path)[1])
    except UsageError as error:
        message = f"the ontology <{location}> is not loaded from there{where}"
        raise TranslatorError(message, origin, error.hint) from error
    except unreadable as error:
        raise TranslatorError(f"the ontology <{location}> cannot be read: {error}{where}", origin) from error
    return lexer(text, place.path, format=format)


def _text(path: Path, compression: str) -> str:
    check_installed(compression)
    data = path.read_bytes()
    return (decompressed(data, compression, MAX_BYTES) if compression else data).decode()


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
