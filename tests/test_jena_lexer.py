"""The Jena lexer: text to tree, tree to text, and peculiarities of Jena's own parser."""

from __future__ import annotations

import re
import string
from contextlib import suppress
from pathlib import Path
from time import process_time

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from lark import Token, UnexpectedCharacters

from squall import plugins, rulesets
from squall.contracts import Lexer
from squall.errors import Errors, LexerError
from squall.lexers.jena import Call, Functor, Node, Pattern, Program, Rule, lexer
from squall.lexers.jena.text import Text, lines
from squall.lexers.jena.words import Words, grammar
from squall.model import Variable
from squall.rdf import RDF, XSD, Term, iri, literal
from squall.translators.jena import translator
from tests.laws import examples_of


def rule(text: str) -> Rule:
    (result,) = lexer(text, "test").rules
    return result


def node(text: str) -> object:
    """Returns the object of the head that is written as this text."""
    fact = rule(f"-> (<urn:s> <urn:p> {text}) .").head[0]
    assert isinstance(fact, Pattern)
    return fact.object.value


def test_it_is_a_lexer() -> None:
    assert isinstance(lexer, Lexer)
    assert plugins.extensions()[".jena"] == ("jena",)


def test_names_arrows_and_several_heads() -> None:
    forward = rule("[up: (?a <urn:p> ?b), (?b <urn:p> ?c) -> (?a <urn:q> ?c) (?c <urn:r> ?a)]")
    backward = rule("[up: (?a <urn:q> ?c) (?c <urn:r> ?a) <- (?a <urn:p> ?b) (?b <urn:p> ?c)]")
    assert (forward.name, forward.direction, len(forward.body), len(forward.head)) == ("up", "forward", 2, 2)
    assert backward.direction == "backward"
    assert (backward.head, backward.body) == (forward.head, forward.body)


@pytest.mark.parametrize("text", ["-> (<urn:a> <urn:b> <urn:c>).", "[(<urn:a> <urn:b> <urn:c>) <- ]"])
def test_an_axiom_has_no_body(text: str) -> None:
    assert (rule(text).body, len(rule(text).head)) == ((), 1)


@pytest.mark.parametrize(
    ("text", "term"),
    [
        ("<urn:x>", iri("urn:x")),
        ("http://example.org/x", iri("http://example.org/x")),
        ("http://example.org/x#y.", iri("http://example.org/x#y.")),
        ("<http://example.org/f(1)>", iri("http://example.org/f(1)")),
        ("rdf:type", iri(RDF + "type")),
        ("eg:x", iri("urn:x-hp:eg/x")),
        ("bareword", iri("bareword")),
        ("true", iri("true")),
        ("+5", iri("+5")),
        ("_label", Term("_:label")),
        ("42", literal("42", XSD + "int")),
        ("-5", literal("-5", XSD + "int")),
        ("007", literal("007", XSD + "int")),
        ("2.5", literal("2.5", XSD + "float")),
        ("2.5e3", literal("2.5e3", XSD + "float")),
        ("1e3", literal("1e3")),
        ("3000000000", literal("3000000000")),
        ("1.2.3", literal("1.2.3")),
        ("2147483648", literal("2147483648")),
        ("-2147483648", literal("-2147483648", XSD + "int")),
        ("9" * 5000, literal("9" * 5000)),
        ("-" + "0" * 5000 + "7", literal("-" + "0" * 5000 + "7", XSD + "int")),
        ("'text'", literal("text")),
        ('"it\'s, (so) [to] say"', literal("it's, (so) [to] say")),
        (r"'a\nb\\c\'d'", literal("anb\\c'd")),
        ("'5'^^xsd:byte", literal("5", XSD + "byte")),
        ("'5' ^^xsd:byte", literal("5", XSD + "byte")),
        ("'5'^^http://example.org/type", literal("5", "http://example.org/type")),
        ("'5'^^<http://example.org/type>", literal("5", "http://example.org/type")),
        ("'5'^^xsd:string", literal("5")),
        ("''", literal("")),
    ],
)
def test_nodes(text: str, term: Term) -> None:
    assert node(text) == term


def test_variables_may_have_any_name() -> None:
    first, second, third = (result.value for result in _pattern("(?_ ?0 ?a-b)").nodes)
    assert (first, second, third) == (Variable("_"), Variable("0"), Variable("a-b"))


