"""Both syntaxes of RIF: accepted documents, places of errors, round trips of trees, and safe reading of XML."""

from __future__ import annotations

import re
from pathlib import Path
from typing import ClassVar

import pytest
from hypothesis import HealthCheck, given, settings

from squall.errors import Errors, SquallError
from squall.lexers.rif import exchange, presentation, tree
from squall.lexers.rif.tree import (
    And,
    Atom,
    Const,
    Document,
    Equal,
    Exists,
    Expr,
    External,
    Forall,
    Frame,
    Group,
    Implies,
    Import,
    List,
    Member,
    Meta,
    Or,
    Subclass,
    Var,
    node_text,
)
from squall.rdf import XSD, XSD_STRING
from squall.testing import LexerSuite
from tests.rif_trees import DOCUMENTS

A, B, P, Q = (Const(f"http://e.org/{name}", tree.IRI) for name in "abpq")
X, Y = Var("x"), Var("y")
ONE = Const("1", XSD + "integer")
PREFIX = "Prefix(ex <http://e.org/>)"


def formula(text: str) -> tree.Formula:
    return presentation.condition(text, "text", {"ex": "http://e.org/"})


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("ex:p()", Atom(P)),
        ("ex:p(?x 1)", Atom(P, (X, ONE))),
        ("ex:p(b -> 1 a -> ?x)", Atom(P, (ONE, X), ("b", "a"))),
        ('ex:p("a b"->1)', Atom(P, (ONE,), ("a b",))),
        ("ex:p(_n->_n)", Atom(P, (Const("n", tree.LOCAL),), ("_n",))),
        ("ex:a[]", Frame(A)),
        ("ex:a[ex:p->1 ex:q->?x]", Frame(A, ((P, ONE), (Q, X)))),
        ("ex:a#ex:b", Member(A, B)),
        ("?x##ex:b", Subclass(X, B)),
        ("?x=ex:p(?y)", Equal(X, Expr(P, (Y,)))),
        ("ex:p(?y)=?x", Equal(Expr(P, (Y,)), X)),
        ("List()=List(?x 1)", Equal(List(), List((X, ONE)))),
        ("?x=List(1 | ?y)", Equal(X, List((ONE,), Y))),
        ("External(ex:p(?x))", External(Atom(P, (X,)))),
        ("External(ex:p(?x))=1", Equal(External(Expr(P, (X,))), ONE)),
        ("And()", And()),
        ("Or(ex:p() And(ex:q()))", Or((Atom(P), And((Atom(Q),))))),
        ("Exists ?x ?y (ex:p(?x ?y))", Exists((X, Y), Atom(P, (X, Y)))),
        ('?"a b" = "x"', Equal(Var("a b"), Const("x", XSD_STRING))),
        ('"x@en"^^rdf:PlainLiteral = "x"@en', Equal(Const("x@en", tree.PLAIN), Const("x@en", tree.PLAIN))),
        (r'"a\"\\\n\u00e9"="b"', Equal(Const('a"\\\né', XSD_STRING), Const("b", XSD_STRING))),
        ("1.5 = -2e3", Equal(Const("1.5", XSD + "decimal"), Const("-2e3", XSD + "double"))),
        ('"a"^^rif:iri = "b"^^rif:local', Equal(Const("a", tree.IRI), Const("b", tree.LOCAL))),
    ],
)
def test_formulas(text: str, expected: tree.Formula) -> None:
    assert formula(text) == expected


def document(text: str) -> Document:
    return presentation.lexer(f"Document({PREFIX} {text})", "text")


def test_documents() -> None:
    assert document("") == Document()
    assert document("Import(<a.rif>) Import(<d> <prof>)") == Document((Import("a.rif"), Import("d", "prof")))
    rules = "Group(ex:p() Group() Forall ?x (ex:p(?x) :- ex:q(?x)) And(ex:p() ex:q()) :- Or())"
    assert document(rules) == Document(
        (),
        Group(
            (
                Atom(P),
                Group(),
                Forall((X,), Implies(Atom(P, (X,)), Atom(Q, (X,)))),
                Implies(And((Atom(P), Atom(Q))), Or()),
            )
        ),
    )


