"""The bytes of a document as its parser gets them: what a byte order mark, a line end and an encoding are.

This is the policy of all sources, whatever carries a document: a file, a connection, a message, a part of a file on a
worker. docs/reading.md states it for users.

* The text is UTF-8. A byte order mark in front of it is left out. RDF/XML may also have another encoding that its
  declaration, or a byte order mark, names.
* In formats of lines, LF, CR LF and CR alone end a line. RDF/XML has the line ends of XML, Turtle and others their own.
* A document without bytes, or of blanks alone, has no statements.
"""

from __future__ import annotations

import codecs
import io
import json
import re
from collections.abc import Sequence
from typing import IO, Any, cast

from pyoxigraph import RdfFormat

from squall.streams.formats import Format, Malformed
from squall.streams.formats.compression import COMPRESSIONS
from squall.streams.formats.jsonld_contexts import ContextFiles, lost_keys, refers

BOM = codecs.BOM_UTF8
_UTF_32 = (codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)
_UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_SIGNATURES = (BOM, *_UTF_32, *_UTF_16, *(compression.signature for compression in COMPRESSIONS))
_HEAD_BYTES = 1 << 16
"""The number of bytes that are read at a time until the beginning of a document is known."""
_MAX_HEAD_BYTES = 1 << 20
"""The most bytes of blanks before the content, or of an XML prolog, that are looked at."""
_LONE_CR = re.compile(rb"\r(?!\n)")
_LINES = (RdfFormat.N_TRIPLES, RdfFormat.N_QUADS)


def unify_line_ends(data: bytes) -> bytes:
    """Returns lines in which a line feed ends each: CR alone becomes LF. The length stays the same."""
    return _LONE_CR.sub(b"\n", data) if b"\r" in data else data


def count_lines(data: bytes) -> int:
    """Returns the number of line ends in lines: LF, CR LF, or CR alone."""
    return unify_line_ends(data).count(b"\n")


def text_of_lines(block: bytes, is_begin: bool) -> bytes:
    """Returns a block of lines, without the end of the last one, as a parser gets it.

    Args:
        block: The lines.
        is_begin: Whether they are at the beginning of the document.

    Raises:
        Malformed: The document is compressed, or not UTF-8.
    """
    input = _LineInput(cast(IO[bytes], io.BytesIO(block)), is_begin)
    input.begin()
    return input.read() if is_begin or b"\r" in block else block


def text_input(
    file: IO[bytes],
    format: Format,
    is_begin: bool = True,
    base: str | None = None,
    documents: Sequence[tuple[str, str]] = (),
    context: str = "",
) -> TextInput:
    """Returns the input of a document.

    Args:
        file: The bytes of the document. It may have the attributes `is_cut`, and `ends_in_cr`, which says
            that the byte before them is a CR; and `can_rewind` with a method `rewind`.
        format: The format of the document.
        is_begin: Whether the file is at the beginning of the document.
        base: The IRI of the document, or None.
        documents: IRIs, and the files for which they stand: contexts of JSON-LD.
        context: The context of JSON-LD documents from outside, as JSON; ``""``: there is none.
    """
    if format.binary:
        return TextInput(file, False)
    if format.records and not format.lines:
        return TextInput(file, is_begin)  # a text in quotes may have line ends of any kind
    if format.syntax == RdfFormat.JSON_LD:
        return _JsonLdInput(file, ContextFiles(base, dict(documents)), context)
    if format.syntax == RdfFormat.RDF_XML:
        return _XmlInput(file)
    return _LineInput(file, is_begin) if format.syntax in _LINES else TextInput(file, is_begin)


