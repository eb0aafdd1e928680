"""Reads the rules of a text in the Jena rule language one by one, with error messages."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import cast

from lark import Token, Tree
from lark.exceptions import UnexpectedToken

from squall.lexers.jena.building import Part, Trees
from squall.lexers.jena.text import Text
from squall.lexers.jena.tree import Rule
from squall.lexers.jena.words import Words, grammar
from squall.lexers.reading import TOO_DEEP, Brackets, accepted, finished


class Reader:
    """Reads the rules one by one, and continues after a rule with an error."""

    def __init__(self, text: Text) -> None:
        self.text = text
        self.words = Words(text)
        self.trees = Trees(text, self.words)
        self.shapes: dict[tuple[str, ...], Part] = {}
        """The parts of the rules so far by the types of their words, which determine them."""
        self.rule_starts: list[int] = []
        """The words with which rules begin, including rules with errors."""

    def rules(self) -> Iterator[Rule]:
        ends = _ends(self.words.kinds)
        position = 0
        while position < len(self.words):
            self.rule_starts.append(position)
            end = ends[position]
            following = self._restart(position, len(self.words)) if end is None else end
            part = self._parse(position, following, complete=end is not None)
            if part is not None:
                yield self.trees.tree(part, position)
            elif self.words.kinds[position] != "LSQB":
                following = self._restart(position, following)
            position = following

    def _restart(self, start: int, stop: int) -> int:
        """Returns where to continue after a rule with an error or without an end: at the next bracket that begins a
        line.
        """
        words = self.words
        brackets = (word for word in range(start + 1, stop) if words.kinds[word] == "LSQB" and words.begins_line(word))
        return next(brackets, stop)

    def _parse(self, first: int, stop: int, complete: bool) -> Part | None:
        kinds = tuple(self.words.kinds[first:stop])
        part = self.shapes.get(kinds) or self._parsed(first, kinds, complete)
        if part is not None:
            self.shapes[kinds] = part
        return part

    def _parsed(self, first: int, kinds: Sequence[str], complete: bool) -> Part | None:
        # The place of a token is its number: the tree that is made of them then tells the words of each part.
        tokens = [Token(kind, "", number, 1, 1, 1, 1, number + 1) for number, kind in enumerate(kinds)]
        brackets = Brackets()
        deep = next((number for number, token in enumerate(tokens) if not brackets.take(token)), None)
        if deep is not None:
            self.text.fail(TOO_DEEP, self.words.origin(first + deep), "divide the rule")
            return None
        parser = grammar().parse_interactive()
        for number, token in enumerate(tokens):
            try:
                parser.feed_token(token)
            except UnexpectedToken:
                self._unexpected(first, first + number, accepted(parser))
                return None
        if complete:
            return _part(finished(parser, tokens[-1]))
        if not self.words.is_truncated:
            self._unfinished(first, first + len(kinds) - 1)
        return None

    def _unexpected(self, first: int, word: int, accepted: set[str]) -> None:
        words = self.words
        text, kind, origin = words.text(word), words.kinds[word], words.origin(word)
        comment = next((index for index in range(first, word + 1) if self._is_comment(index, origin.line)), None)
        if comment is not None:
            hint = "`#` begins a comment in the first column only, and `//` at the start of a line only"
            self.text.fail(f"`{words.text(comment)}` does not begin a comment here", words.origin(comment), hint)
        elif word > first and text == ":":
            hint = f"write the name and its colon together: `{words.text(word - 1)}:`"
            self.text.fail("a blank divides a rule's name from its colon", origin, hint)
        elif word == first and kind == "DOT":
            self.text.fail("this dot ends no rule", origin, "a rule in brackets ends with its `]`")
        elif kind in ("RSQB", "DOT") and {"FORWARD", "BACKWARD"} & accepted:
            self.text.fail("this rule has no arrow", words.origin(first), "write `body -> head` or `head <- body`")
        elif kind == "RSQB" and "DOT" in accepted:
            self.text.fail("this bracket closes nothing", origin, "end the rule with `.`, or open it with `[`")
        else:
            self.text.fail(f"`{text}` cannot stand here", origin, _expected(accepted))

    def _is_comment(self, word: int, line: int) -> bool:
        """Returns whether a word in this line looks like the begin of a comment."""
        return self.words.text(word).startswith(("#", "//")) and self.words.line(word) == line

    def _unfinished(self, first: int, last: int) -> None:
        if self.words.kinds[first] == "LSQB":
            self.text.fail("this bracket is never closed", self.words.origin(first), "end the rule with `]`")
        else:
            self.text.fail("this rule never ends", self.words.origin(last), "end it with `.`")


def _part(tree: Token | Tree[Token]) -> Part:
    """Returns the part for a tree or token of lark, with the numbers of its words."""
    if isinstance(tree, Token):
        return Part(tree.type, cast("int", tree.start_pos), cast("int", tree.end_pos))
    return Part(str(tree.data), tree.meta.start_pos, tree.meta.end_pos, tuple(map(_part, tree.children)))


def _ends(kinds: Sequence[str]) -> list[int | None]:
    """Returns for each word the position after the rule that would begin with it, or None if the rule has no end.

    A rule in brackets ends with its own `]`. Another rule ends with the next dot or `]` outside of its inner brackets.
    """
    ends: list[int | None] = [None] * len(kinds)
    closing: int | None = None
    following: int | None = None
    outer: list[tuple[int | None, int | None]] = []
    """Of the brackets around the place: the place after what closes them, and that after the next end."""
    for place in range(len(kinds) - 1, -1, -1):
        kind = kinds[place]
        if kind == "LSQB":
            ends[place] = closing
            closing, following = outer.pop() if outer else (None, None)
            continue
        if kind == "RSQB":
            outer.append((closing, following))
            closing = place + 1
        if kind in ("RSQB", "DOT"):
            following = place + 1
        ends[place] = following
    return ends


_TOKEN_WORDS = {
    "LPAR": "`(`", "RPAR": "`)`", "LSQB": "`[`", "RSQB": "`]`", "DOT": "`.`", "FORWARD": "`->`", "BACKWARD": "`<-`",
    "VARIABLE": "a node", "WORD": "a built-in",
}  # fmt: skip


def _expected(accepted: set[str]) -> str:
    kinds = accepted - {"WORD"} if "VARIABLE" in accepted else accepted
    return f"expected {' or '.join(words for kind, words in _TOKEN_WORDS.items() if kind in kinds)}"
