"""The presentation syntax of RIF: text to tree (RIF-BLD, section 2.6)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any, cast

from squall.errors import Origin, near, raise_all
from squall.lexers.rif import hints, tree
from squall.lexers.sparql.terms import Text

if TYPE_CHECKING:
    from lark import Lark, Token
    from lark.parsers.lalr_interactive_parser import InteractiveParser

DEPTH = 100
"""How deep brackets may be nested, in either syntax."""

_KEYWORDS = ("Document", "Base", "Prefix", "Import", "Group", "Forall", "Exists", "And", "Or", "External", "List")
_SIGNS = {
    "LPAR": "(", "RPAR": ")", "LSQB": "[", "RSQB": "]", "EQUAL": "=", "HASH": "#", "VBAR": "|", "_OPEN": "(*",
    "_CLOSE": "*)",
}  # fmt: skip
_TERMS = {"VAR", "STRING", "IRIREF", "CURIE", "NUMBER", "LOCAL", "_LIST", "_EXTERNAL", "_OPEN"}
_FORMULAS = _TERMS | {"_AND", "_OR", "_EXISTS"}
_RULES = _TERMS | {"_GROUP", "_FORALL", "_AND"}
_PHRASES = (
    ("a rule", {"_FORALL", "VAR"}, _RULES),
    ("a formula", {"_EXISTS", "VAR"}, _FORMULAS),
    ("a term", {"VAR", "_LIST"}, _TERMS),
    ("a constant", {"STRING", "LOCAL"}, {"STRING", "IRIREF", "CURIE", "NUMBER", "LOCAL"}),
    ("a variable", {"VAR"}, {"VAR"}),
    ("an IRI", {"IRIREF"}, {"IRIREF", "CURIE"}),
    ("a language", {"LANGTAG"}, {"LANGTAG"}),
    ("a name", {"NAME"}, {"NAME", "STRING", "LOCAL"}),
)
"""How sets of tokens are spoken of: the words, the tokens that have to be among those expected, those then covered."""


@dataclass(frozen=True)
class PresentationLexer:
    """The lexer of RIF's presentation syntax."""

    extensions: tuple[str, ...] = (".rifps",)

    def __call__(self, text: str, name: str) -> tree.Document:
        """The tree of a document. Raises LexerError, or Errors with all that are found."""
        source = Text(text.removeprefix("\ufeff"), name)
        found = _read(source, "document", {})
        raise_all(source.errors)
        assert isinstance(found, tree.Document)
        return replace(found, name=name)

    @staticmethod
    def written(document: tree.Document) -> str:
        """The text of a tree in this syntax."""
        from squall.lexers.rif.printing import presentation

        return presentation(document)


lexer = PresentationLexer()


def condition(text: str, name: str, prefixes: Mapping[str, str] | None = None) -> tree.Formula:
    """The tree of a condition that stands alone. Raises LexerError, or Errors.

    prefixes: those that it may use, since it declares none.
    """
    source = Text(text, name)
    found = _read(source, "formula", prefixes or {})
    raise_all(source.errors)
    return cast("tree.Formula", found)


def prefixes(text: str) -> dict[str, str]:
    """The prefixes that a document declares, by a look at its text."""
    return dict(re.findall(r"\bPrefix\s*\(\s*(\w*)\s+<([^<>]*)>\s*\)", text))


def _read(source: Text, start: str, known: Mapping[str, str]) -> tree.Node | None:
    from squall.lexers.rif.building import built

    raise_all(source.errors)
    found = _Reader(source, start).read()
    return None if found is None else built(found, source, known)


