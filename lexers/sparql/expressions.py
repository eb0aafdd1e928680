"""Construction of terms, paths and expressions from lark's trees, with errors for their words."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar

from lark import Token, Tree

from squall import functions
from squall.errors import Origin, did_you_mean
from squall.functions.intervals import NAMESPACE
from squall.lexers.rdf12 import DIRECTIONS
from squall.lexers.sparql import tree as q
from squall.lexers.sparql.terms import Names, number, unquoted
from squall.lexers.text import Text
from squall.model import Variable
from squall.rdf import XSD, Term, iri_text, literal
from squall.rdf.vocabulary import TYPE

Part = Token | Tree[Token]
Parts = Sequence[Part]

FUNCTIONS: dict[str, tuple[int, int | None]] = {
    **dict.fromkeys(["NOW", "RAND", "UUID", "STRUUID"], (0, 0)),
    **dict.fromkeys(["STR", "LANG", "DATATYPE", "BOUND", "IRI", "URI", "STRLEN", "UCASE", "LCASE"], (1, 1)),
    **dict.fromkeys(["ENCODE_FOR_URI", "ABS", "CEIL", "FLOOR", "ROUND"], (1, 1)),
    **dict.fromkeys(["YEAR", "MONTH", "DAY", "HOURS", "MINUTES", "SECONDS", "TIMEZONE", "TZ"], (1, 1)),
    **dict.fromkeys(["MD5", "SHA1", "SHA256", "SHA384", "SHA512"], (1, 1)),
    **dict.fromkeys(["ISIRI", "ISURI", "ISBLANK", "ISLITERAL", "ISNUMERIC"], (1, 1)),
    **dict.fromkeys(["LANGMATCHES", "CONTAINS", "STRSTARTS", "STRENDS", "STRBEFORE", "STRAFTER"], (2, 2)),
    **dict.fromkeys(["STRLANG", "STRDT", "SAMETERM"], (2, 2)),
    **dict.fromkeys(["CONCAT", "COALESCE"], (0, None)),
    **dict.fromkeys(["SUBSTR", "REGEX"], (2, 3)),
    "BNODE": (0, 1),
    "IF": (3, 3),
    "REPLACE": (3, 4),
}
"""The built-in functions by name, with their least and largest number of arguments (None: any number).

