"""SPARQL Query Results XML: a document for each evaluation (https://www.w3.org/TR/rdf-sparql-XMLres/)."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from contextlib import contextmanager
from xml.sax.saxutils import XMLGenerator, escape
from xml.sax.xmlreader import AttributesImpl

from squall.errors import SinkError
from squall.rdf import Term
from squall.streams.formats.evaluations import Evaluation, described, link_of

_ILLEGAL = re.compile("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def _legal(text: str) -> str:
    """Returns a text. Raises SinkError if XML 1.0 (section 2.2) cannot express it."""
    if match := _ILLEGAL.search(text):
        raise SinkError(f"XML cannot hold the character U+{ord(match[0]):04X}", hint="the format `srj` can")
    return text


class _Writer(XMLGenerator):
    """A writer of XML elements."""

    @contextmanager
    def element(self, tag: str, /, **attributes: str) -> Iterator[None]:
        self.startElement(tag, AttributesImpl({key: _legal(value) for key, value in attributes.items()}))
        yield
        self.endElement(tag)

    def text(self, text: str) -> None:
        """Writes a text. Carriage returns are references, since parsers read them as line feeds otherwise.

        So are blanks at the ends, which some parsers strip.
        """
        core = _legal(text).strip(_BLANKS)
        before, after = text.split(core, 1) if core else (text, "")
        self.ignorableWhitespace(_references(before) + escape(core, {"\r": "&#13;"}) + _references(after))


_BLANKS = " \t\n\r"


def _references(text: str) -> str:
    return "".join(f"&#{ord(character)};" for character in text)


def document(evaluation: Evaluation) -> bytes:
    """Returns a document of the XML format. Raises SinkError for a literal with a character that XML does not have."""
    file = io.BytesIO()
    xml = _Writer(file, "utf-8", short_empty_elements=True)
    xml.startDocument()
    with xml.element("sparql", xmlns="http://www.w3.org/2005/sparql-results#"):
        _xml_head(xml, evaluation)
        if evaluation.boolean is None:
            _xml_results(xml, evaluation)
        else:
            with xml.element("boolean"):
                xml.text(str(evaluation.boolean).lower())
    xml.endDocument()
    return file.getvalue() + b"\n"


def _xml_head(xml: _Writer, evaluation: Evaluation) -> None:
    with xml.element("head"):
        for name in evaluation.names if evaluation.boolean is None else ():
            with xml.element("variable", name=name):
                pass
        with xml.element("link", href=link_of(evaluation)):
            pass


def _xml_results(xml: _Writer, evaluation: Evaluation) -> None:
    with xml.element("results"):
        for row in evaluation.bindings:
            with xml.element("result"):
                for name, term in row.items():
                    _xml_binding(xml, name, term)


def _xml_binding(xml: _Writer, name: str, term: Term) -> None:
    kind, text, attributes = described(term)
    with xml.element("binding", name=name), xml.element(kind, **attributes):
        xml.text(text)