def test_a_base_is_for_relative_iris() -> None:
    result = presentation.lexer("Document(Base(<http://e.org/x/>) Prefix(ex <../>) Import(<i>) Group(ex:p(<a>)))", "t")
    assert result == Document((Import("http://e.org/x/i"),), Group((Atom(P, (Const("http://e.org/x/a", tree.IRI),)),)))


NAMED = Meta(A)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("(* ex:a *) ex:p()", Atom(P, meta=NAMED)),
        ("(* *) ex:p()", Atom(P)),
        ("(* ex:a *) ex:a[]", Frame(A, meta=NAMED)),
        ("(* *) (* ex:a *) ex:b[]", Frame(Const(B.lexical, tree.IRI, meta=NAMED))),
        ("(* ex:a *) (* ex:b *) ex:b = 1", Equal(Const(B.lexical, tree.IRI, meta=Meta(B)), ONE, meta=NAMED)),
        ("ex:p((* ex:a *) ?x)", Atom(P, (Var("x", meta=NAMED),))),
        ("(* ex:a[ex:p -> 1] *) ex:p()", Atom(P, meta=Meta(None, (Frame(A, ((P, ONE),)),)))),
        ("(* ex:b And(ex:a[] ex:b[]) *) ex:p()", Atom(P, meta=Meta(B, (Frame(A), Frame(B))))),
    ],
)
def test_meta_data_belong_to_the_outermost_first(text: str, expected: tree.Formula) -> None:
    assert formula(text) == expected
    assert formula(node_text(expected)) == expected


@pytest.mark.fault("T1")
def test_the_escapes_of_the_page_are_read() -> None:
    page = (Path(__file__).parents[1] / "docs" / "languages" / "rif.md").read_text(encoding="utf-8")
    (line,) = re.findall(r"In a text `(.*)` are escapes", page)
    text = line.replace("XXXXXXXX", "000000e9").replace("XXXX", "00e9")
    assert formula(f'ex:p("{text}")') == formula('ex:p("\\" \' \\\\ \\t \\b \\n \\r \\f é é")')


