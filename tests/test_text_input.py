"""The bytes of documents as parsers get them: wherever they are cut, and wherever reading resumes."""

from __future__ import annotations

import codecs
import io
import shutil
import tempfile
from dataclasses import astuple
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from squall.rdf import literal
from squall.streams import formats
from squall.streams.dead_letters import DeadLetterFile
from squall.streams.formats import Malformed
from squall.streams.formats.limits import ReadLimits
from squall.streams.formats.reading import DocumentPosition, ReadProgress, Settings, decode
from squall.streams.formats.text_input import count_lines, text_input, unify_line_ends
from squall.streams.sources.byte_streams import open_file

ENDS = st.sampled_from(["\n", "\r\n", "\r"])
LINES = st.lists(st.tuples(st.sampled_from(["", "<urn:a> <urn:p> <urn:o> .", "nonsense", "# a comment"]), ENDS))
SETTINGS = Settings("", "", 0, limits=ReadLimits(chunk_bytes=8))


class Cut(io.RawIOBase):
    """Bytes that come in pieces."""

    def __init__(self, data: bytes, sizes: list[int]) -> None:
        self._file = io.BytesIO(data)
        self._sizes = iter(sizes)

    def read(self, size: int = -1) -> bytes:
        return self._file.read(min(next(self._sizes, 1 << 20), size) if size >= 0 else size)


class Kept:
    """A ledger that keeps the line and the text of each dead letter."""

    def __init__(self) -> None:
        self.letters: list[tuple[int | None, str]] = []

    def record(self, cause: str, source: str, line: int | None, reason: str, text: str) -> None:
        self.letters.append((line, text.strip()))


def read(file: Any, format: str = "nt", place: DocumentPosition | None = None) -> tuple[list[Any], Kept]:
    ledger = Kept()
    batches = decode(file, "x", formats.BY_NAME[format], SETTINGS, ledger, ReadProgress(), place=place)
    return [fact for batch in batches for event in batch for fact in event.facts], ledger


@given(LINES, st.lists(st.integers(1, 9)), st.booleans())
def test_lines_are_the_same_wherever_they_are_cut(lines: list[tuple[str, str]], sizes: list[int], mark: bool) -> None:
    data = (codecs.BOM_UTF8 if mark else b"") + "".join(map("".join, lines)).encode()
    place = DocumentPosition()
    facts, ledger = read(Cut(data, sizes), place=place)
    assert len(facts) == sum(text.startswith("<") for text, _ in lines)
    # CR, and LF as an empty line after it, are one line end.
    text = "".join(map("".join, lines)).replace("\r\n", "\n").replace("\r", "\n")
    expected = [(number, line) for number, line in enumerate(text.split("\n"), 1) if line == "nonsense"]
    assert ledger.letters == expected
    assert place.offset in (len(data), len(data) + 1)


@given(LINES, st.integers(0, 20), st.booleans())
def test_reading_resumes_at_every_position(lines: list[tuple[str, str]], stop: int, mark: bool) -> None:
    """The number of batches that are read before is `stop`."""
    path = Path(tempfile.mkdtemp(), "x.nt")
    data = (codecs.BOM_UTF8 if mark else b"") + "".join(map("".join, lines)).encode()
    path.write_bytes(data)
    try:
        facts, ledger, place = [], Kept(), DocumentPosition()
        for _ in range(2):  # the first time up to `stop`
            with open_file(str(path), ReadProgress(), "", None) as file:
                if place.offset:
                    assert file.skip(place.offset)
                input: Any = file
                batches = decode(input, "x", formats.BY_NAME["nt"], SETTINGS, ledger, ReadProgress(), place=place)
                for number, batch in enumerate(batches):
                    facts += [fact for event in batch for fact in event.facts]
                    if number == stop:
                        break
                else:
                    break
                batches.close()  # type: ignore[attr-defined]
                place = DocumentPosition(*astuple(place))
                stop = -1
        whole, letters = read(io.BytesIO(data))
        assert facts == whole
        assert ledger.letters == letters.letters
    finally:
        shutil.rmtree(path.parent)


