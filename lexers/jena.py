"""The Jena rule language: text to a tree that prints as text.

Source: Jena's page on inference, "Rule syntax", and, where it is silent or wrong, the parser in ``rulesys/Rule.java``.
docs/languages/jena.md describes the language as it is read here.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, cast

from squall.errors import LexerError, Origin, near, raise_all
from squall.rdf import OWL, RDF, RDFS, XSD, XSD_STRING, Term, blank, iri, iri_text, is_blank, is_iri, literal, parts
from squall.system import Variable

if TYPE_CHECKING:
    from lark import Lark, Token, Tree
    from lark.parsers.lalr_interactive_parser import InteractiveParser

    _Tree = Tree[Token]

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

    def origin(self, line: int, column: int, length: int = 1) -> Origin:
        return Origin(self.name, self.text, line, column, length)

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


class _Trees:
    """Makes the tree of a rule of lark's, and notes what is wrong with its words."""

    def __init__(self, text: _Text) -> None:
        self.text = text

    def rule(self, tree: _Tree) -> Rule:
        named = next((str(token) for token in tree.children if _kind(token) == "NAME"), "")
        parts = [child for child in tree.children if _kind(child) not in ("NAME", "DOT")]
        arrow = next(place for place, child in enumerate(parts) if _kind(child) == "arrow")
        left, right = self._clauses(parts[:arrow]), self._clauses(parts[arrow + 1 :])
        backward = _kind(cast("_Tree", parts[arrow]).children[0]) == "BACKWARD"
        head, body = (left, right) if backward else (right, left)
        return Rule(named[:-1] or None, head, body, backward, self._origin(tree))

    def _clauses(self, children: Sequence[Token | _Tree]) -> tuple[Clause, ...]:
        return tuple(self.clause(cast("_Tree", child)) for child in children)

    def clause(self, tree: _Tree) -> Clause:
        if tree.data == "rule":
            return self.rule(tree)
        if tree.data == "call":
            name, *nodes = tree.children
            return Call(str(name), self._nodes(nodes), self._origin(tree))
        return self._pattern(tree)

    def _pattern(self, tree: _Tree) -> Pattern:
        known = len(self.text.errors)
        nodes = self._nodes(tree.children)
        origin = self._origin(tree)
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

    def _nodes(self, children: Sequence[Token | _Tree]) -> tuple[Node, ...]:
        return tuple(self._node(cast("_Tree", child)) for child in children)

    def _node(self, tree: _Tree) -> Node:
        origin = self._origin(tree)
        token = cast("Token", tree.children[0])
        match tree.data:
            case "variable":
                return Node(Variable(token[1:]), origin)
            case "iri":
                return Node(Term(str(token)), origin)
            case "literal":
                return Node(self._literal(tree.children, origin), origin)
            case "functor":
                if not _WORD.fullmatch(token) or ":" in token:
                    self.text.fail(f"`{token}` cannot be the name of a functor", origin)
                return Node(Functor(str(token), self._nodes(tree.children[1:])), origin)
            case _:
                return Node(self._word(str(token), origin), origin)

    def _literal(self, children: Sequence[object], origin: Origin) -> Term:
        lexical = _unquoted(str(children[0]))
        if len(children) == 1:
            return literal(lexical)
        datatype = str(children[1])[2:]
        if datatype.startswith("<"):
            return literal(lexical, datatype[1:-1])
        if not datatype:
            self.text.fail("there is no datatype after `^^`", origin, "write no blank between `^^` and the datatype")
        return literal(lexical, self._expanded(datatype, origin))

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

    def _origin(self, tree: _Tree) -> Origin:
        meta = tree.meta
        return self.text.origin(meta.line, meta.column, meta.end_pos - meta.start_pos)