def test_meta_data_of_rules() -> None:
    result = document("Group((* ex:a *) Forall ?x ((* *) (* ex:b *) ex:p(?x) :- ex:q(?x)))")
    assert result.group is not None
    (rule,) = result.group.sentences
    assert rule == Forall((X,), Implies(Atom(P, (X,), meta=Meta(B)), Atom(Q, (X,))), meta=NAMED)


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(DOCUMENTS)
def test_printed_trees_are_equal_in_both_syntaxes(found: Document) -> None:
    assert presentation.lexer(presentation.lexer.written(found), "printed") == found
    assert exchange.lexer(exchange.lexer.written(found), "printed") == found


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("Document(Group(^ex:p()))", "the prefix `ex:` is not declared"),
        (f"Document({PREFIX}\nGroup^(ex:p(?x)", "this bracket is never closed"),
        (f"Document({PREFIX} Group(ex:p(?x) ^;))", "`;` cannot stand here"),
        (f"Document({PREFIX} Group(^Foral ?x (ex:p())))", "`Foral` cannot stand here"),
        (f"Document({PREFIX} Group(And(ex:p()) ^))", "`)` cannot stand here"),
        (f'Document({PREFIX} Group(ex:p(^"a)))', "this text is never closed"),
        (rf'Document({PREFIX} Group(ex:p("a^\d")))', r"`\d` is no escape"),
        (f"Document({PREFIX} Group(^<http://e x>()))", "`<http://e` is not an IRI"),
        (f"Document({PREFIX} Group(ex:p(^<<( ex:a ex:b ex:c )>>)))", "triples in triples (RDF 1.2) are not read"),
        ("Document(Group() ^Group())", "`Group` cannot stand here"),
        ("^Dokument()", "`Dokument` cannot stand here"),
        ("Document(Group(^Not(<p>())))", "`Not` cannot stand here"),
        (f"Document({PREFIX} Group((* ex:a *) (* ex:b *) ^ex:p()))", "there is more than one piece of meta-data"),
        ("^", "there is no program in this text"),
    ],
)
def test_errors_of_the_presentation_syntax(text: str, message: str) -> None:
    """The caret stands in front of the place."""
    with pytest.raises(SquallError) as caught:
        presentation.lexer(text.replace("^", ""), "text")
    first = caught.value.errors[0] if isinstance(caught.value, Errors) else caught.value
    before, _, line = text.partition("^")[0].rpartition("\n")
    assert first.message.startswith(message)
    assert str(first.origin) == f"text:{before.count(chr(10)) + len(before[:1]) + 1}:{len(line) + 1}"


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("If <p>() Then <q>()", "If"),
        ("Forall ?x such that <p>(?x) (<q>(?x))", "such"),
        ("Do(Assert(<p>()))", "Do"),
        ("Assert(<p>())", "Assert"),
        ("<q>() :- And(<r>() Not(<p>()))", "Not"),
        ("<q>() :- Naf <p>()", "Naf"),
        ("<q>() :- INeg(<p>())", "INeg"),
    ],
)
def test_productions_are_refused_with_what_to_write_instead(text: str, word: str) -> None:
    with pytest.raises(SquallError) as caught:
        presentation.lexer(f"Document(Group({text}))", "text")
    assert caught.value.message == f"`{word}` cannot stand here"
    assert (caught.value.hint or "").startswith(f"`{word}` is of RIF-PRD: ")
    with pytest.raises(SquallError) as caught:
        xml(group(f"<{word}/>"))
    assert caught.value.message == f"`{word}` cannot stand here"
    assert (caught.value.hint or "").startswith(f"`{word}` is of RIF-PRD: ")


@pytest.mark.parametrize(
    ("sentence", "hint"),
    [
        ("% what\n<p>()", "the presentation syntax has no comments"),
        ("// what\n<p>()", "the presentation syntax has no comments"),
        ("/* what */ <p>()", "the presentation syntax has no comments"),
        ("<!-- what --> <p>()", "the presentation syntax has no comments"),
        ("<p>('a')", "texts stand in double quotes"),
        ("<p>(<a>, <b>)", "nothing stands between terms"),
        ("<p>() :- <q>(), <r>()", "nothing stands between terms, variables or slots but blanks; conditions are joined"),
        ("<p>() :- <q>() & <r>()", "conditions are joined by `And"),
        ("<p>() <- <q>()", "a rule is written `conclusion :- condition`"),
        ("<p> :- <q>()", "a relation without arguments is written `ex:p()`"),
        ("<p>() -> <q>()", "a rule is written `conclusion :- condition`"),
        ("<p>() :- ?x rdf:type <C>", "triples are frames"),
        ("<p>() :- ?x a <C>", "triples are frames"),
        ("<p>() :- <a> <= 5", "values are compared by built-ins"),
        ("<p>() :- <a> < 5", "values are compared by built-ins"),
        ("<p>(true)", 'booleans are `"true"^^xs:boolean`'),
        ("<a>[<b> -> false]", 'booleans are `"true"^^xs:boolean`'),
        ("<p>(name)", "expected `->` behind the name of an argument; names are IRIs (`<name>`"),
        ("<p>(2024-01-31)", 'dates are texts with a datatype: `"2024-01-31"^^xs:date`'),
        ("p(<a>)", "names are IRIs (`<p>`, `ex:p`) or local (`_p`)"),
        ("<p>() :- q()", "names are IRIs (`<q>`, `ex:q`) or local (`_q`)"),
        ("<p>() :- Equal(<a> <b>)", "it is written `a = b`"),
        ("<p>() :- and(<q>() <r>())", "keywords begin with a capital letter"),
        ("forall ?x (<p>(?x))", "keywords begin with a capital letter"),
        ("Exists ?x (<p>(?x)) :- <q>()", "conclusions make new things by functions"),
        ("Or(<p>() <r>()) :- <q>()", "a conclusion cannot leave open"),
    ],
)
def test_syntax_of_other_languages_gets_a_hint(sentence: str, hint: str) -> None:
    with pytest.raises(SquallError) as caught:
        presentation.lexer(f"Document(Group({sentence}))", "text")
    assert (caught.value.hint or "").startswith(hint), caught.value


