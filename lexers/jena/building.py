"""Construction of the tree of a Jena rule from its words."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from squall.errors import Origin, UsageError
from squall.lexers.jena.text import IRI, Text, lines
from squall.lexers.jena.tree import (
    SCHEMES,
    WINDOWS,
    WORD,
    Call,
    Clause,
    Functor,
    Node,
    Pattern,
    PatternWindow,
    Rule,
)
from squall.lexers.jena.words import Words
from squall.lexers.prefixes import declaration_hint
from squall.lexers.rdf12 import DIRECTIONS, TRIPLE_TERMS
from squall.model import Variable
from squall.model.windows import milliseconds
from squall.rdf import XSD, Term, blank, iri, literal

_INTEGER = re.compile(r"-?[0-9]+")
_FLOAT = re.compile(r"-?[0-9]+\.[0-9]*([eE][+-]?[0-9]+)?")
_NODES_WITH_WINDOW = 4
_WINDOW_HINT = (
    "write `in(10s)`, `always(10s)`, `at(?t 10s)`, or with a step `in(10s step 5s)`; units: ms s m h d; or the times "
    "of the fact: `start(?s)`, `end(?e)`, `interval(?s ?e)`"
)
_INSTANTS = {"in": 0, "always": 0, "at": 1}
"""How many variables a window has, by its name."""
_TIMES = {"start": 1, "end": 1, "interval": 2}
"""How many times of a fact there are, by their name."""
_LABEL = re.compile(r"[A-Za-z0-9_]([A-Za-z0-9_.-]*[A-Za-z0-9_-])?")
_INT = range(-(2**31), 2**31)


class Part(NamedTuple):
    """A part of a rule: its name in the grammar, its words (from `first` up to `end`), and its parts."""

    kind: str
    first: int
    end: int
    parts: tuple[Part, ...] = ()


class Trees:
    """Builds the trees of rules, and records errors in their words."""

    def __init__(self, text: Text, words: Words) -> None:
        self.text = text
        self.words = words
        self.first = 0
        """The number of the first word of the current rule: parts count from it."""
        self.variables: dict[str, Variable] = {}

    def tree(self, part: Part, first: int) -> Rule:
        """Returns the tree of the rule that begins with this word."""
        self.first = first
        rule = self.rule(part)
        sources = self.text.sources_of_line(self.words.line(first))
        return replace(rule, sources=sources) if sources else rule

    def _text(self, part: Part) -> str:
        """Returns the text of a part's first word."""
        return self.words.text(self.first + part.first)

    def rule(self, part: Part) -> Rule:
        name = next((self._text(inner) for inner in part.parts if inner.kind == "NAME"), "")
        parts = [inner for inner in part.parts if inner.kind not in ("NAME", "DOT")]
        arrow = next(place for place, inner in enumerate(parts) if inner.kind == "arrow")
        left, right = self._clauses(parts[:arrow]), self._clauses(parts[arrow + 1 :])
        backward = parts[arrow].parts[0].kind == "BACKWARD"
        head, body = (left, right) if backward else (right, left)
        return Rule(name[:-1] or None, head, body, backward, origin=self._origin(part))

    def _clauses(self, parts: Sequence[Part]) -> tuple[Clause, ...]:
        return tuple([self.clause(part) for part in parts])

    def clause(self, part: Part) -> Clause:
        if part.kind == "pattern":
            return self._pattern(part)
        if part.kind == "rule":
            return self.rule(part)
        name, *nodes = part.parts
        return Call(self._text(name), self._nodes(nodes), self._origin(part))

    def _pattern(self, part: Part) -> Pattern:
        error_count = len(self.text.errors)
        parts = part.parts
        window = None
        if len(parts) == _NODES_WITH_WINDOW and parts[-1].kind == "functor" and self._text(parts[-1]) in WINDOWS:
            parts, window = parts[:-1], self._window(parts[-1])
        nodes = self._nodes(parts)
        origin = self._origin(part)
        if len(nodes) != 3:
            # A node that is wrong in itself is likely to be the cause.
            if len(self.text.errors) == error_count:
                self.text.fail(f"a triple has 3 nodes, not {len(nodes)}", origin, "write `(subject predicate object)`")
            nodes = (Node(iri("")),) * 3
        subject, predicate, object = nodes
        for node, position in ((subject, "subject"), (predicate, "predicate")):
            if isinstance(node.value, Functor):
                place = node.origin or origin
                self.text.fail(f"the functor `{node}` cannot be a {position}", place, "it may be an object")
        return Pattern(subject, predicate, object, origin, window)

    def _window(self, part: Part) -> PatternWindow | None:
        """Returns the window of a pattern; None after an error if it is none."""
        mode, origin = self._text(part), self._origin(part)
        words = [(inner.kind, self._text(inner)) for inner in part.parts[1:]]
        count = next((place for place, (kind, _) in enumerate(words) if kind != "variable"), len(words))
        names = tuple(self._variable(word) for _, word in words[:count])
        try:
            match words[count:]:
                case [] if len(names) == _TIMES.get(mode) and len({*names}) == len(names):
                    return PatternWindow(mode, variables=names, origin=origin)
                case [("word", length), *steps] if len(names) == _INSTANTS.get(mode):
                    step = self._step(steps)
                    if step is not None:
                        return PatternWindow(mode, milliseconds(length), step, names, origin)
            self.text.fail(f"`{mode}` is no window of a pattern here", origin, _WINDOW_HINT)
        except UsageError as error:
            self.text.fail(error.message, origin, _WINDOW_HINT)
        return None

    @staticmethod
    def _step(words: Sequence[tuple[str, str]]) -> int | None:
        """Returns the step of a window (integer ms, 0 without one); None if the words are none."""
        match words:
            case []:
                return 0
            case [("word", "step"), ("word", step)]:
                return milliseconds(step) or None
            case _:
                return None

    def _nodes(self, parts: Sequence[Part]) -> tuple[Node, ...]:
        return tuple([self._node(part) for part in parts])

    def _node(self, part: Part) -> Node:
        origin = self._origin(part)
        text = self._text(part)
        match part.kind:
            case "variable":
                return Node(self._variable(text), origin)
            case "iri":
                return Node(Term(text), origin)
            case "literal":
                return Node(self._literal(part.parts, origin), origin)
            case "functor":
                if text.startswith("<<"):
                    self.text.fail(TRIPLE_TERMS, origin)
                elif not WORD.fullmatch(text) or ":" in text:
                    self.text.fail(f"`{text}` cannot be the name of a functor", origin)
                return Node(Functor(text, self._nodes(part.parts[1:])), origin)
            case _:
                return Node(self._word(text, origin), origin)

    def _variable(self, text: str) -> Variable:
        """Returns the variable of a text: always the same object, so that comparisons are fast."""
        variable = self.variables.get(text)
        if variable is None:
            variable = self.variables[text] = Variable(text[1:])
        return variable

    def _literal(self, parts: Sequence[Part], origin: Origin) -> Term:
        lexical, *suffix = map(self._text, parts)
        text = _unquoted(lexical)
        if not suffix:
            return literal(text)
        datatype = suffix[0][2:]
        if datatype.startswith("<"):
            return literal(text, datatype[1:-1])
        if not datatype:
            self.text.fail("there is no datatype after `^^`", origin, "write no blank between `^^` and the datatype")
        return literal(text, self._expanded(datatype, origin))

    def _word(self, word: str, origin: Origin) -> Term:
        if word in ("*", "_"):
            self.text.fail(f"there is no wildcard `{word}`", origin, "use a variable that occurs nowhere else: `?any`")
        elif word.startswith("@") and "--" in word:
            self.text.fail(f"`{word}`: {DIRECTIONS}, and a literal of a rule has no language tag", origin)
        elif word.startswith("<<"):
            self.text.fail(TRIPLE_TERMS, origin)
            return iri("")
        elif word.startswith("@"):
            self.text.fail(f"`{word}`: a literal of a rule has no language tag", origin)
        elif word.startswith("<"):
            self.text.fail(f"`{word}` is not an IRI", origin, "an IRI ends with `>`, and has no blanks in it")
            return iri("")
        elif word.startswith("_"):
            return self._blank(word[1:].removeprefix(":"), origin)
        elif ":" in word:
            return iri(self._expanded(word, origin))
        elif word[0].isdigit() or (word[0] == "-" and word[1:2].isdigit()):
            return _number(word)
        return iri(self._checked(word, origin))

    def _blank(self, label: str, origin: Origin) -> Term:
        if not _LABEL.fullmatch(label):
            self.text.fail(f"`_{label}` is not a blank node", origin, "its label has letters, digits, `_`, `-` and `.`")
            return iri("")
        return blank(label)

    def _expanded(self, word: str, origin: Origin) -> str:
        prefix, colon, local = word.partition(":")
        if not colon:
            return self._checked(word, origin)
        if prefix in self.text.prefixes:
            return self._checked(self.text.prefixes[prefix] + local, origin)
        if prefix not in SCHEMES:
            namespace = "http://example.org/"
            declaration = f"@prefix {prefix}: <{namespace}>"
            hint = declaration_hint(prefix, self.text.prefixes, declaration, namespace)
            self.text.fail(f"the prefix `{prefix}:` is not declared", origin, hint)
        return self._checked(word, origin)

    def _checked(self, text: str, origin: Origin) -> str:
        """Returns the text of an IRI; ``""`` after an error if it is none."""
        if IRI.fullmatch(text):
            return text
        self.text.fail(f"`{text}` is not an IRI", origin)
        return ""

    def _origin(self, part: Part) -> Origin:
        first = self.first
        return self.text.at(self.words.starts[first + part.first], self.words.ends[first + part.end - 1])