Source: the grammar rule BuiltInCall.
"""

SYNONYMS = {"URI": "IRI", "ISURI": "ISIRI"}


def _time_hint(function: str) -> str | None:
    """Returns how a language without names of steps has a function of their times, or None for another function."""
    (name, count), *_ = [item for item in q.STEP_FUNCTIONS.items() if item[0].lower() == function.lower()] or [("", 0)]
    match count:
        case 1:
            return f"the time of a triple is `{q.TIMESTAMP}(?s, ?p, ?o)`; only CT-SPARQL and its like name steps"
        case 2:
            return f"it takes times, by its IRI: `<{NAMESPACE}{name}>(?start, ?end, ?start2, ?end2)`"
        case _:
            return None


def trees(tree: Tree[Token], *names: str) -> list[Tree[Token]]:
    """Returns the child trees, with one of these names if any are given."""
    subtrees = [part for part in tree.children if isinstance(part, Tree)]
    return [part for part in subtrees if part.data in names] if names else subtrees


def first(tree: Tree[Token], *names: str) -> Tree[Token] | None:
    """Returns the first child tree with one of these names."""
    return next(iter(trees(tree, *names)), None)


def has(tree: Tree[Token], kind: str) -> bool:
    """Returns whether there is a child token of a type."""
    return word(tree, kind) is not None


def word(tree: Tree[Token], *kinds: str) -> str | None:
    """Returns the text of the first child token of these types, in upper case."""
    return next((part.upper() for part in tree.children if isinstance(part, Token) and part.type in kinds), None)


def span(part: Part) -> tuple[int, int]:
    """Returns the begin and end position of a part."""
    place = part if isinstance(part, Token) else part.meta
    return place.start_pos or 0, place.end_pos or 0


def variable_of(part: Part) -> Variable:
    return Variable(str(part)[1:])


def is_token(part: Part, kind: str) -> bool:
    return isinstance(part, Token) and part.type == kind


def is_iri(part: Part) -> bool:
    return isinstance(part, Token) and part.type in ("IRIREF", "PNAME_LN", "PNAME_NS")


def only(tree: Tree[Token], name: str) -> Tree[Token]:
    """Returns the child tree with this name."""
    return trees(tree, name)[0]


class Expressions(ABC):
    """Reads lark's tree from the top down. Errors are recorded in the text's `errors`."""

    def __init__(self, text: Text, base: str, prefixes: Mapping[str, str]) -> None:
        self.text = text
        self.names = Names(text, base, prefixes)

    @abstractmethod
    def group(self, tree: Tree[Token]) -> q.Group:
        """Returns a group, ``{ ... }``, which follows ``EXISTS`` in an expression."""

    def origin(self, part: Part, end: Part | None = None) -> Origin:
        return self.text.origin(span(part)[0], span(end or part)[1])

    # Terms

    def iri(self, part: Part) -> Term:
        """Returns the term of a token ``<iri>``, ``prefix:local`` or ``a``."""
        if isinstance(part, Token) and part.type == "A":
            return TYPE
        return self.names.iri(str(part), self.origin(part))

    def name(self, part: Part) -> q.Slot:
        """Returns a variable or an IRI."""
        return Variable(part[1:]) if isinstance(part, Token) and part.type == "VAR" else self.iri(part)

    def term(self, part: Part) -> q.Slot:
        """Returns a variable, IRI or literal."""
        if isinstance(part, Tree):
            return self._literal(part.children)
        match part.type:
            case "NUMBER" | "SIGNED":
                return number(part)
            case "BOOLEAN":
                return literal(part.lower(), XSD + "boolean")
            case _:
                return self.name(part)

    def _literal(self, parts: Parts) -> Term:
        text = unquoted(str(parts[0]))
        if len(parts) == 1:
            return literal(text)
        kind = parts[1]
        if isinstance(kind, Token) and kind.type == "LANGTAG":
            language, _, direction = kind[1:].partition("--")
            if direction:
                self.text.fail(f"`{kind}`: {DIRECTIONS}", self.origin(kind), f"write `@{language}`")
            return literal(text, language=language)
        return literal(text, self.iri(kind)[1:-1])

    # Paths

    def verb(self, part: Part) -> q.Path | Variable:
        """Returns a predicate: a variable, an IRI or a path."""
        if isinstance(part, Token):
            return self.name(part)
        match part.data:
            case "path":
                return q.Alternative(tuple(map(self._path, part.children)))
            case "sequence":
                return q.Steps(tuple(map(self._path, part.children)))
            case "inverse":
                return q.Inverse(self._path(part.children[0]))
            case "repeat":
                return q.Repeat(self._path(part.children[0]), str(part.children[1]))
            case _:
                forward = tuple(self.iri(token) for token in part.children if isinstance(token, Token))
                return q.Negated(forward, tuple(self.iri(token.children[0]) for token in trees(part)))

    def _path(self, part: Part) -> q.Path:
        verb = self.verb(part)
        assert not isinstance(verb, Variable)  # the grammar has no variables in a path
        return verb

    # Expressions

    def expression(self, part: Part) -> q.Expression:
        """Returns any expression or constraint."""
        if isinstance(part, Token):
            return self.term(part)
        make = self._EXPRESSIONS.get(str(part.data))
        return self.term(part) if make is None else make(self, part)

    def _chain(self, sign: str, tree: Tree[Token]) -> q.Call:
        return q.Call(sign, tuple(map(self.expression, tree.children)), origin=self.origin(tree))

    def _compare(self, tree: Tree[Token]) -> q.Call:
        left, sign, right = tree.children
        return q.Call(str(sign), (self.expression(left), self.expression(right)), origin=self.origin(tree))

    def _within(self, tree: Tree[Token]) -> q.Call:
        candidates = only(tree, "list").children
        arguments = tuple(map(self.expression, [tree.children[0], *candidates]))
        return q.Call("NOT IN" if has(tree, "NOT") else "IN", arguments, origin=self.origin(tree))

    def _additive(self, tree: Tree[Token]) -> q.Expression:
        start, *parts = tree.children
        result = self.expression(start)
        while parts:
            part = parts.pop(0)
            if isinstance(part, Tree):
                result = self._signed(result, part, self.origin(start, part))
            else:
                operand = parts.pop(0)
                result = self._binary(result, part, operand, start)
        return result

    def _signed(self, left: q.Expression, tree: Tree[Token], origin: Origin) -> q.Call:
        """Returns ``?x -1`` as a call: a sign between an expression and a number is an operator (grammar rule
        AdditiveExpression).
        """
        token, *parts = tree.children
        right: q.Expression = number(str(token)[1:])
        for sign, operand in zip(parts[::2], parts[1::2], strict=True):
            right = self._binary(right, sign, operand, token)
        return q.Call(str(token)[0], (left, right), origin=origin)

    def _multiplicative(self, tree: Tree[Token]) -> q.Expression:
        start, *parts = tree.children
        result = self.expression(start)
        for sign, operand in zip(parts[::2], parts[1::2], strict=True):
            result = self._binary(result, sign, operand, start)
        return result

    def _binary(self, left: q.Expression, sign: Part, right: Part, start: Part) -> q.Call:
        return q.Call(str(sign), (left, self.expression(right)), origin=self.origin(start, right))

    def _unary(self, tree: Tree[Token]) -> q.Call:
        sign, operand = tree.children
        return q.Call(str(sign), (self.expression(operand),), origin=self.origin(tree))

    def _call(self, tree: Tree[Token]) -> q.Call | q.Aggregate:
        function, *parts = [part for part in tree.children if not is_token(part, "DISTINCT")]
        name, arguments = self.iri(function), tuple(map(self.expression, parts))
        distinct, origin = has(tree, "DISTINCT"), self.origin(tree)
        if not functions.is_aggregate(iri_text(name)):
            return q.Call(name, arguments, distinct, origin)
        argument = arguments[0] if arguments else None
        return q.Aggregate(name, argument, distinct, origin=origin, further_arguments=arguments[1:])

    def _builtin(self, tree: Tree[Token]) -> q.Call:
        function, *parts = tree.children
        name = SYNONYMS.get(str(function).upper(), str(function).upper())
        arguments = tuple(map(self.expression, parts))
        self._check_call(function, arguments)
        return q.Call(name, arguments, origin=self.origin(tree))

    def _check_call(self, function: Part, arguments: tuple[q.Expression, ...]) -> None:
        name = str(function).upper()
        if name not in FUNCTIONS:
            hint_text = "a function that is not built in is called by its IRI: `ex:name(?x)`"
            set_functions = (aggregate.iri.upper() for aggregate in functions.aggregates() if ":" not in aggregate.iri)
            hint = _time_hint(str(function)) or did_you_mean(name, [*FUNCTIONS, *set_functions]) or hint_text
            self.text.fail(f"there is no function `{function}`", self.origin(function), hint)
            return
        least, most = FUNCTIONS[name]
        if len(arguments) < least or (most is not None and len(arguments) > most):
            arity_text = (
                f"{least} argument{'' if least == 1 else 's'}" if least == most else f"{least} or {most} arguments"
            )
            self.text.fail(f"`{name}` takes {arity_text}, not {len(arguments)}", self.origin(function))
        elif name == "BOUND" and not isinstance(arguments[0], Variable):
            self.text.fail("`BOUND` asks for a variable", self.origin(function), "write `BOUND(?variable)`")

    def _aggregate(self, tree: Tree[Token]) -> q.Aggregate:
        kind, *parts = [part for part in tree.children if not is_token(part, "DISTINCT")]
        name = str(kind).upper()
        separators = [unquoted(str(part)) for part in parts if is_token(part, "STRING")]
        of_all = is_token(parts[0], "STAR")
        aggregate = functions.lookup_aggregate(name.lower())
        if of_all and aggregate.solutions is None:
            self.text.fail(f"`{name}` needs to know of what", self.origin(tree), f"write `{name}(?variable)`")
        if separators and not aggregate.has_separator:
            self.text.fail(f"`{name}` has no separator", self.origin(tree), "only `GROUP_CONCAT` has one")
        expression = None if of_all else self.expression(parts[0])
        separator = separators[0] if separators else None
        return q.Aggregate(name, expression, has(tree, "DISTINCT"), separator, self.origin(tree))

    def _exists(self, tree: Tree[Token]) -> q.Exists | q.NotExists:
        group = self.group(only(tree, "group"))
        return q.NotExists(group, self.origin(tree)) if has(tree, "NOT") else q.Exists(group, self.origin(tree))

    def _timestamp(self, tree: Tree[Token]) -> q.Timestamp:
        variable, *parts = tree.children
        within: Term | q.Group | None = None
        for part in parts:
            within = self.group(part) if isinstance(part, Tree) else self.iri(part)
        return q.Timestamp(variable_of(variable), within, self.origin(tree))

    def _timestamp_of_triple(self, tree: Tree[Token]) -> q.Call:
        return q.Call(q.TIMESTAMP, tuple(map(self.expression, tree.children)), origin=self.origin(tree))

    def _step_function(self, tree: Tree[Token]) -> q.StepCall:
        function, *parts = tree.children
        (name,) = (name for name in q.STEP_FUNCTIONS if name.lower() == str(function).lower())
        names = [part for part in parts if isinstance(part, Token)]
        count, expected = len(names), q.STEP_FUNCTIONS[name]
        if len(names) < len(parts):
            hint = f"write `{name}({', '.join(names)})`, and compare `start` and `end` where they may differ a little"
            self.text.fail(f"`{name}` has no tolerances here", self.origin(parts[len(names)]), hint)
        if count != expected:
            arity_text = "the name of 1 step" if expected == 1 else f"the names of {expected} steps"
            self.text.fail(f"`{name}` takes {arity_text}, not {count}", self.origin(function))
        steps = tuple(q.StepName(str(part)[1:], self.origin(part)) for part in names)
        return q.StepCall(name, steps, self.origin(tree))

    def _previous(self, tree: Tree[Token]) -> q.Previous:
        return q.Previous(variable_of(tree.children[0]), self.origin(tree))

    def _sequence_of_events(self, tree: Tree[Token]) -> q.EventSequence:
        return q.EventSequence(tuple(map(self._sequenced_event, trees(tree))), self.origin(tree))

    def _sequenced_event(self, tree: Tree[Token]) -> q.SequencedEvent:
        (variable,) = (part for part in tree.children if is_token(part, "VAR"))
        for part in trees(tree, "quantifier"):
            hint = "name each event of its own: `SEQ(?a ; ?b ; ?c)`"
            message = f"iterations of an event are not supported: `{self.origin(variable, part).words}`"
            self.text.fail(message, self.origin(part), hint)
        for part in trees(tree, "alias"):
            self.text.fail("an event of `SEQ` has no alias", self.origin(part), f"its name is `{variable}`")
        return q.SequencedEvent(variable_of(variable), not has(tree, "NOT"), self.origin(tree))

    def _interval_function(self, tree: Tree[Token]) -> q.StepCall:
        (function,) = tree.children
        (name,) = (name for name in q.INTERVAL_FUNCTIONS if name.lower() == str(function).lower())
        return q.StepCall(name, (), self.origin(tree))

    _EXPRESSIONS: ClassVar[dict[str, Callable[[Expressions, Tree[Token]], q.Expression]]] = {
        "expression": lambda self, tree: self._chain("||", tree),
        "conjunction": lambda self, tree: self._chain("&&", tree),
        "compare": _compare,
        "within": _within,
        "additive": _additive,
        "multiplicative": _multiplicative,
        "unary": _unary,
        "call": _call,
        "builtin": _builtin,
        "aggregate": _aggregate,
        "exists": _exists,
        "timestamp": _timestamp,
        "timestamp_of_triple": _timestamp_of_triple,
        "step_function": _step_function,
        "sequence_of_events": _sequence_of_events,
        "interval_function": _interval_function,
        "previous": _previous,
    }