def _pattern(text: str) -> Pattern:
    pattern = rule(f"{text} -> print() .").body[0]
    assert isinstance(pattern, Pattern)
    return pattern


def test_functors_and_nested_rules_are_in_the_tree() -> None:
    result = rule("[(?a <urn:p> f(?a 1)) -> [inner: (?b <urn:q> ?a) <- g(?b)]]")
    pattern, nested = result.body[0], result.head[0]
    assert isinstance(pattern, Pattern)
    assert pattern.object.value == Functor("f", (Node(Variable("a")), Node(literal("1", XSD + "int"))))
    assert isinstance(nested, Rule)
    assert (nested.name, nested.direction, nested.body) == ("inner", "backward", (Call("g", (Node(Variable("b")),)),))


def test_a_prefix_holds_in_the_whole_file_and_the_last_one_wins() -> None:
    text = """
        (?a ex:p ?b) -> (?a ex:q ?b) .
        @prefix ex: <urn:one:>.
        @prefix ex <urn:two:>
        // a comment
# another
        @prefix : urn:three:
        -> (:a :b :c) .
    """
    first, second = lexer(text, "test").rules
    assert str(first) == "[ (?a <urn:two:p> ?b) -> (?a <urn:two:q> ?b) ]"
    assert str(second) == "[ -> (<urn:three:a> <urn:three:b> <urn:three:c>) ]"


def test_a_declaration_hides_a_prefix_that_needs_none() -> None:
    assert "<urn:mine:a>" in str(lexer("@prefix eg: <urn:mine:>\n-> (eg:a eg:b eg:c) .", "test"))


def test_lines_of_a_text_are_trimmed_and_comments_in_it_vanish() -> None:
    assert node("'one  \n   two\n# gone\n//gone too\nthree '") == literal("one\ntwo\nthree ")


def test_windows_line_ends_and_a_byte_order_mark() -> None:
    text = "\ufeff# comment\r\n[a: (?a <urn:p> ?b)\r\n -> (?a <urn:q> 'x\r\n y')]\r\n"
    assert lexer(text, "test") == lexer("[a: (?a <urn:p> ?b) -> (?a <urn:q> 'x\ny')]", "test")


def test_places_are_those_of_the_text() -> None:
    text = "@prefix ex: <urn:>\n\n[a: (?a ex:p ?b)\n  -> (?a ex:q ?bb)]"
    fact = rule(text).head[0]
    assert isinstance(fact, Pattern)
    assert str(fact.object.origin) == "test:4:15"
    assert fact.object.origin is not None
    assert fact.object.origin.excerpt == "4 |   -> (?a ex:q ?bb)]\n  |               ^^^"


def test_the_names_of_variables_do_not_matter_to_the_canonical_rule() -> None:
    left = rule("(?x <urn:p> ?y) lessThan(?x ?y) -> (?y <urn:q> f(?x)) [(?x ?y ?z) -> (?z ?y ?x)] .")
    right = rule("(?b <urn:p> ?a) lessThan(?b ?a) -> (?a <urn:q> f(?b)) [(?b ?a ?c) -> (?c ?a ?b)] .")
    other = rule("(?b <urn:p> ?a) lessThan(?a ?b) -> (?a <urn:q> f(?b)) [(?b ?a ?c) -> (?c ?a ?b)] .")
    assert left != right
    assert left.canonical == right.canonical
    assert left.canonical != other.canonical


def test_all_errors_are_reported_with_their_places() -> None:
    with pytest.raises(Errors) as caught:
        lexer("[a: (?a b:c ?d) -> (?a <urn:p>)]\n[b: (?a <urn:p> ?b)]\n[c: -> (<urn:a> <urn:b> *)]", "test")
    places = [str(error.origin) for error in caught.value.errors]
    assert places == ["test:1:9", "test:1:20", "test:2:1", "test:3:25"]


@pytest.mark.parametrize(
    ("node", "message"),
    [
        ('"x"@en', "`@en`: a literal of a rule has no language tag"),
        ("'x'@en--ltr", "base directions of texts (RDF 1.2) are not supported"),
        ("<<( <urn:a> <urn:b> <urn:c> )>>", "triples in triples (RDF 1.2) are not read"),
        ("<< <urn:a> <urn:b> <urn:c> >>", "triples in triples (RDF 1.2) are not read"),
    ],
)
def test_what_rules_do_not_have_is_named(node: str, message: str) -> None:
    """S14 of the reported faults."""
    with pytest.raises((LexerError, Errors)) as caught:
        lexer(f"[a: (?a <urn:p> {node}) -> (?a <urn:q> ?a)]", "test")
    assert message in str(caught.value)


