"""A safe reader of XML as elements with places: it reads no external entities, and bounds the size of internal ones.

The parser is expat of Python's standard library, which also bounds the expansion of entities.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from xml.parsers import expat

from squall.errors import LexerError, Origin, raise_all

MAX_DEPTH = 200
"""The deepest nesting of elements."""
MAX_ENTITY_LENGTH = 300
"""The largest number of characters of an internal entity, which abbreviates an IRI."""

XML = "http://www.w3.org/XML/1998/namespace"


@dataclass
class Element:
    """An XML element.

    Attributes:
        name: The local name.
        namespace: The namespace, or ``""``.
        attributes: The attributes by name (``{namespace}name``).
    """

    name: str
    namespace: str
    attributes: dict[str, str]
    origin: Origin
    children: list[Element] = field(default_factory=list)
    text: str = ""

    def __iter__(self) -> Iterator[Element]:
        return iter(self.children)


def read(text: str, name: str) -> Element:
    """Returns the root element of a text.

    Raises:
        LexerError: There is an error.
        Errors: There are several errors.
    """
    return _Reader(text, name).read()


class _Reader:
    def __init__(self, text: str, name: str) -> None:
        self.text = text
        self.name = name
        self.errors: list[LexerError] = []
        self.open: list[Element] = []
        self.pieces: list[list[str]] = []
        self.root: Element | None = None
        self.parser = parser = expat.ParserCreate(namespace_separator="}")
        parser.buffer_text = True
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._characters
        parser.EntityDeclHandler = self._entity
        parser.ExternalEntityRefHandler = self._external
        parser.SkippedEntityHandler = self._skipped

    def read(self) -> Element:
        try:
            self.parser.Parse(self.text, True)
        except expat.ExpatError as error:
            place = self._origin(error.lineno, error.offset + 1)
            self.errors.append(LexerError(f"the XML is not well formed: {expat.ErrorString(error.code)}", place))
        raise_all(self.errors)
        assert self.root is not None, "what is well formed has a root"
        return self.root

    def _origin(self, line: int, column: int, length: int = 1) -> Origin:
        return Origin(self.name, self.text, line, column, length)

    def _here(self, length: int = 1) -> Origin:
        return self._origin(self.parser.CurrentLineNumber, self.parser.CurrentColumnNumber + 1, length)

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        namespace, _, local = name.rpartition("}")
        if len(self.open) == MAX_DEPTH:
            raise LexerError(f"elements are nested deeper than {MAX_DEPTH}", self._here())
        named_attributes = {f"{{{key}" if "}" in key else key: value for key, value in attributes.items()}
        element = Element(local, namespace, named_attributes, self._here(len(local) + 1))
        if self.open:
            self.open[-1].children.append(element)
        else:
            self.root = element
        self.open.append(element)
        self.pieces.append([])

    def _end(self, name: str) -> None:
        self.open.pop().text = "".join(self.pieces.pop())

    def _characters(self, data: str) -> None:
        self.pieces[-1].append(data)

    def _entity(
        self,
        name: str,
        is_parameter: bool,
        value: str | None,
        base: object,
        system: object,
        public: object,
        how: object,
    ) -> None:
        if is_parameter or value is None:
            kind = "parameter" if is_parameter else "external"
            raise LexerError(f"the {kind} entity `{name}` is not read", self._here(), "write what it stands for")
        if len(value) > MAX_ENTITY_LENGTH or "&" in value:
            hint = f"an entity abbreviates an IRI: it has {MAX_ENTITY_LENGTH} characters at most, and no entity in it"
            raise LexerError(f"the entity `{name}` is too large", self._here(), hint)

    def _external(self, context: str, base: object, system: str | None, public: object) -> int:
        raise LexerError(f"the external entity `{system}` is not read", self._here(), "write what it stands for")

    def _skipped(self, name: str, is_parameter: bool) -> None:
        raise LexerError(f"the entity `{name}` is not declared", self._here())