def test_a_prefix_is_declared_without_a_colon() -> None:
    with pytest.raises(SquallError) as caught:
        presentation.lexer("Document(Prefix(ex: <http://e.org/>))", "text")
    assert caught.value.hint == "a prefix is declared without a colon: `Prefix(ex <http://example.org/>)`"


def test_numbers_stand_apart() -> None:
    numbers = ["2024", "-1", "+5", "1.5", ".5", "1e3", "1.5e-3"]
    result = presentation.condition(f"<p>({' '.join(numbers)})", "text")
    assert isinstance(result, Atom)
    assert [argument.lexical for argument in result.arguments if isinstance(argument, Const)] == numbers
    for text in ("1-1", "1+1", "1.5.2", "1e3e", "12ab"):
        with pytest.raises(SquallError):
            presentation.condition(f"<p>({text})", "text")


def test_messages_name_expected_tokens_in_words() -> None:
    for text, hint in (
        ("Document(Group(<p>(<a> <b>[])))", "expected"),
        ("Document(Group(<p>() :- ))", "expected a formula"),
        ("Document(Group(<a>[<p> <b>]))", "expected `->`"),
        ("Document(Grup(<p>()))", "did you mean `Group`?"),
    ):
        with pytest.raises(SquallError) as caught:
            presentation.lexer(text, "text")
        assert (caught.value.hint or "").startswith(hint), caught.value


def test_deep_nesting_is_an_error_and_no_crash() -> None:
    fine = "And(" * 90 + ")" * 90
    assert formula(fine) is not None
    with pytest.raises(SquallError, match="nested deeper than 100"):
        formula("And(" * 5000)


# XML


def xml(text: str, entities: str = "") -> Document:
    declared = f"<!DOCTYPE Document [{entities}]>" if entities else ""
    return exchange.lexer(f'{declared}<Document xmlns="{tree.RIF}">{text}</Document>', "text")


FACT = '<Atom><op><Const type="&rif;iri">http://e.org/p</Const></op></Atom>'
RIF = f'<!ENTITY rif "{tree.RIF}">'


def group(inside: str) -> str:
    return f"<payload><Group><sentence>{inside}</sentence></Group></payload>"


def test_internal_entities_are_read() -> None:
    assert xml(group(FACT), RIF) == Document((), Group((Atom(P),)))


def test_documents_without_a_namespace_are_read() -> None:
    text = group(FACT).replace("&rif;", tree.RIF)
    assert exchange.lexer(f"<Document>{text}</Document>", "text") == Document((), Group((Atom(P),)))


