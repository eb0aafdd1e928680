"""Construction of the tree of a LARS program from lark's tree: prefixes, units of time, windows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, cast

from lark import Token, Tree, v_args
from lark.visitors import Transformer_NonRecursive

from squall.errors import Origin, did_you_mean
from squall.lexers.lars.tree import (
    ANONYMOUS,
    Atom,
    Comparison,
    Condition,
    Length,
    Mode,
    Operation,
    Program,
    Rule,
    Window,
)
from squall.lexers.sparql.terms import Names, number, unquoted
from squall.lexers.text import Text
from squall.model import Variable
from squall.rdf import OWL, RDF, RDFS, XSD, Term, iri, iri_text, literal
from squall.rdf.iris import is_absolute

PREFIXES = {"rdf": RDF, "rdfs": RDFS, "owl": OWL, "xsd": XSD, "": "urn:"}
"""The prefixes that need no declaration. Names without a prefix have the empty one."""

_UNITS = {
    **dict.fromkeys(("ms", "msec", "millisecond", "milliseconds"), "ms"),
    **dict.fromkeys(("s", "sec", "second", "seconds"), "s"),
    **dict.fromkeys(("m", "min", "minute", "minutes"), "m"),
    **dict.fromkeys(("h", "hour", "hours"), "h"),
}
MAX_DIGITS = 15
"""The most digits that a number of a window may have."""


def build(parsed: Tree[Token], text: Text, prefixes: Mapping[str, str]) -> Program:
    """Returns the tree. Errors are recorded in the text."""
    return cast("Program", _Builder(text, prefixes).transform(parsed))


@v_args(meta=True)
class _Builder(Transformer_NonRecursive[Token, Any]):
    """Builds the tree from the leaves up, in the order of the text: a prefix is known before it is used."""

    def __init__(self, text: Text, prefixes: Mapping[str, str]) -> None:
        super().__init__()
        self.source = text
        self.names = Names(text, "", {**PREFIXES, **prefixes}, "@prefix {}: <{}>.")
        self.ticks: list[Length] = []
        self.anonymous = 0

    def _origin(self, meta: Any) -> Origin:
        return self.source.origin(getattr(meta, "start_pos", 0), getattr(meta, "end_pos", 1))

    def _token_origin(self, token: Token) -> Origin:
        return self.source.origin(token.start_pos or 0, token.end_pos or 0)

    def program(self, meta: Any, parts: Any) -> Program:
        rules = tuple(part for part in parts if isinstance(part, Rule))
        if len(self.ticks) > 1:
            self.source.fail("the program has two ticks", cast(Origin, self.ticks[1].origin), "leave one of them out")
        if not rules and not self.source.errors:
            self.source.fail("there is no rule in this text", self.source.origin(0, 1), "write `head :- body.`")
        return Program(rules, self.ticks[0] if self.ticks else None)

    def prefix(self, meta: Any, parts: Any) -> None:
        name, namespace = parts
        if not is_absolute(namespace[1:-1]):
            self.source.fail(f"`{namespace}` is not an absolute IRI", self._token_origin(namespace))
        self.names.prefixes[str(name)[:-1]] = str(namespace)[1:-1]

    def tick(self, meta: Any, parts: Any) -> None:
        if parts[0].number < 1:
            self.source.fail("the tick of a program is more than 0", self._origin(meta), "write `@tick 1 sec.`")
        self.ticks.append(replace(parts[0], unit=parts[0].unit or "ms"))

    def rule(self, meta: Any, parts: Any) -> Rule:
        head, *body = parts
        time = body.pop(0) if body and not isinstance(body[0], Condition) else None
        return Rule(head, time, tuple(body), origin=self._origin(meta))

    def condition(self, meta: Any, parts: Any) -> Condition:
        return replace(cast("Condition", parts[-1]), negated=len(parts) > 1, origin=self._origin(meta))

    def group(self, meta: Any, parts: Any) -> Condition:
        return Condition(tuple(parts), grouped=True, origin=self._origin(meta))

    def atom(self, meta: Any, parts: Any) -> Atom:
        name, *arguments = parts
        return Atom(self._name(name), tuple(arguments), origin=self._origin(meta))

    # Windows

    def in_(self, meta: Any, parts: Any) -> Window:
        return self._window(meta, parts[-1], "in")

    def always(self, meta: Any, parts: Any) -> Window:
        return self._window(meta, parts[-1], "always")

    def at(self, meta: Any, parts: Any) -> Window:
        return replace(self._window(meta, parts[-1], "at"), variable=Variable(str(parts[0])))

    def _window(self, meta: Any, window: Window, mode: Mode) -> Window:
        return replace(window, mode=mode, origin=self._origin(meta))

    def frame(self, meta: Any, parts: Any) -> Window:
        return cast("Window", parts[0])

    def count(self, meta: Any, parts: Any) -> Window:
        tuples = self._integer(parts[0])
        if tuples < 1:
            self.source.fail(f"a window of {tuples} tuples has nothing", self._origin(meta), "write `[# 10]`")
        return Window(None, tuples)

    def time(self, meta: Any, parts: Any) -> Window:
        length, *step = parts
        if length.number < 0:
            hint = "a window reaches from now back into the past"
            self.source.fail(f"the window `[{length}]` has a negative length", self._origin(meta), hint)
        if step and step[0].number < 1:
            self.source.fail(f"the step `{step[0]}` is not more than 0", cast(Origin, step[0].origin))
        return Window(length, step=step[0] if step else None)

    def amount(self, meta: Any, parts: Any) -> Length:
        digits, *unit = parts
        if unit and str(unit[0]) not in _UNITS:
            hint = did_you_mean(str(unit[0]), _UNITS) or "units: ms, s or sec, m or min, h; none for ticks"
            self.source.fail(f"`{unit[0]}` is not a unit of time", self._token_origin(unit[0]), hint)
        return Length(self._integer(digits), _UNITS.get(str(unit[0]), "") if unit else "", origin=self._origin(meta))

    def _integer(self, token: Token) -> int:
        if "." in token or len(token) > MAX_DIGITS:
            hint = "write a smaller unit" if "." in token else f"up to {MAX_DIGITS} digits"
            self.source.fail(f"`{token}` is not the size of a window", self._token_origin(token), hint)
            return 1
        return int(token)

    # Values

    def comparison(self, meta: Any, parts: Any) -> Comparison:
        left, sign, right = parts
        return Comparison(str(sign), left, right, origin=self._origin(meta))

    def _operation(self, meta: Any, parts: Any) -> Operation:
        left, sign, right = parts
        return Operation(str(sign), left, right)

    first = factor0 = sum = product = _operation

    def variable(self, meta: Any, parts: Any) -> Variable:
        if parts[0] != ANONYMOUS:
            return Variable(str(parts[0]))
        self.anonymous += 1
        return Variable(f"{ANONYMOUS} {self.anonymous}")

    def constant(self, meta: Any, parts: Any) -> Term:
        return self._name(parts[0])

    def number(self, meta: Any, parts: Any) -> Term:
        return number(str(parts[0]))

    def text(self, meta: Any, parts: Any) -> Term:
        quoted, *datatype = parts
        return literal(unquoted(str(quoted)), iri_text(self._name(datatype[0])) if datatype else None)

    def _name(self, token: Token) -> Term:
        if token.type == "IRIREF" and not is_absolute(token[1:-1]):
            self.source.fail(f"`{token}` is not an absolute IRI", self._token_origin(token))
            return iri(token[1:-1])
        text = f":{token}" if token.type == "NAME" else str(token)
        return self.names.iri(text, self._token_origin(token))

    def windowed(self, meta: Any, parts: Any) -> Condition:
        part, *window = parts
        condition = part if isinstance(part, Condition) else Condition((part,))
        return replace(condition, window=window[0] if window else None)
