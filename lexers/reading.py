"""What lexers share: reading a text by a grammar of lark, as deep as brackets may be, and what is expected in words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from typing import cast

from lark import Token, Tree
from lark.exceptions import UnexpectedCharacters, UnexpectedToken
from lark.parsers.lalr_interactive_parser import InteractiveParser

from squall.errors import Origin
from squall.lexers.text import Text

DEPTH = 100
"""How deep brackets may be nested, in all languages."""

TOO_DEEP = f"brackets are nested deeper than {DEPTH}"

_CLOSING = {"LBRACE": "}", "LPAR": ")", "LSQB": "]"}
"""The brackets that open, by their kinds, and what closes them."""
_CLOSED = frozenset({"RBRACE", "RPAR", "RSQB"})

Phrase = tuple[str, Set[str], Set[str]]
"""How a set of tokens is spoken of: the words, the tokens that have to be among those expected, and those that need no
mention beside them."""


class Brackets:
    """The brackets that are open where a reader is."""

    def __init__(self) -> None:
        self.open: list[Token] = []

    def take(self, token: Token) -> bool:
        """Takes the next token; false if with it brackets are nested too deep."""
        if token.type in _CLOSED and self.open:
            self.open.pop()
        elif token.type in _CLOSING:
            self.open.append(token)
        return len(self.open) <= DEPTH

    @property
    def closing(self) -> str:
        """What would close the last one."""
        return _CLOSING[self.open[-1].type]


class Reader:
    """Reads a text by a grammar. What is wrong with it each language says in its own words."""

    def __init__(self, text: Text, parser: InteractiveParser) -> None:
        self.text = text
        self.parser = parser
        self.brackets = Brackets()

    def read(self) -> Tree[Token] | None:
        """Lark's tree; None, and an error of the text, where it cannot be read."""
        last = Token("BLANK", "", 0, 1, 1, 1, 1, 0)
        try:
            for token in _tokens(self.parser):
                last = token
                if not self.brackets.take(token):
                    self.text.fail(TOO_DEEP, self.origin(token))
                    return None
            return finished(self.parser, last)
        except UnexpectedToken as error:
            if error.token.type == "$END":
                self._ended()
            else:
                self.unexpected(error.token)
        except UnexpectedCharacters as error:
            self.unreadable(cast("int", error.pos_in_stream))
        return None

    def unexpected(self, token: Token) -> None:
        """Tells of a token that cannot stand where it does."""
        raise NotImplementedError

    def unreadable(self, place: int) -> None:
        """Tells of a place of the text where no token begins that may stand there."""
        raise NotImplementedError

    def expected(self) -> str:
        """The hint that says what may stand at the place that has been reached."""
        raise NotImplementedError

    def _ended(self) -> None:
        end = len(self.text.text.rstrip())
        if self.brackets.open:
            bracket = self.origin(self.brackets.open[-1])
            self.text.fail("this bracket is never closed", bracket, f"end it with `{self.brackets.closing}`")
        elif not end:
            self.text.fail("there is no program in this text", self.text.origin(0, 1))
        else:
            self.text.fail("the text ends too early", self.text.origin(max(0, end - 1), end), self.expected())

    def accepted(self) -> set[str]:
        """The kinds of the tokens that may come next."""
        return accepted(self.parser)

    def origin(self, token: Token) -> Origin:
        return self.text.origin(token.start_pos or 0, token.end_pos or 0)


def in_words(kinds: Set[str], signs: Mapping[str, str], phrases: Sequence[Phrase]) -> tuple[list[str], Set[str]]:
    """What is expected in words, signs first, and the kinds of which nothing is said. The first phrase that fits comes
    first."""
    phrase_list = []
    left = kinds
    for phrase, required, covered in phrases:
        if required <= left:
            phrase_list.append(phrase)
            left = left - covered
    return [*(f"`{sign}`" for kind, sign in signs.items() if kind in left), *phrase_list], left


def listed(words: Sequence[str]) -> str:
    """Words as a hint: ``expected a, b or c``."""
    *before, final = words or ["nothing more"]
    return f"expected {', '.join(before)} or {final}" if before else f"expected {final}"


# lark leaves these methods without types.


def _tokens(parser: InteractiveParser) -> Iterable[Token]:
    return parser.iter_parse()


def finished(parser: InteractiveParser, last: Token) -> Tree[Token]:
    """The tree of what a parser was fed with. Raises UnexpectedToken if it is not at its end."""
    return cast("Tree[Token]", parser.feed_eof(last))  # type: ignore[no-untyped-call]


def accepted(parser: InteractiveParser) -> set[str]:
    """The kinds of the tokens that may come next."""
    return cast("set[str]", parser.accepts())  # type: ignore[no-untyped-call]