class TextInput:
    """The bytes of a document, for a parser.

    Attributes:
        skipped: The number of bytes at the beginning that are left out.
    """

    def __init__(self, file: IO[bytes], is_begin: bool) -> None:
        self._file = file
        self._is_begin = is_begin
        self._ahead = b""
        """The bytes that have been read of the file, but not by the parser."""
        self.skipped = 0

    @property
    def is_cut(self) -> bool:
        """Whether reading was stopped before the end."""
        return bool(getattr(self._file, "is_cut", False))

    def begin(self) -> bool:
        """Reads the beginning of the document, and returns whether there may be statements in it.

        Raises:
            Malformed: The document is compressed, or not UTF-8.
        """
        if not self._is_begin:
            return True
        self._read_head()
        self._check_signature()
        return self.has_content()

    def read(self, size: int = -1) -> bytes:
        """Reads some bytes, or all that are left (-1); ``b""`` at the end."""
        if size < 0:
            self._ahead, data = b"", self._ahead
            return data + self._read_bytes(size)
        self._ahead = self._ahead or self._read_bytes(size)
        data, self._ahead = self._ahead[:size], self._ahead[size:]
        return data

    def why_nothing(self) -> str:
        """Returns why a document without an error, which has been read, has no statements; ``""`` if it need not."""
        return ""

    def _read_bytes(self, size: int) -> bytes:
        """Reads bytes of the file, and converts them, so that there may be more; ``b""`` at the end."""
        return self._file.read(size)

    @property
    def can_rewind(self) -> bool:
        """Whether the document can be read again."""
        return isinstance(self._file, io.BytesIO) or bool(getattr(self._file, "can_rewind", False))

    def rewind(self) -> None:
        """Goes back to the beginning, as after `begin`. It must be possible (`can_rewind`)."""
        if isinstance(self._file, io.BytesIO):
            self._file.seek(0)
        else:
            cast(Any, self._file).rewind()
        self._ahead, self.skipped = b"", 0
        self.begin()

    def has_content(self) -> bool:
        """Reads on while there are blanks alone, and returns whether something follows."""
        while not self._ahead.strip():
            if len(self._ahead) > _MAX_HEAD_BYTES or not self._read_more():
                return bool(self._ahead.strip()) or len(self._ahead) > _MAX_HEAD_BYTES
        return True

    def _read_more(self) -> bool:
        """Reads more bytes ahead. Returns False at the end."""
        data = self._read_bytes(_HEAD_BYTES)
        self._ahead += data
        return bool(data)

    def _read_head(self) -> None:
        """Reads enough to tell the signature of the document, and leaves out a byte order mark."""
        while any(signature.startswith(self._ahead[: len(signature)]) and len(self._ahead) < len(signature)
                  for signature in _SIGNATURES) and self._read_more():  # fmt: skip
            pass
        if self._ahead.startswith(BOM):
            self.skipped = len(BOM)
            self._ahead = self._ahead[self.skipped :]

    def _check_signature(self) -> None:
        if self._ahead.startswith((*_UTF_32, *_UTF_16)):
            raise Malformed("the text is UTF-16 or UTF-32, and not UTF-8", None)
        for compression in COMPRESSIONS:
            if self._ahead.startswith(compression.signature):
                reason = f"it is compressed; name that by the ending `{compression.ending}`"
                raise Malformed(f"{reason}, or by the format, such as `format=nt{compression.ending}`", None)


class _LineInput(TextInput):
    """The bytes of a document of lines. A line feed ends each line."""

    def __init__(self, file: IO[bytes], is_begin: bool) -> None:
        super().__init__(file, is_begin)
        self._after_cr = bool(getattr(file, "ends_in_cr", False))

    def has_content(self) -> bool:
        return True  # blank lines are read as all others are

    def read(self, size: int = -1) -> bytes:
        data = super().read(size)
        return self._unified(data) if self._after_cr or b"\r" in data else data

    def rewind(self) -> None:
        self._after_cr = False
        super().rewind()

    def _unified(self, data: bytes) -> bytes:
        """Unifies line ends. A line feed after a CR that has been read becomes a blank, since positions count bytes."""
        if self._after_cr and data.startswith(b"\n"):
            data = b" " + data[1:]
        self._after_cr = data.endswith(b"\r")
        return unify_line_ends(data)


