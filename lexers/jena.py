"""The Jena rule language: text to a tree that prints as text.

Source: Jena's page on inference, "Rule syntax", and, where it is silent or wrong, the parser in ``rulesys/Rule.java``.
docs/languages/jena.md describes the language as it is read here.
"""

from __future__ import annotations

import re
import sys
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, NamedTuple, cast

from squall.errors import LexerError, Origin, near, raise_all
from squall.rdf import OWL, RDF, RDFS, XSD, XSD_STRING, Term, blank, iri, iri_text, is_blank, is_iri, literal, parts
from squall.system import Variable

if TYPE_CHECKING:
    from lark import Lark, Token, Tree
    from lark.parsers.lalr_interactive_parser import InteractiveParser

PREFIXES = {
    "rdf": RDF,
    "rdfs": RDFS,
    "drdfs": "urn:x-hp-direct-predicate:http_//www.w3.org/2000/01/rdf-schema#",
    "owl": OWL,
    "jr": "http://jena.hpl.hp.com/2003/JenaReasoner#",
    "rb": "urn:x-hp-jena:rubrik/",
    "eg": "urn:x-hp:eg/",
    "xsd": XSD,
}
"""The prefixes that need no declaration."""

_SCHEMES = frozenset({"http", "https", "urn", "file", "ftp", "mailto"})
"""What before a colon makes a word an IRI if it is no prefix."""

_IRI = re.compile(r'[^<>"{}|^`\\\x00-\x20]*')
_WORD = re.compile(r"[^()\[\],\s'\"?<*_#@.-][^()\[\],\s]*")
_INTEGER = re.compile(r"-?[0-9]+")
_FLOAT = re.compile(r"-?[0-9]+\.[0-9]*([eE][+-]?[0-9]+)?")
_LABEL = re.compile(r"[A-Za-z0-9_]([A-Za-z0-9_.-]*[A-Za-z0-9_-])?")
_INT = range(-(2**31), 2**31)


@dataclass(frozen=True)
class Functor:
    """``name(arguments)`` as a node: a structured value."""

    name: str
    arguments: tuple[Node, ...]

    def __str__(self) -> str:
        return f"{self.name}({' '.join(map(str, self.arguments))})"


@dataclass(frozen=True)
class Node:
    """A variable, a term or a functor in its place."""

    value: Variable | Term | Functor
    origin: Origin | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        return _printed(self.value) if isinstance(self.value, str) else str(self.value)


@dataclass(frozen=True)
class Pattern:
    """``(subject predicate object)``."""

    subject: Node
    predicate: Node
    object: Node
    origin: Origin | None = field(default=None, compare=False, repr=False)

    @property
    def nodes(self) -> tuple[Node, ...]:
        return (self.subject, self.predicate, self.object)

    def __str__(self) -> str:
        return f"({' '.join(map(str, self.nodes))})"


@dataclass(frozen=True)
class Call:
    """``name(nodes)`` as a clause: a built-in."""

    name: str
    nodes: tuple[Node, ...]
    origin: Origin | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        return f"{self.name}({' '.join(map(str, self.nodes))})"


@dataclass(frozen=True)
class Rule:
    """A rule. `backward` if it was written ``head <- body``; `name` is None where it has none."""

    name: str | None
    head: tuple[Clause, ...]
    body: tuple[Clause, ...]
    backward: bool = False
    origin: Origin | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        label = [f"{self.name}:"] if self.name is not None else []
        body, head = [str(clause) for clause in self.body], [str(clause) for clause in self.head]
        clauses = [*head, "<-", *body] if self.backward else [*body, "->", *head]
        return " ".join(["[", *label, *clauses, "]"])

    @property
    def direction(self) -> str:
        """``forward`` or ``backward``, as it was written."""
        return "backward" if self.backward else "forward"

    @property
    def canonical(self) -> Rule:
        """The rule with its variables numbered in the order of their first occurrence, body first.

        Rules that differ in the names of their variables alone have equal canonical rules.
        """
        numbers: dict[Variable, Variable] = {}
        body = tuple(_renumbered(clause, numbers) for clause in self.body)
        head = tuple(_renumbered(clause, numbers) for clause in self.head)
        return replace(self, body=body, head=head)


