"""Reads a text by lark grammars, with error messages."""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files

from lark import Lark, Token, Tree

from squall.errors import Origin, did_you_mean
from squall.lexers.rdf12 import TRIPLE_TERMS
from squall.lexers.reading import Phrase, Reader, expected_hint, expected_phrases
from squall.lexers.text import Text

_OF_STREAMS = frozenset({"REGISTER", "STREAM", "WINDOW"})
_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_QUOTED = re.compile(r"""("{3}|'{3})(?:[^\\]|\\.)*?\1|(["'])(?:[^\\\r\n]|\\.)*?\2""")
_WRONG_ESCAPE = re.compile(r"(?:[^\\]|\\[tbnrf\\\"'])*(\\.?)", re.DOTALL)
_REIFY = (
    "describe the statement by a node of its own: `[] rdf:subject ?s ; rdf:predicate ?p ; rdf:object ?o`; the times of "
    "a fact are in an annotation: `?s ?p ?o {| <urn:x-squall:window:start> ?start |}`"
)
_STEPS = "each step is in braces: `{ ... } SEQ { ... }`"
_NAMED_EVENTS = {
    "cqels": "events are named, each by the subject of its triples: `FILTER(SEQ(?a ; ?b))`",
    "rspql": "events are named: `EVENT ?a ON <stream> { ... } EVENT ?b ON <stream> { ... } MATCH ?a SEQ ?b`",
}
"""How the languages whose sequences are of names write one, by their grammars."""
_OPERATORS_OF_EVENTS = frozenset({"_SEQ", "_EQUALS", "_OPTIONALSEQ", "_EQUALSOPTIONAL"})
_PIECE = re.compile(r"\S[^\s<>(){}\[\];,]*>?")

_SIGNS = {
    "DOT": ".", "SEMICOLON": ";", "COMMA": ",", "LBRACE": "{", "RBRACE": "}",
    "_ANNOTATION": "{|", "_ANNOTATION_END": "|}",
    "LPAR": "(", "RPAR": ")", "LSQB": "[",
    "RSQB": "]", "VBAR": "|", "CIRCUMFLEX": "^", "EQUAL": "=", "STAR": "*", "SLASH": "/", "HYPHEN": "-", "TYPED": "^^",
}  # fmt: skip
_TERMS = frozenset({"VAR", "IRIREF", "PNAME_LN", "PNAME_NS", "STRING", "NUMBER", "SIGNED", "BOOLEAN"})
_NODES = _TERMS | {"BLANK_NODE_LABEL", "LPAR", "LSQB"}
_PATH = frozenset({"QUESTION", "STAR", "PLUS", "SLASH", "VBAR"})
_PHRASES: tuple[Phrase, ...] = (
    ("an operator", frozenset({"COMPARE", "PLUS"}), frozenset({
        "COMPARE", "PLUS", "HYPHEN", "STAR", "SLASH", "SIGNED", "AND", "OR", "NOT", "_IN"})),
    ("an expression", frozenset({"FUNCTION", "HYPHEN", "VAR"}), _TERMS | {
        "FUNCTION", "SET_FUNCTION", "STEP_FUNCTION", "INTERVAL_FUNCTION", "_TIMESTAMP", "NEGATION", "PLUS", "HYPHEN",
        "LPAR", "_EXISTS", "NOT"}),
    ("a condition", frozenset({"FUNCTION", "LPAR"}), frozenset({
        "FUNCTION", "SET_FUNCTION", "STEP_FUNCTION", "INTERVAL_FUNCTION", "_TIMESTAMP", "LPAR", "_EXISTS", "NOT", "VAR",
        "IRIREF", "PNAME_LN", "PNAME_NS"})),
    ("a predicate", frozenset({"A", "NEGATION"}), frozenset({
        "A", "VAR", "NEGATION", "CIRCUMFLEX", "LPAR", "IRIREF", "PNAME_LN", "PNAME_NS"})),
    ("a term or variable", frozenset({"VAR", "STRING"}), _NODES),
    ("a value", frozenset({"STRING", "IRIREF"}), _TERMS),
    ("a variable or IRI", frozenset({"VAR", "IRIREF"}), _TERMS),
    ("a variable", frozenset({"VAR"}), frozenset({"VAR"})),
    ("an IRI", frozenset({"IRIREF", "PNAME_LN"}), _TERMS),
    ("an IRI in `<` and `>`", frozenset({"IRIREF"}), _TERMS),
    ("a prefix and its colon", frozenset({"PNAME_NS"}), _TERMS),
    ("a text", frozenset({"STRING"}), frozenset({"STRING"})),
    ("a length of time", frozenset({"ISO_DURATION"}), frozenset({"ISO_DURATION", "INTEGER"})),
    ("a number", frozenset({"INTEGER"}), frozenset({"INTEGER"})),
    ("a unit of time (ms, s, m, h, d)", frozenset({"UNIT"}), frozenset({"UNIT"})),
    ("an aggregate", frozenset({"SET_FUNCTION"}), frozenset({
        "SET_FUNCTION", "COLUMN", "IRIREF", "PNAME_LN", "PNAME_NS"})),
    ("a name", frozenset({"NAME"}), _TERMS | {"NAME"}),
    ("a keyword such as `FILTER`", frozenset({"_FILTER", "_OPTIONAL"}), frozenset({
        "_FILTER", "_OPTIONAL", "_BIND", "_GRAPH", "_MINUS", "_SERVICE", "_VALUES", "_WINDOW", "_UNION", "NOT"})),
    ("a word of patterns over time such as `SEQ`", frozenset({"_SEQ", "_WITHIN"}), frozenset({
        "_SEQ", "_WITHIN", "_AND", "_OR", "_CONTAINING", "NOT", "EACH", "LAST", "NEAREST", "STRICT", "_AFTER",
        "_BEFORE", "_WHEN", "_AS"})),
    ("an operator of events such as `SEQ`", frozenset({"_EQUALS", "_OPTIONALSEQ"}), _OPERATORS_OF_EVENTS | {
        "_AND", "_UNION"}),
    ("a modifier such as `LIMIT`", frozenset({"_LIMIT", "_OFFSET"}), frozenset({
        "_GROUP", "_HAVING", "_ORDER", "_LIMIT", "_OFFSET", "_VALUES", "_AGGREGATE"})),
    ("an update such as `INSERT`", frozenset({"_INSERT", "_LOAD"}), frozenset({
        "_INSERT", "_DELETE", "_LOAD", "_WITH", "CLEAR", "DROP", "CREATE", "ADD", "MOVE", "COPY"})),
    ("a query such as `SELECT`", frozenset({"_SELECT", "_ASK"}), frozenset({
        "_SELECT", "_ASK", "_CONSTRUCT", "_DESCRIBE"})),
)  # fmt: skip