def _kind(part: Token | _Tree) -> str:
    """What a part of lark's tree is: the type of a token, the name of a tree."""
    return cast("str", part.data if hasattr(part, "data") else part.type)


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
        self.grammar = _grammar()
        self.trees = _Trees(text)
        self.cut = False

    def rules(self) -> Iterator[Rule]:
        tokens = list(self._tokens())
        position = 0
        while position < len(tokens):
            end = _end(tokens, position)
            following = _restart(tokens, position) if end is None else end
            tree = self._parse(tokens[position:following], complete=end is not None)
            if tree is not None:
                yield self.trees.rule(tree)
            elif tokens[position].type != "LSQB":
                following = min(following, _restart(tokens, position))
            position = following

    def _tokens(self) -> Iterator[Token]:
        """The words up to the end, or up to a quote that is never closed: nothing else fits no token."""
        from lark.exceptions import UnexpectedCharacters

        try:
            yield from self.grammar.lex(self.text.rules)
        except UnexpectedCharacters as error:
            self.cut = True
            quote = self.text.rules[cast("int", error.pos_in_stream)]
            self.text.fail(
                "this text is never closed", self.text.origin(error.line, error.column), f"end it with `{quote}`"
            )

    def _parse(self, tokens: Sequence[Token], complete: bool) -> _Tree | None:
        from lark.exceptions import UnexpectedToken

        parser = self.grammar.parse_interactive()
        for index, token in enumerate(tokens):
            try:
                parser.feed_token(token)
            except UnexpectedToken:
                self._unexpected(tokens, index, _accepted(parser))
                return None
        if complete:
            return _finished(parser, tokens[-1])
        if not self.cut:
            self._unfinished(tokens)
        return None

    def _unexpected(self, tokens: Sequence[Token], index: int, accepted: set[str]) -> None:
        token = tokens[index]
        before = tokens[: index + 1]
        comment = next((one for one in before if one.line == token.line and one.startswith(("#", "//"))), None)
        if comment is not None:
            hint = "`#` begins a comment in the first column only, and `//` at the start of a line only"
            self.text.fail(f"`{comment}` does not begin a comment here", self._origin(comment), hint)
        elif index > 0 and token == ":":
            hint = f"write the name and its colon together: `{before[-2]}:`"
            self.text.fail("a blank divides a rule's name from its colon", self._origin(token), hint)
        elif index == 0 and token.type == "DOT":
            self.text.fail("this dot ends no rule", self._origin(token), "a rule in brackets ends with its `]`")
        elif token.type in ("RSQB", "DOT") and {"FORWARD", "BACKWARD"} & accepted:
            self.text.fail("this rule has no arrow", self._origin(tokens[0]), "write `body -> head` or `head <- body`")
        elif token.type == "RSQB" and "DOT" in accepted:
            hint = "end the rule with `.`, or open it with `[`"
            self.text.fail("this bracket closes nothing", self._origin(token), hint)
        else:
            self.text.fail(f"`{token}` cannot stand here", self._origin(token), _expected(accepted))

    def _unfinished(self, tokens: Sequence[Token]) -> None:
        if tokens[0].type == "LSQB":
            self.text.fail("this bracket is never closed", self._origin(tokens[0]), "end the rule with `]`")
        else:
            self.text.fail("this rule never ends", self._origin(tokens[-1]), "end it with `.`")

    def _origin(self, token: Token, length: int | None = None) -> Origin:
        return self.text.origin(token.line or 1, token.column or 1, length or len(token))


# lark leaves these two methods without types.


def _accepted(parser: InteractiveParser) -> set[str]:
    return cast("set[str]", parser.accepts())  # type: ignore[no-untyped-call]


def _finished(parser: InteractiveParser, last: Token) -> _Tree:
    return cast("_Tree", parser.feed_eof(last))  # type: ignore[no-untyped-call]


def _end(tokens: Sequence[Token], start: int) -> int | None:
    """The place after the rule that begins at `start`; None if it has no end."""
    closing = "RSQB" if tokens[start].type == "LSQB" else "DOT"
    depth = 0
    for index in range(start, len(tokens)):
        depth += {"LSQB": 1, "RSQB": -1}.get(tokens[index].type, 0)
        if depth < 0 or (depth == 0 and tokens[index].type == closing):
            return index + 1
    return None


def _restart(tokens: Sequence[Token], start: int) -> int:
    """Where to go on after a rule without an end: at the next bracket that begins a line."""
    for index in range(start + 1, len(tokens)):
        if tokens[index].type == "LSQB" and (tokens[index].line or 0) > (tokens[index - 1].line or 0):
            return index
    return len(tokens)


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
    wrong = [_position(error.origin) for error in errors]
    starts = [*(_position(rule.origin) for rule in rules), (sys.maxsize, 0)]
    spans = zip(rules, starts, starts[1:], strict=False)
    return tuple(rule for rule, start, end in spans if not any(start <= place < end for place in wrong))


def _position(origin: Origin | None) -> tuple[int, int]:
    return (origin.line, origin.column) if origin else (0, 0)


lexer = JenaLexer()