_ENCODING = re.compile(rb"""(<\?xml\s[^>]*?)\sencoding\s*=\s*(?:"([A-Za-z0-9._-]+)"|'([A-Za-z0-9._-]+)')""")
_MISCELLANEOUS = re.compile(rb"(?s)(?:\s++|<\?.*?\?>|<!--.*?-->)*+")
"""What may be in front of the document type declaration."""
_DOCUMENT_TYPE = re.compile(
    rb"""(?sx)<!DOCTYPE(?>[^\[>"']|"[^"]*"|'[^']*')*
    (?:\[(?>[^\]"'<]|"[^"]*"|'[^']*'|<!--.*?-->|<\?.*?\?>|<(?!!--|\?))*\]\s*)?>"""
)
_ENTITIES = re.compile(
    rb"""(?sx)<!--.*?-->|<\?.*?\?>|<!ENTITY\s+([^\s"'<>%;&]+)\s+("[^"]*"|'[^']*')\s*>|"[^"]*"|'[^']*'"""
)
"""The general entities of a declaration, which have a name and a value; and what may contain something like them."""
_ESCAPES = ((b'"', b"&#34;"), (b">", b"&#62;"), (b"]", b"&#93;"), (b"\n", b"&#10;"))
"""Characters of a value, and how they are written."""
_OPENINGS = (b"<!DOCTYPE", b"<!--", b"<?")


class _XmlInput(TextInput):
    """The bytes of an XML document, in UTF-8, with the line ends of XML, and a plain document type declaration.

    The library reads no other encodings, and not all declarations. Sources: XML 1.0 (fifth edition), sections
    2.11, 4.2, 4.3.3 and appendix F.
    """

    def __init__(self, file: IO[bytes]) -> None:
        super().__init__(file, True)
        self._is_converting = False
        self._decoder: codecs.IncrementalDecoder | None = None
        self._after_cr = False

    def begin(self) -> bool:
        self._is_converting, self._decoder, self._after_cr = False, None, False
        self._read_head()
        encoding = self._encoding()
        self._decoder = codecs.getincrementaldecoder(encoding)() if encoding else None
        self._is_converting = True
        self._ahead = self._converted(self._ahead, False)
        while not self._prolog_ends() and self._read_more():
            pass
        self._ahead = self._rewritten(self._ahead)
        return self.has_content()

    def _read_bytes(self, size: int) -> bytes:
        while data := super()._read_bytes(size):
            if not self._is_converting or (converted := self._converted(data, False)):
                return converted if self._is_converting else data
        return self._converted(b"", True) if self._is_converting else b""

    def _encoding(self) -> str:
        """Returns the encoding of the document; ``""`` for UTF-8. Raises Malformed if it is unknown."""
        for begin, encoding in _XML_BEGINS:
            if self._ahead.startswith(begin):
                return encoding
        self._check_signature()
        while self._ahead.startswith(b"<?xml") and b"?>" not in self._ahead and len(self._ahead) < _MAX_HEAD_BYTES:
            if not self._read_more():
                break
        declared = _ENCODING.match(self._ahead)
        name = (declared[2] or declared[3]).decode() if declared else ""
        try:
            info = codecs.lookup(name or "utf-8")
        except LookupError:
            raise Malformed(f"its encoding `{name}` is unknown", 1) from None
        # The declaration has been read as ASCII, so that the text is not UTF-16 or UTF-32, whatever it says.
        is_utf8 = info.name in ("utf-8", "ascii") or info.name.startswith(("utf-16", "utf-32"))
        return "" if is_utf8 else info.name

    def _converted(self, data: bytes, is_end: bool) -> bytes:
        """Returns bytes of the document in UTF-8, with unified line ends. Raises Malformed."""
        if self._decoder is not None:
            try:
                data = self._decoder.decode(data, is_end).encode()
            except ValueError as error:
                raise Malformed(f"the text is not in its encoding: {error}", None) from error
        if not data:
            return data
        if self._after_cr and data.startswith(b"\n"):
            data = data[1:]
        self._after_cr = data.endswith(b"\r")
        return data.replace(b"\r\n", b"\n").replace(b"\r", b"\n") if b"\r" in data else data

    def _prolog_ends(self) -> bool:
        """Returns whether what has been read ahead has the whole prolog."""
        head = _MISCELLANEOUS.match(self._ahead)
        assert head is not None  # it may be empty
        after_head = self._ahead[head.end() :]
        if len(self._ahead) > _MAX_HEAD_BYTES or after_head.startswith(b"<!DOCTYPE"):
            return len(self._ahead) > _MAX_HEAD_BYTES or _DOCUMENT_TYPE.match(after_head) is not None
        return bool(after_head) and not any(opening.startswith(after_head[: len(opening)]) for opening in _OPENINGS)

    def _rewritten(self, prolog: bytes) -> bytes:
        """Returns the beginning of the document without its encoding, and with a plain document type declaration."""
        prolog = _ENCODING.sub(rb"\1", prolog, count=1) if _ENCODING.match(prolog) else prolog
        head = _MISCELLANEOUS.match(prolog)
        assert head is not None
        declaration = _DOCUMENT_TYPE.match(prolog, head.end())
        if declaration is None:
            return prolog
        return prolog[: head.end()] + _plain_declaration(declaration[0]) + prolog[declaration.end() :]


