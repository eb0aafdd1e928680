"""The translator of RIF documents. Every rule runs forward.

Sources: RIF-BLD (second edition), section 3 (semantics); RIF RDF and OWL Compatibility for frames, ``#`` and ``##``.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import PurePath

from squall.errors import SquallError, raise_all
from squall.lexers.rif import tree
from squall.model import System
from squall.translators.rif.contexts import check_contexts, unmarked_builtin_warnings
from squall.translators.rif.imports import closure
from squall.translators.rif.rules import Rules
from squall.translators.rif.writing import written


def translator(
    document: tree.Document,
    documents: Mapping[str, str] | None = None,
    prefixes: Mapping[str, str] | None = None,
) -> System:
    """Translates a RIF document and its imports to a system with one subsystem for each rule, each read by all.

    A rule is named by its metadata, or else by its position: ``rule1``, ``rule2``.

    Args:
        document: The document.
        documents: The files of imported RIF documents by their IRIs, if these are not relative.
        prefixes: Prefixes from outside, for imported RIF documents.

    Raises:
        TranslatorError: The document cannot be translated.
        Errors: There are several errors. All of a program's errors are raised at once.
    """
    errors: list[SquallError] = []
    imported = closure(document, documents or {}, errors, prefixes or {})
    errors += check_contexts(imported.documents)
    rules = Rules(imported, errors)
    systems = rules.systems()
    raise_all(errors)
    return System(
        name=PurePath(document.name).stem,
        subsystems=tuple(systems),
        documents=imported.data,
        streams=imported.streams,
        warnings=(*unmarked_builtin_warnings(imported.documents), *rules.warnings),
    )


translator.written = partial(written, translate=translator)  # type: ignore[attr-defined]
