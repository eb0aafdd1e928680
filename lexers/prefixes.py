"""Prefixes from outside of a program: a mapping, or a file of declarations as in Turtle, SPARQL or Jena's rules."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from squall.errors import UsageError, did_you_mean, raise_all
from squall.lexers.text import Text
from squall.rdf.iris import is_absolute

Prefixes = Mapping[str, str] | str | Path | None
"""Prefixes with their IRIs, or a file that declares them. None: no prefixes."""

_BASE = (
    r"A-Za-z\u00C0-\u00D6\u00D8-\u00F6\u00F8-\u02FF\u0370-\u037D\u037F-\u1FFF\u200C\u200D\u2070-\u218F\u2C00-\u2FEF"
    r"\u3001-\uD7FF\uF900-\uFDCF\uFDF0-\uFFFD\U00010000-\U000EFFFF"
)
_OTHERS = r"_0-9\u00B7\u0300-\u036F\u203F\u2040-"
_NAME = re.compile(rf"(?:[{_BASE}](?:[.{_BASE}{_OTHERS}]*[{_BASE}{_OTHERS}])?)?")
"""PN_PREFIX of SPARQL and Turtle, or nothing."""
_DECLARATION = re.compile(
    r"(?:@prefix|PREFIX)[ \t\r\n]+(?P<prefix>[^\s:<>#]*):[ \t\r\n]*<(?P<iri>[^<>]*)>(?:[ \t\r\n]*\.)?", re.IGNORECASE
)
_BLANK = re.compile(r"(?:[ \t\r\n]+|#[^\r\n]*)*")


def as_prefixes(prefixes: Prefixes) -> dict[str, str]:
    """Returns prefixes as a mapping to IRIs.

    Args:
        prefixes: A mapping, the path of a file of declarations, or None.

    Raises:
        UsageError: A prefix or an IRI is none, or the file cannot be read.
        LexerError: The file has something else than declarations.
        Errors: It has several errors.
    """
    if isinstance(prefixes, str | Path):
        return load(prefixes)
    for prefix, namespace in (prefixes or {}).items():
        if message := _fault(prefix, namespace):
            raise UsageError(message, hint="a prefix stands for an absolute IRI: `ex` for `http://example.org/`")
    return {prefix: str(namespace) for prefix, namespace in (prefixes or {}).items()}


def load(path: str | Path) -> dict[str, str]:
    """Returns the prefixes that a file declares. The errors are those of `as_prefixes`."""
    try:
        text = Path(path).read_bytes().decode("utf-8")
    except (OSError, ValueError) as error:
        raise UsageError(f"the prefixes of `{path}` cannot be read: {error}") from error
    return read(text, str(path))


def read(text: str, name: str) -> dict[str, str]:
    """Returns the prefixes that a text declares by ``PREFIX`` or ``@prefix``. The errors are those of `as_prefixes`."""
    source = Text(text.removeprefix("\ufeff"), name)
    prefixes: dict[str, str] = {}
    for prefix, namespace, start, end in _declarations(source):
        message = _fault(prefix, namespace)
        if prefixes.get(prefix, namespace) != namespace:
            message = f"the prefix `{prefix}:` stands for <{prefixes[prefix]}> already"
        if message:
            source.fail(message, source.origin(start, end))
        prefixes[prefix] = namespace
    raise_all(source.errors)
    return prefixes


def _declarations(source: Text) -> Iterator[tuple[str, str, int, int]]:
    """Yields each prefix and its IRI, with the position of the declaration, up to something else."""
    position = _end_of_blank(source.text, 0)
    while position < len(source.text):
        match = _DECLARATION.match(source.text, position)
        if match is None:
            word = source.text[position:].split(maxsplit=1)[0][:40]
            origin = source.origin(position, position + len(word))
            source.fail(f"`{word}` declares no prefix", origin, "write `PREFIX ex: <http://example.org/>`")
            return
        yield match["prefix"], match["iri"], match.start(), match.end()
        position = _end_of_blank(source.text, match.end())


def _end_of_blank(text: str, position: int) -> int:
    match = _BLANK.match(text, position)
    return match.end() if match else position


def _fault(prefix: str, namespace: str) -> str | None:
    """Returns why these are no prefix and its IRI, or None."""
    if not _NAME.fullmatch(prefix):
        return f"`{prefix}` is not a prefix"
    return None if is_absolute(namespace) else f"`{namespace}` is not an absolute IRI"


def declaration_hint(prefix: str, declared: Iterable[str], declaration: str, namespace: str) -> str:
    """Returns the hint for a prefix that is not declared.

    Args:
        prefix: The prefix.
        declared: The prefixes that are declared.
        declaration: A declaration of it in the language of the program.
        namespace: The IRI that the declaration proposes.
    """
    similar = did_you_mean(f"{prefix}:", [f"{other}:" for other in declared])
    remedy = f"declare it: `{declaration}`, or `--prefix {prefix}={namespace}`"
    return f"{similar} Or {remedy}" if similar else remedy