def test_language_tags_and_bases_of_xml() -> None:
    constant = f'<Const xml:lang="en" type="{tree.PLAIN}">x</Const>'
    relative = f'<Const type="{tree.IRI}"> p </Const>'
    atom = f"<Atom><op>{relative}</op><args>{constant}</args></Atom>"
    result = exchange.lexer(f'<Document xmlns="{tree.RIF}" xml:base="http://e.org/">{group(atom)}</Document>', "text")
    assert result == Document((), Group((Atom(P, (Const("x@en", tree.PLAIN),)),)))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("<payload/>", "`payload` has 0 elements in it, not one"),
        ("<payload><Group><Atom/></Group></payload>", "`Atom` cannot stand here"),
        (group("<Do/>"), "`Do` cannot stand here"),
        (group("<Atom/>"), "`Atom` has no `op`"),
        (group("<Frame><object><Var>x</Var></object><slot><Var>x</Var></slot></Frame>"), "`slot` has 1 elements"),
        (group("<Equal><left><Var>x</Var></left></Equal>"), "`Equal` has no `right`"),
        (
            group("<Member><instance><Const>a</Const></instance><class><Var>x</Var></class></Member>"),
            "this constant does",
        ),
        (
            group('<Member><instance><Const type="rif:iri">a</Const></instance><class><Var>x</Var></class></Member>'),
            "the type `rif:iri` is no IRI",
        ),
        (group("<Equal>text<left/><right/></Equal>"), "`text` cannot stand in `Equal`"),
        (group('<Equal odd="1"><left/><right/></Equal>'), "`Equal` has no attribute `odd`"),
        (group('<x xmlns="urn:other"/>'), "`x` is no element of RIF"),
        ("<payload><Group></payload>", "the XML is not well formed: mismatched tag"),
    ],
)
def test_errors_of_xml(text: str, message: str) -> None:
    with pytest.raises(SquallError) as caught:
        xml(text)
    first = caught.value.errors[0] if isinstance(caught.value, Errors) else caught.value
    assert first.message.startswith(message)
    assert first.origin is not None
    assert first.origin.line == 1
    assert first.origin.column > 1


def test_the_place_of_an_element_counts_characters() -> None:
    with pytest.raises(SquallError) as caught:
        exchange.lexer(f'<Document xmlns="{tree.RIF}">\n<!-- é𝔸 --><Do/></Document>', "text")
    assert str(caught.value.origin) == "text:2:12"


@pytest.mark.parametrize(
    "entities",
    [
        '<!ENTITY a SYSTEM "file:///etc/hostname">',
        '<!ENTITY % a SYSTEM "file:///etc/hostname"> %a;',
        '<!ENTITY % a "x">',
        '<!ENTITY a "xxxxxxxxxx"><!ENTITY b "&a;&a;">',
        f'<!ENTITY a "{"x" * 301}">',
    ],
)
def test_no_external_or_nested_entity_is_read(entities: str) -> None:
    with pytest.raises(SquallError, match=r"is not read|is too large"):
        xml("", entities)


def test_entities_cannot_blow_up() -> None:
    with pytest.raises(SquallError, match="amplification"):
        xml("&a;" * 400_000, f'<!ENTITY a "{"x" * 300}">')
    with pytest.raises(SquallError, match="undefined entity"):
        xml("&nowhere;")
    with pytest.raises(SquallError, match="nested deeper than 200"):
        xml("<a>" * 10_000)


class TestPresentationLexer(LexerSuite):
    lexer = "rifps"
    good: ClassVar = [
        "Document()",
        'Document(Prefix(ex <http://e.org/>) Import(<i> <p>) Group((* ex:r *) Forall ?x (ex:p(?x "a"@en 1.5) :- '
        "And(?x # ex:C ex:f(?x) = List(1 | ?x) External(ex:g(?x)) Or(Exists ?y (?x[ex:p -> ?y]) a ## _b)))))".replace(
            " a ##", " ex:a ##"
        ),
    ]
    bad: ClassVar = [
        ("Document(", 1),
        ("Document(\nGroup(\n<p>(?x))", 1),
        ("\nGroup()", 2),
        ('Document(\nGroup("a"))', 2),
    ]


class TestXmlLexer(LexerSuite):
    lexer = "rif"
    good: ClassVar = [exchange.lexer.written(presentation.lexer(text, "good")) for text in TestPresentationLexer.good]
    bad: ClassVar = [
        ("<Document>", 1),
        ("\n<Group/>", 2),
        ("<Document>\n<payload><Group/></payload>\n<x/></Document>", 3),
    ]

    def test_a_tree_prints_as_text_of_the_language(self) -> None:
        """A tree of either syntax prints as presentation syntax; the lexer writes it as XML."""
        for text in self.good:
            result = exchange.lexer(text, "good")
            assert exchange.lexer(exchange.lexer.written(result), "printed") == result
            assert presentation.lexer(str(result), "printed") == result