def included(folder: Path, text: str, **files: str) -> Program:
    """Returns the tree of a text in a file, with other files beside it."""
    for name, content in {"main": text, **files}.items():
        (folder / f"{name}.rules").write_text(content, encoding="utf-8")
    return lexer(text, str(folder / "main.rules"))


def names(program: Program) -> list[str | None]:
    return [rule.name for rule in program.rules]


def test_included_rules_come_first_with_their_own_prefixes(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "c.rules").write_text("c: -> (:a :b :c) .\n@prefix : <urn:c:>", encoding="utf-8")
    result = included(
        tmp_path,
        "@prefix : <urn:main:>\nm: -> (:a :b :c) .\n@include <b.rules>.\n@include deep/c.rules",
        b="@include <file:deep/c.rules> .\nb: -> (<urn:a> <urn:b> <urn:c>) .",
    )
    assert names(result) == ["c", "b", "m"]
    assert "(<urn:c:a> <urn:c:b> <urn:c:c>)" in str(result.rules[0])
    assert "(<urn:main:a> <urn:main:b> <urn:main:c>)" in str(result.rules[2])
    origin = result.rules[0].origin
    assert origin is not None
    assert origin.name == str(tmp_path / "deep" / "c.rules")
    with pytest.raises(LexerError, match="the prefix `:` is not declared"):
        included(tmp_path, "@include <deep/c.rules>\n-> (:a <urn:b> <urn:c>) .")


def test_files_that_include_each_other_are_read_once(tmp_path: Path) -> None:
    rule = "-> (<urn:a> <urn:b> <urn:c>) ."
    result = included(
        tmp_path, f"@include <b.rules>\nm: {rule}", b=f"@include <main.rules>\n@include <./b.rules>\nb: {rule}"
    )
    assert names(result) == ["b", "m"]
    files = {f"f{number}": f"@include <f{number + 1}.rules>\n" for number in range(200)}
    with pytest.raises(LexerError, match=r"f99.rules:1:1: syntax error: files include each other more than 100 deep"):
        included(tmp_path, "@include <f0.rules>", **files)


def test_a_rule_set_is_included_by_name() -> None:
    assert lexer("@include <RDFS>\n", "test").rules == lexer("@include rdfs .\n", "test").rules != ()


@pytest.mark.parametrize("name", ["OWL", "OWLMini", "owlmicro"])
def test_a_rule_set_on_owl_is_replaced_with_a_warning(name: str) -> None:
    program = lexer(f"@include <{name}>\n[mine: (?a ?p ?b) -> (?b ?p ?a)]", "test")
    assert program.rules[:-1] == lexer(rulesets.path("owl2rl").read_text(), "owl2rl").rules
    (warning,) = translator(program).warnings
    assert "owl2rl" in str(warning)
    assert str(warning).startswith("test:1:")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("@include <http://example.org/a.rules>", "`http://example.org/a.rules` is no file"),
        ("@include <nowhere.rules>", "`nowhere.rules` cannot be read"),
        ("@include <\x00>", "cannot be read"),
        ("@include <http://[>", "is no file"),
        ("@include", "`@include` includes nothing"),
        ("@includes <a.rules>", "`@includes <a.rules>` includes nothing"),
        ("@include <a.rules> <b.rules>", "`<b.rules>` follows what is included on its line"),
        ("@include <.>", "cannot be read"),
        ("@include </dev/zero>", "cannot be read: it is no file"),
    ],
)
def test_what_cannot_be_included_is_refused(text: str, message: str) -> None:
    with pytest.raises(LexerError, match=f"test:2:3: syntax error: .*{re.escape(message)}"):
        lexer(f"\n  {text}\n", "test")


def test_all_errors_of_all_files_are_reported(tmp_path: Path) -> None:
    with pytest.raises(Errors) as caught:
        included(tmp_path, "@include <b.rules>\n[a: -> (x:y)]\n@include <no.rules>", b="[b: -> (?x)]")
    places = [Path(str(error.origin)).name for error in caught.value.errors]
    assert sorted(places) == ["b.rules:1:8", "main.rules:2:9", "main.rules:3:1"]
    assert caught.value.partial == Program(())