def _unquoted(quoted: str) -> str:
    """Returns the text between the quotes as Jena reads it.

    Lines are trimmed, comments and declarations are removed, and a backslash is removed in front of its character.
    """
    content_lines = [line for line in lines(quoted[1:-1]) if not line.startswith("\uffff")]
    trimmed = "".join(_trimmed(line, place) for place, line in enumerate(content_lines))
    return re.sub(r"\\([\s\S])", r"\1", trimmed)


_BLANKS = "".join(map(chr, range(0x21)))


def _trimmed(line: str, place: int) -> str:
    """Returns a line of a text without surrounding blanks, except at the begin of the text and of an
    unfinished line."""
    trimmed = f"{line.rstrip(_BLANKS)}\n" if line[-1:] in ("\r", "\n") else line
    return trimmed if place == 0 else trimmed.lstrip(_BLANKS)


def _number(word: str) -> Term:
    """Returns the literal of a number as Jena has it: ``5`` is an xsd:int, ``2.5`` an xsd:float, others are plain
    literals.
    """
    if _INTEGER.fullmatch(word) and _is_int(word):
        return literal(word, XSD + "int")
    return literal(word, XSD + "float" if _FLOAT.fullmatch(word) else None)


def _is_int(digits: str) -> bool:
    """Returns whether an integer is an xsd:int. Python itself refuses to read very long integers."""
    significant = digits.lstrip("-").lstrip("0") or "0"
    return len(significant) <= len(str(_INT.stop)) and int(digits[: digits.startswith("-")] + significant) in _INT
