"""Folders of contexts: the files that stand for the addresses of JSON-LD contexts."""

from __future__ import annotations

import json
from pathlib import Path

from squall.errors import UsageError
from squall.rdf.iris import is_absolute

INDEX = "contexts.json"
"""The file of a folder that says which file is the context of which IRI."""
_SHAPE = 'write it as `{"https://schema.org": "schema-org.jsonld"}`'


def contexts_of(folder: str | Path) -> dict[str, str]:
    """Returns the files of a folder of contexts by IRI, for the argument `documents` of sources.

    Args:
        folder: A folder with a file ``contexts.json``: a JSON object with the name of a file, relative to the folder,
            for each IRI.

    Raises:
        UsageError: There is no index, it is no such object, or a file that it names does not exist.
    """
    index = Path(folder) / INDEX
    return {iri: _file(index, iri, name) for iri, name in _entries(index).items()}


def _entries(index: Path) -> dict[str, object]:
    try:
        entries = json.loads(index.read_bytes())
    except OSError as error:
        raise UsageError(f"the contexts of `{index.parent}` cannot be read: {index}: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise UsageError(f"`{index}` is not JSON: {error}", hint=_SHAPE) from error
    if not isinstance(entries, dict):
        raise UsageError(f"`{index}` is no JSON object", hint=_SHAPE)
    return entries


def _file(index: Path, iri: str, name: object) -> str:
    if not is_absolute(iri):
        raise UsageError(f"`{index}` has `{iri}`, which is no absolute IRI", hint=_SHAPE)
    if not isinstance(name, str):
        raise UsageError(f"`{index}` has no file for `{iri}`", hint=_SHAPE)
    path = index.parent / name
    if not path.is_file():
        raise UsageError(f"the context <{iri}> of `{index}` is to be in `{path}`, which is no file")
    return str(path)