_XML_BEGINS = (
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
    ("<?".encode("utf-16-le"), "utf-16-le"),
    ("<?".encode("utf-16-be"), "utf-16-be"),
)
"""How XML in other encodings than those that have ASCII begins, and its encoding."""


def _plain_declaration(declaration: bytes) -> bytes:
    """Returns a document type declaration with as many lines, and only with its entities, in double quotes.

    The first declaration of an entity counts. One that has markup is left out: a reference to it is an error.
    """
    entities: dict[bytes, bytes] = {}
    for name, value in _ENTITIES.findall(declaration):
        if name:
            entities.setdefault(name, value[1:-1])
    text = b""
    for name, value in entities.items():
        for character, escape in _ESCAPES:
            value = value.replace(character, escape)
        text += b'<!ENTITY %b "%b">' % (name, value) if b"<" not in value else b""
    return b"<!DOCTYPE rdf:RDF [%b%b]>" % (text, b"\n" * declaration.count(b"\n"))


_CONTEXT = re.compile(rb"""(?<!\\)"@context"\s*:\s*(?=\S)""")
_CONTEXT_BEGIN = re.compile(rb"""(?<!\\)"(?:@|@c|@co|@con|@cont|@conte|@contex|@context|@context"\s*:?\s*)?\Z""")
"""What may become the beginning of a context."""
_MAX_CONTEXT_BYTES = 1 << 24
"""The most bytes of a context that is looked at."""