Clause = Pattern | Call | Rule


@dataclass(frozen=True)
class Program:
    """The rules of a text, in order. Prefixes are resolved: what is printed needs no declarations."""

    rules: tuple[Rule, ...]
    name: str = field(default="", compare=False)

    def __str__(self) -> str:
        return "".join(f"{rule}\n" for rule in self.rules)


def _renumbered(clause: Clause, numbers: dict[Variable, Variable]) -> Clause:
    match clause:
        case Pattern(subject=subject, predicate=predicate, object=object):
            renamed = [_renamed(node, numbers) for node in (subject, predicate, object)]
            return replace(clause, subject=renamed[0], predicate=renamed[1], object=renamed[2])
        case Call(nodes=nodes):
            return replace(clause, nodes=tuple(_renamed(node, numbers) for node in nodes))
        case Rule(head=head, body=body):
            renumbered = tuple(_renumbered(inner, numbers) for inner in body)
            return replace(clause, body=renumbered, head=tuple(_renumbered(inner, numbers) for inner in head))


def _renamed(node: Node, numbers: dict[Variable, Variable]) -> Node:
    match node.value:
        case Variable():
            return replace(node, value=numbers.setdefault(node.value, Variable(str(len(numbers)))))
        case Functor(name=name, arguments=arguments):
            return replace(node, value=Functor(name, tuple(_renamed(inner, numbers) for inner in arguments)))
        case _:
            return node


def _printed(term: Term) -> str:
    """A term as text of the language."""
    if is_iri(term):
        return _prefixed(iri_text(term)) or term
    if is_blank(term):
        return f"_{term[2:]}"
    lexical, datatype, _ = parts(term)
    # At the start of a line `#` would begin a comment; blanks there are not part of the text.
    quoted = re.sub(r"(?<=\n)#", " #", lexical.replace("\\", "\\\\").replace("'", "\\'"))
    if datatype == XSD_STRING:
        return f"'{quoted}'"
    return f"'{quoted}'^^{datatype if _is_bare(datatype) else iri(datatype)}"


def _prefixed(text: str) -> str | None:
    for prefix, namespace in PREFIXES.items():
        word = f"{prefix}:{text.removeprefix(namespace)}"
        if text.startswith(namespace) and _WORD.fullmatch(word):
            return word
    return None


def _is_bare(text: str) -> bool:
    """Whether an IRI is read as itself without angle brackets."""
    return text.partition(":")[0] in _SCHEMES and _WORD.fullmatch(text) is not None