def test_valid_rules_beside_invalid_ones_are_read() -> None:
    with pytest.raises(LexerError) as caught:
        lexer("[one: -> (eg:a eg:b eg:c)]\n[two: -> (eg:a eg:b eg:c)\n[three: -> (eg:a eg:b eg:c)]", "test")
    assert [rule.name for rule in caught.value.partial.rules] == ["one", "three"]


@pytest.mark.parametrize("word", ["*", "_", "nope:x", "<urn:a", "'a'@en", "a{b", "x:f(?a)", "?a(1)", "'1'^^ xsd:int"])
def test_words_that_mean_nothing_are_refused(word: str) -> None:
    with pytest.raises((LexerError, Errors)):
        node(word)


def test_an_empty_program_has_no_rules() -> None:
    assert lexer("# nothing\n", "test") == Program(())


_VARIABLES = st.builds(Variable, st.text(string.ascii_letters + string.digits + "_", min_size=1, max_size=3))
_IRIS = st.builds(
    lambda start, rest: iri(start + rest),
    st.sampled_from(["urn:x:", "http://example.org/", RDF, XSD, "", "foo:", "https://e.org/("]),
    st.text(string.ascii_letters + string.digits + "()[],_.#*-:'", max_size=6),
)
_TEXTS = st.text("ab'\"\\,()[]#/ \n@.^?", max_size=12).map(
    # What a text of the language can hold: no blanks around line ends (a line end is one, too), and no line that a
    # comment would hide.
    lambda text: re.sub(r"\s*\n\s*", "\n", text).replace("\n//", "\n/")
)
_LITERALS = st.builds(literal, _TEXTS, st.sampled_from([None, XSD + "int", "http://e.org/t", "foo:t", "u:("]))
_BLANKS = st.builds(lambda label: Term(f"_:{label}"), st.text(string.ascii_letters, min_size=1, max_size=3))
_NODES = st.builds(Node, st.one_of(_VARIABLES, _IRIS, _LITERALS, _BLANKS))
_OBJECTS = _NODES | st.builds(
    lambda name, nodes: Node(Functor(name, tuple(nodes))), st.sampled_from(["f", "all"]), st.lists(_NODES, max_size=2)
)
_SIMPLE = st.one_of(
    st.builds(Pattern, _NODES, _NODES, _OBJECTS),
    st.builds(
        lambda name, nodes: Call(name, tuple(nodes)), st.sampled_from(["sum", "now"]), st.lists(_NODES, max_size=3)
    ),
)


def _rules(heads: st.SearchStrategy[Pattern | Call | Rule]) -> st.SearchStrategy[Rule]:
    return st.builds(
        Rule,
        st.none() | st.sampled_from(["r1", "a-b"]),
        st.lists(heads, max_size=3).map(tuple),
        st.lists(_SIMPLE, max_size=3).map(tuple),
        st.booleans(),
    )


@settings(max_examples=examples_of(150), deadline=None)
@given(st.lists(_rules(_SIMPLE | _rules(_SIMPLE)), max_size=3))
def test_a_printed_tree_is_read_as_the_same_tree(rules: list[Rule]) -> None:
    program = Program(tuple(rules))
    assert lexer(str(program), "test") == program


@settings(max_examples=examples_of(200), deadline=None)
@given(st.text("[]().,'\"?ab:<>-@#\n ^_*1", max_size=60))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        program = lexer(text, "test")
    except (LexerError, Errors):
        return
    assert lexer(str(program), "test") == program


_BLANK_LINES = st.text("a \n\r\t\\#/\x0b", max_size=10)


@given(_BLANK_LINES)
def test_a_text_of_many_lines_is_trimmed_line_by_line(text: str) -> None:
    """Regular expressions would be shorter, but are slow where there are many blanks."""
    state = [line for line in lines(text) if not line.lstrip(" \t\x0b").startswith("//")]
    ended = "".join(re.sub(r"[\x00-\x20]*(\r\n|\r|\n)$", "\n", line) for line in state)
    expected = re.sub(r"\\([\s\S])", r"\1", re.sub(r"(?<=\n)[\x00-\x20]+", "", ended))
    assume("//" not in text and "\n#" not in text and "\r#" not in text and not text.endswith("\\"))
    assert node(f"'{text}'") == literal(expected)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[-> " * 5000 + "]" * 5000, "brackets are nested deeper than 100"),
        ("[-> (<urn:a> <urn:b> " + "f(" * 5000 + ")" * 5001 + "]", "brackets are nested deeper than 100"),
        ("[" * 5000, "brackets are nested deeper than 100"),
    ],
)
def test_what_nests_too_deep_is_refused(text: str, message: str) -> None:
    with pytest.raises((LexerError, Errors), match=message):
        lexer(text, "test")


