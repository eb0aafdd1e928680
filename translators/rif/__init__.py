"""RIF documents to a Translated Production System: every rule runs forward.

Source: RIF-BLD (second edition), section 3 (semantics); RIF RDF and OWL Compatibility for frames, ``#`` and ``##``.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePath

from squall.errors import SquallError, raise_all
from squall.lexers.rif import tree
from squall.model import System
from squall.translators.rif.contexts import check_contexts, unmarked
from squall.translators.rif.imports import closure
from squall.translators.rif.rules import Rules


def translator(document: tree.Document, documents: Mapping[str, str] | None = None) -> System:
    """Translates a RIF document and those that it imports to a system: one subsystem for each rule, each read by all.

    documents: the files of imported RIF documents by their IRIs, where these are not relative. A rule is known by the
    name in its meta-data, else by its position: ``rule1``, ``rule2``. Raises TranslatorError, or Errors with all of the
    program's errors.
    """
    errors: list[SquallError] = []
    imported = closure(document, documents or {}, errors)
    errors += check_contexts(imported.documents)
    rules = Rules(imported, errors)
    systems = rules.systems()
    raise_all(errors)
    return System(
        name=PurePath(document.name).stem,
        subsystems=tuple(systems),
        documents=imported.data,
        streams=imported.streams,
        warnings=(*unmarked(imported.documents), *rules.warnings),
    )