class _Text:
    """A program's text with its line-based part (comments, ``@prefix``, ``@include``) blanked out and understood."""

    def __init__(self, text: str, name: str) -> None:
        self.text = text
        self.name = name
        self.errors: list[LexerError] = []
        self.prefixes = dict(PREFIXES)
        self.rules = "".join(self._line(number, line) for number, line in enumerate(_lines(text), 1))
        self.starts = [0, *(feed.end() for feed in re.finditer("\n", text))]
        """Where the lines of origins begin: a line feed ends a line."""

    def origin(self, line: int, column: int, length: int = 1) -> Origin:
        return Origin(self.name, self.text, line, column, length)

    def at(self, start: int, end: int) -> Origin:
        """The origin of the characters from `start` up to `end`."""
        line = bisect_right(self.starts, start)
        return Origin(self.name, self.text, line, start - self.starts[line - 1] + 1, end - start)

    def fail(self, message: str, origin: Origin, hint: str | None = None) -> None:
        self.errors.append(LexerError(message, origin, hint))

    def _line(self, number: int, line: str) -> str:
        """The line as the rules see it. One that they do not see is filled with noncharacters: all places are kept."""
        start = line.lstrip()
        if not (line.startswith("#") or start.startswith(("//", "@prefix", "@include"))):
            return line
        origin = self.origin(number, len(line) - len(start) + 1, len(start.rstrip()))
        if not line.startswith("#") and start.startswith("@"):
            self._declare(start.split(), origin)
        ending = line[len(line.rstrip("\r\n")) :]
        return "\uffff" * (len(line) - len(ending)) + ending

    def _declare(self, words: list[str], origin: Origin) -> None:
        if words[0] == "@include":
            self.fail(
                f"`{' '.join(words)}` is not supported yet",
                origin,
                "give the included file as a further program: all programs of a run read what the others derive",
            )
        elif words[0] != "@prefix" or len(words) < 3:
            self.fail(f"`{' '.join(words)}` declares no prefix", origin, "write `@prefix ex: <http://example.org/>`")
        elif (namespace := _namespace(words[2])) is None:
            self.fail(f"`{words[2]}` is not an IRI", origin)
        elif (rest := words[4:] if words[3:4] == ["."] else words[3:]) and not rest[0].startswith(("#", "//")):
            self.fail(f"`{rest[0]}` follows a prefix on its line", origin, "a declaration has a line of its own")
        else:
            self.prefixes[words[1].removesuffix(":")] = namespace