@given(st.binary())
def test_unified_line_ends_are_counted(data: bytes) -> None:
    unified = unify_line_ends(data)
    assert len(unified) == len(data)
    assert count_lines(data) == len(data.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")) - 1
    assert unify_line_ends(unified) == unified


XML = """<?xml version='1.0' encoding='{encoding}'?>
<!-- a comment with <!DOCTYPE in it -->
<!DOCTYPE rdf:RDF [
<!ENTITY e 'http://ex/'> <!-- ' -->
<?a target?>
<!ENTITY % p "]>">
<!ENTITY q 'say "é"'>
] >
<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:e='http://ex/'>
<rdf:Description rdf:about="&e;é"><e:p>&q;
é</e:p></rdf:Description>
</rdf:RDF>
"""


@given(
    st.sampled_from(["utf-8", "utf-16", "utf-32", "iso-8859-1", "utf-8-sig"]),
    st.lists(st.integers(1, 60)),
    st.sampled_from(["\n", "\r\n", "\r"]),
)
def test_xml_is_the_same_wherever_it_is_cut(encoding: str, sizes: list[int], end: str) -> None:
    name = "utf-8" if encoding == "utf-8-sig" else encoding
    data = XML.format(encoding=name).replace("\n", end).encode(encoding)
    facts, ledger = read(Cut(data, sizes), "rdf")
    assert ledger.letters == []
    assert facts == [("<http://ex/é>", "<http://ex/p>", '"say \\"é\\"\\né"')]


@pytest.mark.parametrize(
    ("declarations", "value"),
    [
        ("<!ENTITY q 'x'>", "x"),
        ("<!ENTITY\nq\n'x'\n>", "x"),
        ("<!ENTITY q 'x'><!ENTITY q 'y'>", "x"),
        ("<!ENTITY p ']>'><!ENTITY q 'x&p;'>", "x]>"),
        ("<!ENTITY q 'a\nb'>", "a\nb"),
        ("<!ENTITY q 'a&amp;b &#233;'>", "a&b é"),
        ("<!ELEMENT a (b)><!ATTLIST a b CDATA '>'><!NOTATION n SYSTEM \"']>\"><!ENTITY q 'x'>", "x"),
        ("<!ENTITY e SYSTEM 'http://wrong/'><!ENTITY q 'x'>", "x"),
        ("<!ENTITY % q 'wrong'> %q; <!ENTITY q 'x'>", "x"),
    ],
)
@pytest.mark.parametrize("external", ["", "SYSTEM 'http://x>['", 'PUBLIC "-//x" "http://x"'])
def test_a_document_type_declaration_has_entities(declarations: str, value: str, external: str) -> None:
    body = XML[XML.index("<rdf:RDF") :].replace("&e;", "http://ex/").replace("\né", "")
    text = f"<?xml version='1.0'?>\n<!DOCTYPE rdf:RDF {external} [{declarations}]>\n{body}"
    facts, ledger = read(io.BytesIO(text.encode()), "rdf")
    assert ledger.letters == []
    assert facts == [("<http://ex/é>", "<http://ex/p>", literal(value))]
    _, ledger = read(io.BytesIO(text.replace("</rdf:Desc", "</wrong").encode()), "rdf")
    assert ledger.letters == [(text[: text.index("</rdf:Desc")].count("\n") + 1, "")]


def test_an_entity_with_markup_is_not_read_as_text() -> None:
    text = f"<!DOCTYPE rdf:RDF [<!ENTITY q '<b/>'>]>{XML[XML.index('<rdf:RDF') :]}".replace("&e;", "http://ex/")
    facts, ledger = read(io.BytesIO(text.encode()), "rdf")
    assert facts == []
    assert len(ledger.letters) == 1


@given(st.binary(max_size=300), st.lists(st.integers(1, 9)), st.sampled_from(["rdf", "jsonld", "ttl", "nt", "trig"]))
def test_any_bytes_are_read_or_are_dead_letters(data: bytes, sizes: list[int], format: str) -> None:
    read(Cut(data, sizes), format)


@given(st.text(alphabet="<>![]\"'%-?&;#ENTIYDOCP xml=é\n", max_size=200), st.lists(st.integers(1, 9)))
def test_any_prolog_is_read_or_is_a_dead_letter(text: str, sizes: list[int]) -> None:
    read(Cut(f"<!DOCTYPE a [{text}".encode(), sizes), "rdf")
    read(Cut(f"<?xml version='1.0' encoding='{text[:8]}'?>{text}".encode("utf-8", "replace"), sizes), "rdf")


@given(st.text(alphabet='{}[]":,\\@context 1é\n', max_size=200), st.lists(st.integers(1, 9)))
def test_any_json_is_read_or_is_a_dead_letter(text: str, sizes: list[int]) -> None:
    read(Cut(text.encode(), sizes), "jsonld")
    read(Cut(f'{{"@context": {text}'.encode(), sizes), "jsonld")


@pytest.mark.parametrize("name", [format.name for format in formats.FORMATS if format.lines])
def test_what_begins_in_the_middle_has_no_mark(name: str) -> None:
    """Lines in the middle of a document are passed on as they are."""
    input = text_input(io.BytesIO(codecs.BOM_UTF8), formats.BY_NAME[name], is_begin=False)
    assert input.begin()
    assert input.read() == codecs.BOM_UTF8


def test_a_compressed_document_is_malformed() -> None:
    input = text_input(io.BytesIO(b"\x1f\x8b"), formats.BY_NAME["nt"])
    with pytest.raises(Malformed, match="it is compressed"):
        input.begin()


@pytest.mark.more
def test_a_prolog_of_many_quotes_takes_linear_time() -> None:
    """A document type declaration that never ends is looked at up to a limit."""
    for text in ("'\"" * 200_000, "<!--" * 100_000, "<" * 400_000, "[" * 400_000):
        ledger = DeadLetterFile()
        batches = decode(
            io.BytesIO(f"<!DOCTYPE a [{text}".encode()), "x", formats.BY_NAME["rdf"], SETTINGS, ledger, ReadProgress()
        )
        assert not any(batches)
        assert ledger.total("malformed") == 1
