"""Contexts of JSON-LD documents: those that are in other files are put into the document before it is parsed.

Nothing is fetched unless it is asked for. A relative context of a document in a file is read beside it; any other one
has to be named with a file of its own (``--graph IRI=FILE``), or with a URL, from which it is fetched once.

Source: JSON-LD 1.1 Processing Algorithms and API, section 4.1 (context processing).
"""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urldefrag, urljoin, urlsplit

from squall import plugins
from squall.errors import SourceError, UsageError
from squall.streams.address import Address, parse
from squall.streams.dead_letters import RunLedger
from squall.streams.formats import Malformed

_CACHED_FILES = 64
"""The number of files with contexts that are kept in memory."""


class ContextFiles:
    """The files with contexts to which a document may refer."""

    def __init__(self, base: str | None, documents: Mapping[str, str]) -> None:
        """Creates it.

        Args:
            base: The IRI of the document, or None.
            documents: Files, by the IRIs for which they stand.
        """
        self._base = base
        self._documents = {_normalized(iri): file for iri, file in documents.items()}

    def inlined(self, context: Any) -> Any:
        """Returns a context in which all contexts of other files are included. Raises Malformed."""
        return self._inlined(context, self._base or "", ())

    def _inlined(self, context: Any, base: str, parents: tuple[str, ...]) -> Any:
        if isinstance(context, str):
            return self._loaded(context, base, parents)
        if isinstance(context, list):
            members = [self._inlined(member, base, parents) for member in context]
            return [part for member in members for part in (member if isinstance(member, list) else [member])]
        if not isinstance(context, dict):
            return context
        definitions = {name: self._definition(value, base, parents) for name, value in context.items()}
        if "@import" not in context:
            return definitions
        imported = self._loaded(context["@import"], base, parents)
        if not isinstance(imported, dict):
            raise Malformed(f"the context `{context['@import']}` cannot be imported: it is not one object", None)
        del definitions["@import"]
        return {**imported, **definitions}

    def _definition(self, value: Any, base: str, parents: tuple[str, ...]) -> Any:
        """Returns the definition of a term, which may have a context of its own."""
        if not isinstance(value, dict) or "@context" not in value:
            return value
        return {**value, "@context": self._inlined(value["@context"], base, parents)}

    def _loaded(self, reference: Any, base: str, parents: tuple[str, ...]) -> Any:
        """Returns the context to which a reference leads."""
        if not isinstance(reference, str):
            raise Malformed(f"`{reference}` is no reference to a context", None)
        iri = urldefrag(urljoin(base, reference))[0]
        if iri in parents:
            raise Malformed(f"the context <{iri}> includes itself", None)
        place = self._place_of(iri, reference, base)
        document = _read(place)
        if not isinstance(document, dict) or "@context" not in document:
            raise Malformed(f"the context `{place.text}` has no `@context`", None)
        return _without_base(self._inlined(document["@context"], iri, (*parents, iri)))

    def _place_of(self, iri: str, reference: str, base: str) -> Address:
        """Returns the address of a context. Raises Malformed if there is none."""
        if (address := self._documents.get(_normalized(iri))) is not None:
            return parse(address, "stdin")
        if urlsplit(base).scheme == "file" and not urlsplit(reference).scheme and not urlsplit(reference).netloc:
            path = unquote(urlsplit(iri).path)
            return Address(path, "file", path)
        raise Malformed(f"the context <{iri}> is not fetched: name its file by `--graph {iri}=FILE`", None)


def _read(place: Address) -> Any:
    """Returns the JSON at an address. Raises Malformed."""
    try:
        if place.scheme in ("http", "https"):
            return _fetched(place)
        if place.scheme != "file":
            raise Malformed(f"the context `{place.text}` is neither a file nor a document of a server", None)
        status = os.stat(place.path)
        return _json_of(place.path, status.st_mtime_ns, status.st_size)
    except OSError as error:
        raise Malformed(f"the context `{place.text}` cannot be read: {error.strerror}", None) from error
    except SourceError as error:
        raise Malformed(f"the context cannot be read: {error.message}", None) from error
    except (ValueError, RecursionError) as error:
        raise Malformed(f"the context `{place.text}` is no JSON: {error}", None) from error


def outside_context(address: Address, formats: Collection[str]) -> str:
    """Returns the context that the option ``context`` of a source names, as JSON; ``""`` if there is none.

    It is read once, so that all processes of a run have the same. Contexts to which it refers are included.

    Args:
        address: The address of the source.
        formats: The names of the formats of its documents.

    Raises:
        UsageError: There is no such context, or no document is JSON-LD.
    """
    if not (name := address.get("context")):
        return ""
    if "jsonld" not in formats:
        hint = "name the format: `format=jsonld`" if not address.get("format") else "leave `context` out"
        raise UsageError(f"`context={name}` in `{address.text}` is for JSON-LD alone", hint=hint)
    place = parse(name, "stdin")
    base = Path(place.path).absolute().as_uri() if place.scheme == "file" else f"{place.scheme}:{place.path}"
    try:
        document = _read(place)
        if not isinstance(document, dict) or "@context" not in document:
            raise Malformed(f"the context `{place.text}` has no `@context`", None)
        return json.dumps(_without_base(ContextFiles(base, {}).inlined(document["@context"])))
    except Malformed as error:
        hint = 'it is a file of JSON: `{"@context": {"name": "http://example.org/name"}}`'
        raise UsageError(f"`{address.text}` cannot be read: {error.reason}", hint=hint) from error


def refers(context: Any) -> bool:
    """Returns whether a context refers to others."""
    if isinstance(context, list):
        return any(map(refers, context))
    if not isinstance(context, dict):
        return isinstance(context, str)
    definitions = (value["@context"] for value in context.values() if isinstance(value, dict) and "@context" in value)
    return "@import" in context or any(map(refers, definitions))


def lost_keys(document: Any) -> Iterator[str]:
    """Yields the keys with a value in a document outside of its contexts; keywords are none."""
    if isinstance(document, list):
        for member in document:
            yield from lost_keys(member)
    elif isinstance(document, dict):
        for key, value in document.items():
            if key == "@context" or value in (None, [], {}):
                continue
            if not key.startswith("@"):
                yield key
            yield from lost_keys(value)


def _normalized(iri: str) -> str:
    """Returns an IRI without a fragment, and with a path (RFC 3986, section 6.2.3)."""
    parts = urlsplit(urldefrag(iri)[0])
    return parts._replace(path="/").geturl() if parts.netloc and not parts.path else parts.geturl()


def _without_base(context: Any) -> Any:
    """Returns a context of another file without ``@base``, which has no effect there."""
    if isinstance(context, list):
        return [_without_base(member) for member in context]
    return {name: value for name, value in context.items() if name != "@base"} if isinstance(context, dict) else context


@lru_cache(_CACHED_FILES)
def _fetched(place: Address) -> Any:
    """Returns the JSON of a document of a server, which is fetched once by this process."""
    format = () if place.get("format") else (("format", "jsonld"),)
    address = replace(place, options=(*place.options, *format))
    source: Any = plugins.load(plugins.SOURCES, place.scheme)(address, RunLedger())
    return json.loads(source.content())


@lru_cache(_CACHED_FILES)
def _json_of(file: str, modified: int, size: int) -> Any:
    """Returns the content of a file, which has been modified at some time and has some size."""
    with open(file, encoding="utf-8-sig") as opened:
        return json.load(opened)