def _lines(text: str) -> list[str]:
    """The lines with their ends: line feed, carriage return, or both, and nothing else that Unicode has."""
    return re.findall(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+", text)


def _namespace(word: str) -> str | None:
    text = word[1:].partition(">")[0] if word.startswith("<") else word
    return text if _IRI.fullmatch(text) else None


class _Words:
    """The words of a text, by number: the terminal of the grammar that each is, and the place of its characters. Up to
    the end, or up to a quote that is never closed (`cut`): nothing else fits no terminal."""

    def __init__(self, text: _Text) -> None:
        self.source = text
        self.kinds: list[str] = []
        self.starts: list[int] = []
        self.ends: list[int] = []
        self.cut = False
        for match in _terminals().finditer(text.rules):
            kind = match.lastgroup
            if kind is None:
                break
            start, end = match.span(kind)
            if kind == "other":
                self.cut = True
                text.fail("this text is never closed", text.at(start, end), f"end it with `{match[kind]}`")
                break
            self.kinds.append(kind)
            self.starts.append(start)
            self.ends.append(end)

    def __len__(self) -> int:
        return len(self.kinds)

    def text(self, word: int) -> str:
        return self.source.rules[self.starts[word] : self.ends[word]]

    def origin(self, word: int) -> Origin:
        return self.source.at(self.starts[word], self.ends[word])

    def line(self, word: int) -> int:
        return self.origin(word).line

    def begins_line(self, word: int) -> bool:
        """Whether a word stands in a later line than the one before."""
        return self.line(word) > self.line(word - 1)


class _Part(NamedTuple):
    """A part of a rule: the name that the grammar gives it, the words it has (from `first` up to `end`), its parts."""

    kind: str
    first: int
    end: int
    parts: tuple[_Part, ...] = ()


class _Trees:
    """Makes the trees of rules, and notes what is wrong with their words."""

    def __init__(self, text: _Text, words: _Words) -> None:
        self.text = text
        self.words = words
        self.first = 0
        """The number of the first word of the rule at hand: parts count from it."""
        self.variables: dict[str, Variable] = {}

    def tree(self, whole: _Part, first: int) -> Rule:
        """The tree of the rule that begins with this word."""
        self.first = first
        return self.rule(whole)

    def _text(self, part: _Part) -> str:
        """The text of a part's first word."""
        return self.words.text(self.first + part.first)

    def rule(self, part: _Part) -> Rule:
        named = next((self._text(inner) for inner in part.parts if inner.kind == "NAME"), "")
        parts = [inner for inner in part.parts if inner.kind not in ("NAME", "DOT")]
        arrow = next(place for place, inner in enumerate(parts) if inner.kind == "arrow")
        left, right = self._clauses(parts[:arrow]), self._clauses(parts[arrow + 1 :])
        backward = parts[arrow].parts[0].kind == "BACKWARD"
        head, body = (left, right) if backward else (right, left)
        return Rule(named[:-1] or None, head, body, backward, self._origin(part))

    def _clauses(self, parts: Sequence[_Part]) -> tuple[Clause, ...]:
        return tuple([self.clause(part) for part in parts])

    def clause(self, part: _Part) -> Clause:
        if part.kind == "pattern":
            return self._pattern(part)
        if part.kind == "rule":
            return self.rule(part)
        name, *nodes = part.parts
        return Call(self._text(name), self._nodes(nodes), self._origin(part))

    def _pattern(self, part: _Part) -> Pattern:
        known = len(self.text.errors)
        nodes = self._nodes(part.parts)
        origin = self._origin(part)
        if len(nodes) != 3:
            # A node that is wrong in itself is likely to be the cause.
            if len(self.text.errors) == known:
                self.text.fail(f"a triple has 3 nodes, not {len(nodes)}", origin, "write `(subject predicate object)`")
            nodes = (Node(iri("")),) * 3
        subject, predicate, object = nodes
        for node, position in ((subject, "subject"), (predicate, "predicate")):
            if isinstance(node.value, Functor):
                place = node.origin or origin
                self.text.fail(f"the functor `{node}` cannot be a {position}", place, "it may be an object")
        return Pattern(subject, predicate, object, origin)

    def _nodes(self, parts: Sequence[_Part]) -> tuple[Node, ...]:
        return tuple([self._node(part) for part in parts])

    def _node(self, part: _Part) -> Node:
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
                if not _WORD.fullmatch(text) or ":" in text:
                    self.text.fail(f"`{text}` cannot be the name of a functor", origin)
                return Node(Functor(text, self._nodes(part.parts[1:])), origin)
            case _:
                return Node(self._word(text, origin), origin)

    def _variable(self, text: str) -> Variable:
        """The variable of this text: the same object wherever it occurs, so that it is soon seen to be equal."""
        known = self.variables.get(text)
        if known is None:
            known = self.variables[text] = Variable(text[1:])
        return known

    def _literal(self, parts: Sequence[_Part], origin: Origin) -> Term:
        lexical, *rest = map(self._text, parts)
        text = _unquoted(lexical)
        if not rest:
            return literal(text)
        datatype = rest[0][2:]
        if datatype.startswith("<"):
            return literal(text, datatype[1:-1])
        if not datatype:
            self.text.fail("there is no datatype after `^^`", origin, "write no blank between `^^` and the datatype")
        return literal(text, self._expanded(datatype, origin))

    def _word(self, word: str, origin: Origin) -> Term:
        if word in ("*", "_"):
            self.text.fail(f"there is no wildcard `{word}`", origin, "use a variable that occurs nowhere else: `?any`")
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
        return blank(label)

    def _expanded(self, word: str, origin: Origin) -> str:
        prefix, colon, local = word.partition(":")
        if not colon:
            return self._checked(word, origin)
        if prefix in self.text.prefixes:
            return self._checked(self.text.prefixes[prefix] + local, origin)
        if prefix not in _SCHEMES:
            hint = near(prefix, self.text.prefixes) or f"declare it: `@prefix {prefix}: <http://example.org/>`"
            self.text.fail(f"the prefix `{prefix}:` is not declared", origin, hint)
        return self._checked(word, origin)

    def _checked(self, text: str, origin: Origin) -> str:
        if not _IRI.fullmatch(text):
            self.text.fail(f"`{text}` is not an IRI", origin)
        return text

    def _origin(self, part: _Part) -> Origin:
        first = self.first
        return self.text.at(self.words.starts[first + part.first], self.words.ends[first + part.end - 1])


def _unquoted(quoted: str) -> str:
    """The text between the quotes: its lines trimmed, without those that are comments or declarations, as Jena reads
    them, and each backslash gone from before its character."""
    kept = [line for line in _lines(quoted[1:-1]) if not line.startswith("\uffff")]
    joined = "".join(re.sub(r"[\x00-\x20]*(\r\n|\r|\n)$", "\n", line) for line in kept)
    return re.sub(r"\\([\s\S])", r"\1", re.sub(r"(?<=\n)[\x00-\x20]+", "", joined))


def _number(word: str) -> Term:
    """``5`` is an xsd:int, ``2.5`` an xsd:float, and what is neither a plain literal, as in Jena."""
    if _INTEGER.fullmatch(word) and int(word) in _INT:
        return literal(word, XSD + "int")
    return literal(word, XSD + "float" if _FLOAT.fullmatch(word) else None)


class _Reader:
    """Reads the rules one by one, and goes on after one that is wrong."""

    def __init__(self, text: _Text) -> None:
        self.text = text
        self.words = _Words(text)
        self.trees = _Trees(text, self.words)
        self.shapes: dict[tuple[str, ...], _Part] = {}
        """The parts of the rules so far, by the kinds of their words: nothing else of a word decides about them."""

    def rules(self) -> Iterator[Rule]:
        ends = _ends(self.words.kinds)
        position = 0
        while position < len(self.words):
            end = ends[position]
            following = self._restart(position, len(self.words)) if end is None else end
            whole = self._parse(position, following, complete=end is not None)
            if whole is not None:
                yield self.trees.tree(whole, position)
            elif self.words.kinds[position] != "LSQB":
                following = self._restart(position, following)
            position = following

    def _restart(self, start: int, stop: int) -> int:
        """Where to go on after a rule that is wrong or has no end: at the next bracket that begins a line."""
        words = self.words
        brackets = (word for word in range(start + 1, stop) if words.kinds[word] == "LSQB" and words.begins_line(word))
        return next(brackets, stop)

    def _parse(self, first: int, stop: int, complete: bool) -> _Part | None:
        kinds = tuple(self.words.kinds[first:stop])
        whole = self.shapes.get(kinds) or self._parsed(first, kinds, complete)
        if whole is not None:
            self.shapes[kinds] = whole
        return whole

    def _parsed(self, first: int, kinds: Sequence[str], complete: bool) -> _Part | None:
        from lark import Token
        from lark.exceptions import UnexpectedToken

        parser = _grammar().parse_interactive()
        # The place of a token is its number: the tree that is made of them then tells the words of each part.
        tokens = [Token(kind, "", number, 1, 1, 1, 1, number + 1) for number, kind in enumerate(kinds)]
        for number, token in enumerate(tokens):
            try:
                parser.feed_token(token)
            except UnexpectedToken:
                self._unexpected(first, first + number, _accepted(parser))
                return None
        if complete:
            return _part(_finished(parser, tokens[-1]))
        if not self.words.cut:
            self._unfinished(first, first + len(kinds) - 1)
        return None

    def _unexpected(self, first: int, word: int, accepted: set[str]) -> None:
        words = self.words
        text, kind, origin = words.text(word), words.kinds[word], words.origin(word)
        comment = next((one for one in range(first, word + 1) if self._is_comment(one, origin.line)), None)
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
        """Whether a word in this line looks like the beginning of a comment."""
        return self.words.text(word).startswith(("#", "//")) and self.words.line(word) == line

    def _unfinished(self, first: int, last: int) -> None:
        if self.words.kinds[first] == "LSQB":
            self.text.fail("this bracket is never closed", self.words.origin(first), "end the rule with `]`")
        else:
            self.text.fail("this rule never ends", self.words.origin(last), "end it with `.`")


def _part(tree: Token | Tree[Token]) -> _Part:
    """What a tree or token of lark's is, with the numbers of its words."""
    from lark import Token

    if isinstance(tree, Token):
        return _Part(tree.type, cast("int", tree.start_pos), cast("int", tree.end_pos))
    return _Part(str(tree.data), tree.meta.start_pos, tree.meta.end_pos, tuple(map(_part, tree.children)))


# lark leaves these two methods without types.


def _accepted(parser: InteractiveParser) -> set[str]:
    return cast("set[str]", parser.accepts())  # type: ignore[no-untyped-call]


def _finished(parser: InteractiveParser, last: Token) -> Tree[Token]:
    return cast("Tree[Token]", parser.feed_eof(last))  # type: ignore[no-untyped-call]


def _ends(kinds: Sequence[str]) -> list[int | None]:
    """For each word, the place after the rule that would begin with it; None if that has no end. A rule in brackets
    ends with its own `]`, another with the next dot or `]` that lies in no brackets within it."""
    found: list[int | None] = [None] * len(kinds)
    closing: int | None = None
    following: int | None = None
    outer: list[tuple[int | None, int | None]] = []
    """Of the brackets around the place: the place after what closes them, and that after the next end."""
    for place in range(len(kinds) - 1, -1, -1):
        kind = kinds[place]
        if kind == "LSQB":
            found[place] = closing
            closing, following = outer.pop() if outer else (None, None)
            continue
        if kind == "RSQB":
            outer.append((closing, following))
            closing = place + 1
        if kind in ("RSQB", "DOT"):
            following = place + 1
        found[place] = following
    return found


_SPOKEN = {
    "LPAR": "`(`", "RPAR": "`)`", "LSQB": "`[`", "RSQB": "`]`", "DOT": "`.`", "FORWARD": "`->`", "BACKWARD": "`<-`",
    "VARIABLE": "a node", "WORD": "a built-in",
}  # fmt: skip


def _expected(accepted: set[str]) -> str:
    kinds = accepted - {"WORD"} if "VARIABLE" in accepted else accepted
    return f"expected {' or '.join(spoken for kind, spoken in _SPOKEN.items() if kind in kinds)}"


@cache
def _grammar() -> Lark:
    from lark import Lark

    text = files("squall.lexers").joinpath("jena.lark").read_text(encoding="utf-8")
    return Lark(text, start="rule", parser="lalr", lexer="basic", propagate_positions=True)


@cache
def _terminals() -> re.Pattern[str]:
    """The terminals of the grammar as one expression, each with what may be ignored before it: the name of the group is
    that of the terminal, or ``other`` of a character that fits none. At the end of a text no group matches."""
    grammar = _grammar()
    ordered = sorted(grammar.terminals, key=lambda one: -one.priority)
    named = [f"(?P<{one.name}>{one.pattern.to_regexp()})" for one in ordered if one.name not in grammar.ignore_tokens]
    ignored = "|".join(one.pattern.to_regexp() for one in ordered if one.name in grammar.ignore_tokens)
    return re.compile(f"(?:{ignored})*(?:{'|'.join(named)}|(?P<other>[\\s\\S])|$)")


@dataclass(frozen=True)
class JenaLexer:
    """The lexer of the Jena rule language."""

    extensions: tuple[str, ...] = (".jena", ".rules", ".rule")

    def __call__(self, text: str, name: str) -> Program:
        """The tree of a program. Raises LexerError, or Errors with all that are found."""
        source = _Text(text.removeprefix("\ufeff"), name)
        rules = tuple(_Reader(source).rules())
        raise_all(source.errors, partial=Program(_sound(rules, source.errors), name))
        return Program(rules, name)


def _sound(rules: Sequence[Rule], errors: Sequence[LexerError]) -> tuple[Rule, ...]:
    """The rules in which no error lies: each reaches as far as the next one."""
    wrong = sorted(_position(error.origin) for error in errors)
    starts = [*(_position(rule.origin) for rule in rules), (sys.maxsize, 0)]
    before = [bisect_left(wrong, start) for start in starts]
    return tuple(rule for rule, first, last in zip(rules, before, before[1:], strict=False) if first == last)


def _position(origin: Origin | None) -> tuple[int, int]:
    return (origin.line, origin.column) if origin else (0, 0)


lexer = JenaLexer()