@cache
def _grammar(names: tuple[str, ...]) -> Lark:
    folder = files("squall.lexers.sparql")
    text = "\n".join(folder.joinpath(f"{name}.lark").read_text(encoding="utf-8") for name in names)
    return Lark(text, parser="lalr", lexer="contextual", propagate_positions=True, maybe_placeholders=False)


def read(text: Text, grammars: tuple[str, ...]) -> Tree[Token] | None:
    """Returns lark's tree, or None with an error in the text if the text cannot be read.

    Args:
        text: The text.
        grammars: The grammar files without their endings. Each extends those before it.
    """
    return _Reader(text, grammars).read()


class _Reader(Reader):
    def __init__(self, text: Text, grammars: tuple[str, ...]) -> None:
        super().__init__(text, _grammar(grammars).parse_interactive(text.text))
        self.streams = "streams" in grammars
        self.sequences = not {"ctsparql", "epsparql"}.isdisjoint(grammars)
        self.named_events = next((hint for grammar, hint in _NAMED_EVENTS.items() if grammar in grammars), None)

    def unexpected(self, token: Token) -> None:
        if token.type in ("FUNCTION", "SET_FUNCTION", "NAME", "STREAM"):
            self._misspelt(str(token), self.origin(token))
        elif token.type in _OPERATORS_OF_EVENTS:
            self.text.fail(f"`{token}` cannot stand here", self.origin(token), self.named_events or _STEPS)
        elif token.type == "_UNION" and "_SEQ" in self.accepted():
            hint = "a step that is a union is in braces of its own: `{ { ... } UNION { ... } }`"
            self.text.fail(f"`{token}` cannot stand here", self.origin(token), hint)
        elif token.type == "IRIREF" and "COMPARE" in self.accepted():
            hint = "to compare, put blanks around `<` and `>`"
            self.text.fail(f"`{_short(token)}` is an IRI, which cannot stand here", self.origin(token), hint)
        elif token.startswith("<") and "IRIREF" in self.accepted():
            self.unreadable(token.start_pos or 0)
        else:
            self.text.fail(f"`{_short(token)}` cannot stand here", self.origin(token), self.expected())

    def unreadable(self, place: int) -> None:
        """Records an error for a position at which no token begins."""
        remainder = self.text.text[place:]
        if remainder[0] in "'\"":
            self._text(place)
        elif word := _WORD.match(remainder):
            self._misspelt(word[0], self.text.origin(place, place + word.end()))
        elif remainder[0] == "<":
            piece = _PIECE.match(remainder)
            end = place + (piece.end() if piece else 1)
            hint = "an IRI ends with `>`, and has no blanks, quotes or brackets in it"
            if remainder.startswith("<<"):
                self.text.fail(TRIPLE_TERMS, self.text.origin(place, place + 2), _REIFY)
                return
            self.text.fail(f"`{self.text.text[place:end]}` is not an IRI", self.text.origin(place, end), hint)
        else:
            self.text.fail(f"`{remainder[0]}` cannot stand here", self.text.origin(place, place + 1), self.expected())

    def _text(self, place: int) -> None:
        quoted = _QUOTED.match(self.text.text, place)
        wrong = quoted and _WRONG_ESCAPE.match(quoted[0])
        if wrong and wrong[1]:
            start = place + wrong.start(1)
            hint = r"""escapes: \t \b \n \r \f \\ \" \' \uXXXX \UXXXXXXXX"""
            self.text.fail(f"`{wrong[1]}` is no escape", self.text.origin(start, start + 2), hint)
        else:
            quote = self.text.text[place]
            hint = f"end it with `{quote}`; a text of several lines begins and ends with three quotes"
            self.text.fail("this text is never closed", self.text.origin(place, place + 1), hint)

    def _misspelt(self, word: str, origin: Origin) -> None:
        """Records an error for a word that the language does not have, or not at this place."""
        accepted = self.accepted()
        hint = did_you_mean(word.upper(), filter(None, map(_keyword, accepted)))
        self.text.fail(f"`{word}` cannot stand here", origin, hint or self._advice(word, accepted))

    def _advice(self, word: str, accepted: set[str]) -> str:
        if word.upper() in _OF_STREAMS and not self.streams:
            return "streams are of C-SPARQL and RSP-QL: name the file `*.csparql` or `*.rspql`, or say which `--lexer`"
        if word.upper() == "SEQ" and self.named_events is not None:
            return self.named_events
        if word.upper() == "SEQ" and not self.sequences:
            return "patterns over time are of CT-SPARQL and EP-SPARQL: name the file `*.ctsparql` or `*.epsparql`"
        if word.upper() == "REASONING" and not self.streams:
            return "SPARQL has no such clause: write the comment `# pragma entailment rhodf` on a line of its own"
        if word.upper() == "STREAM" and "_OPTIONAL" in accepted:
            before = "a stream is named before the pattern: `FROM STREAM <http://example.org/stream> [RANGE 10s]`"
            return f"{before}; in CQELS-QL (`*.cqels`) inside of it"
        if {"DISTINCT", "REDUCED"} <= accepted:
            return "what is not a variable is selected with a name: `(COUNT(?x) AS ?n)`"
        if {"VAR", "PNAME_LN"} <= accepted and "DOT" not in accepted:
            return f"a variable is written `?{word}`, and a name has a prefix: `:{word}`"
        return self.expected()

    def expected(self) -> str:
        kinds = self.accepted()
        if kinds == {"_WITHIN"}:
            return "what does not occur before the first step has a length of time: `NOT { ... } WITHIN 10s`"
        if {"_WITHIN", "_SEQ"} <= kinds and "RBRACE" not in kinds:
            return "what does not occur behind the last step has a length of time: `NOT { ... } WITHIN 10s`"
        phrases, left = expected_phrases(kinds - (_PATH if "QUESTION" in kinds else set()), _SIGNS, _PHRASES)
        words = sorted(f"`{word}`" for word in map(_keyword, left) if word)
        return expected_hint([*phrases, *words, *(["the end"] if "$END" in left else [])])


def _keyword(token: str) -> str | None:
    """Returns the keyword of a token."""
    name = token.strip("_")
    is_named = token in _SIGNS or token in _TERMS or token in _UNSPOKEN
    return name if name.isalpha() and not is_named else None


_UNSPOKEN = frozenset({
    "A", "AND", "OR", "PLUS", "QUESTION", "NEGATION", "COMPARE", "HYPHEN", "FUNCTION", "LANGTAG", "INTEGER", "UNIT",
    "NAME", "COLUMN", "SET_FUNCTION", "STEP_FUNCTION", "INTERVAL_FUNCTION", "BLANK_NODE_LABEL",
    "$END",
})  # fmt: skip


def _short(token: str) -> str:
    """Returns a token, shortened if it is long."""
    line = token.split("\n", 1)[0]
    return line if len(line) <= 40 and line == token else f"{line[:37]}..."