@pytest.mark.parametrize(
    "text", ["[-> (a b '{}')]".format(" " * 300_000), "'" + "\\" * 300_000, "[-> (a b 'x{}')]".format(" \n" * 100_000)]
)
def test_long_texts_take_no_longer_than_their_length_asks_for(text: str) -> None:
    started = process_time()
    with suppress(LexerError, Errors):
        lexer(text, "test")
    assert process_time() - started < 10


_BYTES = st.text("[]().,'\"?ab:<>-@#\n ^_*1\\\uffff\x00\u2028é", max_size=80)
_DECLARED = st.sampled_from(["", "@prefix a: <urn:a>\n", "@include <x>\n", "@prefix\n", "[r: (?a a:b f(?b)) -> "])


@settings(max_examples=examples_of(300), deadline=None)
@given(st.lists(_DECLARED | _BYTES, max_size=6).map("".join))
def test_no_text_crashes_the_lexer(text: str) -> None:
    with suppress(LexerError, Errors):
        lexer(text, "nowhere/test")


def test_a_rule_on_the_line_of_a_prefix_is_not_dropped() -> None:
    with pytest.raises(LexerError, match="follows a prefix on its line"):
        lexer("@prefix : <http://example.org/>. (?a :p ?b) -> (?a :q ?b).", "<text>")
    assert not lexer("@prefix : <http://example.org/> . # ours", "<text>").rules


WORDS = (
    "[",
    "]",
    "(",
    ")",
    ".",
    "->",
    "<-",
    "a:",
    "a:b",
    "?x",
    "<urn:x>",
    "'it\\'s\n'",
    '"a"',
    "^^<urn:x>",
    "^^",
    "5",
    ",",
)


@given(st.lists(st.tuples(st.sampled_from(WORDS), st.sampled_from(["", " ", "\n", "\r\n", ", "])), max_size=20))
@example([(".", ""), ("'it\\'s\n'", "")])
def test_words_are_the_tokens_of_the_grammar(parts: list[tuple[str, str]]) -> None:
    """This holds up to a quote that is never closed, which both report."""
    text = "".join(word + blank for word, blank in parts)
    words = Words(Text(text, "test"))
    origins = [words.origin(word) for word in range(len(words))]
    tokens: list[Token] = []
    try:
        for token in grammar().lex(text):
            tokens.append(token)
        is_closed = True
    except UnexpectedCharacters:
        is_closed = False
    assert words.is_truncated is not is_closed
    assert words.kinds == [token.type for token in tokens]
    assert [(origin.line, origin.column, origin.length) for origin in origins] == [
        (token.line, token.column, len(token)) for token in tokens
    ]


def test_rules_with_words_of_the_same_kinds_have_their_own_words_and_places() -> None:
    first, second = lexer(
        "[a: (?x <urn:p> 5) -> (?x <urn:q> 'b')]\n [bc: (?yy <urn:r> 6)\n -> (?yy <urn:s> 'd')]", "t"
    ).rules
    assert str(second) == f"[ bc: (?yy <urn:r> '6'^^{XSD}int) -> (?yy <urn:s> 'd') ]"
    assert [str(clause.origin) for clause in (*first.body, *first.head)] == ["t:1:5", "t:1:23"]
    assert [str(clause.origin) for clause in (*second.body, *second.head)] == ["t:2:7", "t:3:5"]
    assert [(str(rule.origin), rule.origin and rule.origin.length) for rule in (first, second)] == [
        ("t:1:1", 39),
        ("t:2:2", 43),
    ]


def test_each_unterminated_rule_is_reported() -> None:
    with pytest.raises(Errors) as caught:
        lexer("[(?x <urn:p> ?y) -> (?y <urn:q> ?x)\n" * 2000, "test")
    assert [error.origin.line for error in caught.value.errors if error.origin] == [*range(1, 2001)]
    assert str(caught.value).count("this bracket is never closed") == 2000