class _Reader:
    """Lark's tree of a text, or what is wrong with it."""

    def __init__(self, text: Text, start: str) -> None:
        self.text = text
        self.parser = _grammar().parse_interactive(text.text, start=start)
        self.open: list[Token] = []

    def read(self) -> Any:
        from lark import Token
        from lark.exceptions import UnexpectedCharacters, UnexpectedToken

        last = Token("BLANK", "", 0, 1, 1, 1, 1, 0)
        try:
            for token in _tokens(self.parser):
                last = token
                if not self._nests(token):
                    return None
            return self.parser.feed_eof(last)  # type: ignore[no-untyped-call]
        except UnexpectedToken as error:
            self._unexpected(error.token)
        except UnexpectedCharacters as error:
            self._unreadable(cast("int", error.pos_in_stream))
        return None

    def _nests(self, token: Token) -> bool:
        if token.type in ("RPAR", "RSQB"):
            self.open.pop()
        elif token.type in ("LPAR", "LSQB"):
            self.open.append(token)
            if len(self.open) > DEPTH:
                self.text.fail(f"brackets are nested deeper than {DEPTH}", self._origin(token))
                return False
        return True

    def _unexpected(self, token: Token) -> None:
        if token.type == "$END" and self.open:
            bracket = self.open[-1]
            close = ")" if bracket.type == "LPAR" else "]"
            self.text.fail("this bracket is never closed", self._origin(bracket), f"end it with `{close}`")
        elif token.type == "$END":
            end = len(self.text.text.rstrip())
            self.text.fail("the text ends too early", self.text.origin(max(0, end - 1), end), self._expected())
        else:
            self._misplaced(str(token), self._origin(token))

    def _unreadable(self, place: int) -> None:
        """No token that may come here begins here."""
        text = self.text.text
        piece = re.compile(rf'"(?:[^"\\\n]|\\.)*"?|{hints.SIGNS}|<[^\s>]*>?|[\w.-]+|\S').match(text, place)
        found = piece[0] if piece else text[place]
        origin = self.text.origin(place, place + len(found))
        if found[0] == '"' and (len(found) < 2 or found[-1] != '"'):
            self.text.fail("this text is never closed", self.text.origin(place, place + 1), 'end it with `"`')
        elif found[0] == '"' and (wrong := re.search(r"\\[^\"'\\tbnrf]", found)):
            start = place + wrong.start()
            hint = r"escapes: \t \b \n \r \f \\ \" \' \uXXXX \UXXXXXXXX"
            self.text.fail(f"`{wrong[0]}` is no escape", self.text.origin(start, start + 2), hint)
        elif found[0] == "<" and not hints.habit(found) and "IRIREF" in self._accepted():
            self.text.fail(f"`{found}` is not an IRI", origin, "an IRI ends with `>`, and has no blanks in it")
        else:
            self._misplaced(found, origin)

    def _misplaced(self, found: str, origin: Origin) -> None:
        shown = found if len(found) <= 40 else f"{found[:37]}..."
        self.text.fail(f"`{shown}` cannot stand here", origin, self._hint(found) or self._expected())

    def _hint(self, found: str) -> str | None:
        """What is meant by a piece of text, where that can be guessed."""
        accepted = self._accepted()
        before = self.parser.parser_state.value_stack[-1:]
        if before and getattr(before[0], "type", "") == "NAME" and found != ":":
            word = str(before[0])
            return hints.habit(word) or f"expected `->` behind the name of an argument; {hints.name(word)}"
        if found == ":" and "IRIREF" in accepted:
            return "a prefix is declared without a colon: `Prefix(ex <http://example.org/>)`"
        hint = hints.production(found) or hints.habit(found)
        if hint or not found.isalpha() or found in _KEYWORDS:
            return hint
        words = [word for word in _KEYWORDS if f"_{word.upper()}" in accepted]
        return near(found, words) or (hints.name(found) if "CURIE" in accepted else None)

    def _accepted(self) -> set[str]:
        return cast("set[str]", self.parser.accepts())  # type: ignore[no-untyped-call]

    def _expected(self) -> str:
        left = self._accepted()
        phrases = []
        for phrase, needed, covered in _PHRASES:
            if needed <= left:
                phrases.append(phrase)
                left = left - covered
        signs = [f"`{sign}`" for name, sign in _SIGNS.items() if name in left]
        words = [f"`{word}`" for word in _KEYWORDS if f"_{word.upper()}" in left]
        known = {"__ANON_0": "`->`", "__ANON_1": "`:-`", "__ANON_2": "`##`", "__ANON_3": "`^^`", "$END": "the end"}
        others = [phrase for name, phrase in sorted(_anonymous(known).items()) if name in left]
        *before, final = [*signs, *phrases, *words, *others] or ["nothing more"]
        return f"expected {', '.join(before)} or {final}" if before else f"expected {final}"

    def _origin(self, token: Token) -> Origin:
        return self.text.origin(token.start_pos or 0, token.end_pos or 0)


def _anonymous(known: Mapping[str, str]) -> dict[str, str]:
    """The signs of two characters have names that lark makes: by their text."""
    shown = {one.name: f"`{one.pattern.value}`" for one in _grammar().terminals if one.name.startswith("__ANON")}
    return {**shown, "$END": known["$END"]}


def _tokens(parser: InteractiveParser) -> Iterable[Token]:
    return parser.iter_parse()


@cache
def _grammar() -> Lark:
    from lark import Lark

    text = files("squall.lexers.rif").joinpath("rif.lark").read_text(encoding="utf-8")
    return Lark(
        text, start=["document", "formula"], parser="lalr", lexer="contextual", propagate_positions=True,
        maybe_placeholders=False,
    )  # fmt: skip