class _JsonLdInput(TextInput):
    """The bytes of a JSON-LD document, in which contexts of other files are included.

    A context from outside is the first key of the document. If that has a context there itself, the two are one list,
    so that its own comes second, as JSON-LD 1.1 API says of the option `expandContext` (section 9.3). An array becomes
    a graph. Line numbers are those of the document.
    """

    def __init__(self, file: IO[bytes], contexts: ContextFiles, outside: str) -> None:
        super().__init__(file, True)
        self._contexts = contexts
        self._outside = outside
        self._is_outside_pending = bool(outside)
        """Whether the context from outside has not been put into the document yet."""
        self._is_merging = False
        """Whether it becomes one with the next context."""
        self._closing = b""
        """The end of the graph that an array has become."""
        self._pending = b""
        """The bytes that have been read, but not been passed on."""
        self._line = 1
        """The number of the line in which they begin."""
        self._beginning = b""
        """The first bytes of the document, in which keys are looked for if there are no statements."""

    def why_nothing(self) -> str:
        try:
            document = json.loads(self._beginning.removeprefix(BOM))
            has_lost_keys = next(lost_keys(document), None) is not None
        except (ValueError, RecursionError):  # it goes on
            has_lost_keys = True
        if not has_lost_keys:
            return ""
        if not self._outside and b'"@context"' not in self._beginning:
            return "it has no `@context`, so that its keys are no IRIs"
        return "none of its keys is an IRI, or a term of its context"

    def _read_bytes(self, size: int) -> bytes:
        data = b"."
        while data:
            data = self._file.read(size)
            if len(self._beginning) < _MAX_HEAD_BYTES:
                self._beginning += data
            self._pending += data
            if self._is_outside_pending and not self._insert_outside(not data):
                continue
            converted = self._convert(not data)
            if not data:
                converted, self._closing = converted + self._closing, b""
            if converted:
                return converted
        return b""

    def _insert_outside(self, is_end: bool) -> bool:
        """Puts the context from outside into the pending bytes. Returns False if their beginning is incomplete."""
        blanks = len(self._pending) - len(self._pending.removeprefix(BOM).lstrip(_JSON_BLANKS))
        head, document = self._pending[:blanks], self._pending[blanks:]
        members = document[1:].lstrip(_JSON_BLANKS)
        if not is_end and (
            not document or BOM.startswith(document) or (document[:1] == b"{" and len(members) < len(_CONTEXT_KEY))
        ):
            return False
        begin = b'{"@context": %b' % self._outside.encode()
        if document.startswith(b"["):
            self._pending, self._closing = b'%b%b, "@graph": %b' % (head, begin, document), b"}"
        elif document.startswith(b"{") and members.startswith(_CONTEXT_KEY):
            self._is_merging = True
        elif document.startswith(b"{"):
            separator = b"" if members.startswith(b"}") else b", "
            self._pending = head + begin + separator + document[1:]
        self._is_outside_pending = False
        return True

    def _convert(self, is_end: bool) -> bytes:
        """Returns pending bytes, up to a context that is incomplete. Raises Malformed."""
        parts: list[bytes] = []
        while match := _CONTEXT.search(self._pending):
            text = self._pending[match.end() :].decode("utf-8", "surrogateescape")
            try:
                context, end = _DECODER.raw_decode(text)
            except ValueError:
                if not is_end and len(text) < _MAX_CONTEXT_BYTES:
                    parts.append(self._pass_on(match.start()))
                    return b"".join(parts)
                context, end = None, 0  # the parser says what is wrong
            except RecursionError:
                context, end = None, 0
            parts.append(self._pass_on(match.end()))
            value = self._pass_on(len(text[:end].encode("utf-8", "surrogateescape")), is_counted=False)
            if self._is_merging and end:
                context, self._is_merging = [*_members(json.loads(self._outside)), *_members(context)], False
                parts.append(self._inlined(context, value))
            else:
                parts.append(self._inlined(context, value) if refers(context) else value)
            self._line += value.count(b"\n")
        begin = None if is_end else _CONTEXT_BEGIN.search(self._pending)
        parts.append(self._pass_on(len(self._pending) if begin is None else begin.start()))
        return b"".join(parts)

    def _inlined(self, context: Any, text: bytes) -> bytes:
        try:
            inlined = self._contexts.inlined(context)
        except Malformed as error:
            raise Malformed(error.reason, self._line) from error
        return json.dumps(inlined).encode() + b"\n" * text.count(b"\n")

    def _pass_on(self, size: int, is_counted: bool = True) -> bytes:
        """Takes some pending bytes away, and returns them."""
        data, self._pending = self._pending[:size], self._pending[size:]
        self._line += data.count(b"\n") if is_counted else 0
        return data


def _members(context: Any) -> list[Any]:
    return context if isinstance(context, list) else [context]


_DECODER = json.JSONDecoder()
_JSON_BLANKS = b" \t\r\n"
_CONTEXT_KEY = b'"@context"'
