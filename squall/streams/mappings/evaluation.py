"""Applies a mapping to records: from a JSON value, or the fields of a row, to triples with their times.

The rules of a mapping become one tree of loops: rules with the same levels share them, and a term that several rules
have is made once for each item.

Sources: RML (https://w3id.org/rml/core/spec) and R2RML (W3C 2012): sections 7.3 (IRI-safe values), 10.2 (natural
mapping) and 11 (generated triples).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from decimal import ROUND_FLOOR, Decimal
from functools import lru_cache
from math import isinf
from typing import Any, Protocol

from squall.functions.values import double, is_well_formed
from squall.rdf import ALWAYS, FOREVER, XSD, Fact, Quad, Term, Triple, literal
from squall.rdf.iris import is_absolute
from squall.streams.formats.timestamps import time_of
from squall.streams.mappings.model import (
    Condition,
    Constant,
    Mapping,
    Path,
    Reference,
    Rule,
    Template,
    TermMap,
    TimeMap,
    Value,
    path_text,
    references_of,
)

Items = list[Any]
"""The current item of each level; the first is the record."""
Statements = list[tuple[int | None, Triple | Quad]]
"""The statements of a record with their times (integer ms); None: that of the source."""
Facts = Sequence[tuple[int | None, Fact | Quad]]
"""The facts of a record, likewise."""
Make = Callable[[Items], Term | None]
"""Makes a term of the current items; None: a reference has no value."""

INTEGER, DECIMAL, DOUBLE, BOOLEAN = (f"{XSD}{name}" for name in ("integer", "decimal", "double", "boolean"))
_CACHED_MAPPINGS = 64
_CACHED_NUMBERS = 65536
_MAX_EXPONENT = 40
"""The largest decimal exponent of a number that may be a time."""


class Number(str):
    """A number of JSON with a fraction or an exponent, as it is written."""

    __slots__ = ()


class TypedText(str):
    """The text of a value that has a datatype of its own, such as a date in a column of a DataFrame."""

    __slots__ = ("datatype",)
    datatype: str

    def __new__(cls, text: str, datatype: str) -> TypedText:
        value = super().__new__(cls, text)
        value.datatype = datatype
        return value


class UnusableRecord(Exception):
    """A record that a mapping cannot be applied to. The argument is the reason."""


@dataclass
class _Node:
    """A loop, and what is made for each of its items.

    Attributes:
        parent: The number of the level whose items have the array.
        depth: The number of its own level.
        path: The path from an item of the parent to the array; None: the node is the record.
        conditions: What an item has to fulfil.
        terms: The terms, with the numbers under which the statements use them.
        times: The times, likewise.
        statements: The numbers of the subject, predicate, object, graph and time of each statement.
        nodes: The loops inside of it.
    """

    parent: int
    depth: int
    path: Path | None
    conditions: tuple[Condition, ...] = ()
    terms: list[tuple[int, Make]] = field(default_factory=list)
    times: list[tuple[int, Callable[[Items], int]]] = field(default_factory=list)
    statements: list[tuple[int, int, int, int, int]] = field(default_factory=list)
    nodes: list[_Node] = field(default_factory=list)


class Evaluator:
    """A mapping, ready to be applied to many records. It keeps nothing of them."""

    def __init__(self, mapping: Mapping) -> None:
        self._constants: list[Any] = [None]  # the default graph, and the time of the source
        self._numbers: dict[Any, int] = {}
        self._roots: list[_Node] = []
        self._depth = 1 + max((len(rule.levels) for rule in mapping.rules), default=0)
        self._has_own_times = len({rule.time for rule in mapping.rules}) > 1 or any(
            rule.time is not None and rule.time.reference.level for rule in mapping.rules
        )
        self._has_blanks = any(
            isinstance(term, Template) and term.kind == "blank" for rule in mapping.rules for term in rule.terms
        )
        for rule in mapping.rules:
            self._add(rule)

    def statements(self, record: Any, own: str = "") -> Statements:
        """Returns the statements of a record, each once, in the order of their times.

        Args:
            record: A value of JSON whose numbers with a fraction are `Number`, or the fields of a row by column.
            own: The suffix of the labels of blank nodes (`squall.streams.formats.suffix`).

        Raises:
            UnusableRecord: A value has a wrong type, or there is no subject or no time.
        """
        statements: Statements = []
        slots = self._constants.copy()
        items: Items = [record] + [None] * (self._depth - 1)
        for node in self._roots:
            if not node.conditions or all(_holds(condition, items) for condition in node.conditions):
                _run(node, items, slots, statements)
        if len(statements) > 1:
            statements = list(dict.fromkeys(statements))
            if self._has_own_times:
                statements.sort(key=_time_of_pair)
        return _with_suffix(statements, own) if self._has_blanks and own else statements

    def _add(self, rule: Rule) -> None:
        path = [self._root(_conditions_at(rule, 0))]
        for number, level in enumerate(rule.levels, 1):
            path.append(_child(path[-1], level.parent, number, level.path, _conditions_at(rule, number)))
        graph = 0 if rule.graph is None else self._term(rule.graph, path)
        time = 0 if rule.time is None else self._time(rule.time, path)
        subject = self._term(rule.subject, path, is_required=not rule.is_optional)
        predicate, object = self._term(rule.predicate, path), self._term(rule.object, path)
        path[-1].statements.append((subject, predicate, object, graph, time))

    def _root(self, conditions: tuple[Condition, ...]) -> _Node:
        for node in self._roots:
            if node.conditions == conditions:
                return node
        self._roots.append(_Node(0, 0, None, conditions))
        return self._roots[-1]

    def _term(self, term: TermMap, path: Sequence[_Node], is_required: bool = False) -> int:
        node = path[max((reference.level for reference in references_of(term)), default=0)]
        key = term if isinstance(term, Constant) else (id(node), term, is_required)
        if key not in self._numbers:
            number = self._numbers[key] = len(self._constants)
            if isinstance(term, Constant):
                self._constants.append(term.term)
            else:
                self._constants.append(None)
                make = _maker(term)
                node.terms.append((number, _required(make, term) if is_required else make))
        return self._numbers[key]

    def _time(self, time: TimeMap, path: Sequence[_Node]) -> int:
        node = path[time.reference.level]
        key = (id(node), time)
        if key not in self._numbers:
            number = self._numbers[key] = len(self._constants)
            self._constants.append(None)
            node.times.append((number, _time_maker(time)))
        return self._numbers[key]


class RecordEvaluator(Protocol):
    """What makes statements of records."""

    def statements(self, record: Any, own: str = "") -> Facts:
        """Returns the statements of a record, as `Evaluator` does, or its facts."""


@lru_cache(_CACHED_MAPPINGS)
def evaluator_of(mapping: Mapping) -> Evaluator:
    """Returns the evaluator of a mapping."""
    return Evaluator(mapping)


def _conditions_at(rule: Rule, level: int) -> tuple[Condition, ...]:
    return tuple(condition for condition in rule.conditions if condition.reference.level == level)


def _child(node: _Node, parent: int, depth: int, path: Path, conditions: tuple[Condition, ...]) -> _Node:
    for child in node.nodes:
        if (child.parent, child.path, child.conditions) == (parent, path, conditions):
            return child
    node.nodes.append(_Node(parent, depth, path, conditions))
    return node.nodes[-1]


def _run(node: _Node, items: Items, slots: list[Any], statements: Statements) -> None:
    """Adds the statements of the current items of a node and of the loops inside of it."""
    for number, time in node.times:
        slots[number] = time(items)
    for number, make in node.terms:
        slots[number] = make(items)
    for subject_number, predicate_number, object_number, graph, time_number in node.statements:
        subject, predicate, object = slots[subject_number], slots[predicate_number], slots[object_number]
        if subject is None or predicate is None or object is None:
            continue
        if not graph:
            statements.append((slots[time_number], _new_triple(Triple, (subject, predicate, object))))
        elif (name := slots[graph]) is not None:
            statements.append((slots[time_number], Quad(subject, predicate, object, name)))
    for child in node.nodes:
        for item in _elements(child, items):
            items[child.depth] = item
            if not child.conditions or all(_holds(condition, items) for condition in child.conditions):
                _run(child, items, slots, statements)


_new_triple: Callable[..., Triple] = tuple.__new__  # faster than the constructor


def _time_of_pair(pair: tuple[int | None, Triple | Quad]) -> int:
    return ALWAYS if pair[0] is None else pair[0]


def _elements(node: _Node, items: Items) -> Sequence[Any]:
    path = node.path or ()
    array = _value(items, node.parent, path)
    if array is None:
        return ()
    if type(array) is not list:
        raise UnusableRecord(f"{_named(path)} is {_kind(array)}, and no array")
    return array


def _value(items: Items, level: int, path: Path) -> Any:
    """Returns the value at a path, None if there is none. Raises UnusableRecord if a value on the way has no places."""
    value = items[level]
    for number, step in enumerate(path):
        if value is None:
            return None
        if isinstance(step, str):
            if type(value) is not dict:
                raise UnusableRecord(f"{_named(path[:number])} is {_kind(value)}, and no object")
            value = value.get(step)
        else:
            if type(value) is not list:
                raise UnusableRecord(f"{_named(path[:number])} is {_kind(value)}, and no array")
            value = value[step] if step < len(value) else None
    return value


def _getter(reference: Reference) -> Callable[[Items], Any]:
    """Returns the function from items to the value of a reference."""
    level, path = reference
    if len(path) != 1 or not isinstance(path[0], str):
        return lambda items: _value(items, level, path)
    key = path[0]

    def get(items: Items) -> Any:
        item = items[level]
        return item.get(key) if type(item) is dict else _value(items, level, path)

    return get


def _named(path: Path) -> str:
    return f"the field `{path_text(path)}`" if path else "the record, or the element of an array,"


_KINDS = {dict: "an object", list: "an array", str: "a text", bool: "a truth value", int: "a number",
          Number: "a number", TypedText: "a text", type(None): "null"}  # fmt: skip


def _kind(value: Any) -> str:
    return _KINDS[type(value)]


def text_of(value: Any, path: Path) -> str:
    """Returns the text of a value that is no array, object or null. Raises UnusableRecord for these."""
    kind = type(value)
    if kind is str or kind is Number or kind is TypedText:
        return str(value)
    if kind is bool:
        return "true" if value else "false"
    if kind is int:
        return str(value)
    hint = f": write `{path_text(path)}[*]` for its elements" if kind is list and path else ""
    raise UnusableRecord(f"{_named(path)} is {_kind(value)}, and has no text{hint}")


# Terms


def term_function(term: Value | Template) -> Callable[..., Term]:
    """Returns the function from the values of the references of a term, in their order, to the term.

    It raises UnusableRecord.
    """
    if isinstance(term, Template):
        return _template_function(term)
    path = term.reference.path
    if term.is_iri:
        return lambda value: _iri(text_of(value, path), path)
    if term.language or term.datatype:
        return _literal_function(term.datatype, term.language, path)

    def natural(value: Any) -> Term:
        kind = type(value)
        if kind is str:
            return literal(value)
        if kind is int:
            return Term(f'"{value}"^^<{INTEGER}>')
        if kind is Number:
            return _double(value)
        if kind is TypedText:
            return literal(value, value.datatype)
        return literal(text_of(value, path), BOOLEAN)

    return natural


def _maker(term: Value | Template) -> Make:
    """Returns what makes a term of the current items."""
    make, getters = term_function(term), [_getter(reference) for reference in references_of(term)]
    if len(getters) == 1:
        (get,) = getters

        def make_of_value(items: Items) -> Term | None:
            value = get(items)
            return None if value is None else make(value)

        return make_of_value

    def make_of_values(items: Items) -> Term | None:
        values = [get(items) for get in getters]
        return None if None in values else make(*values)

    return make_of_values


def _required(make: Make, term: TermMap) -> Make:
    """Returns what makes a term, and refuses a record without it."""

    def make_required(items: Items) -> Term:
        made_term = make(items)
        if made_term is None:
            missing = (reference for reference in references_of(term) if _getter(reference)(items) is None)
            raise UnusableRecord(missing_subject(next(missing).path))
        return made_term

    return make_required


def missing_subject(path: Path) -> str:
    """Returns why a record without a value at a path cannot be used."""
    return f"{_named(path)} is missing, which the subject needs"


def _template_function(term: Template) -> Callable[..., Term]:
    safe: Callable[[str], str] = iri_safe if term.kind == "iri" else str
    paths = [reference.path for reference in references_of(term)]
    finish: Callable[[str], Term]
    if term.kind == "iri":
        texts = [part for part in term.parts[1:] if isinstance(part, str)]
        is_sure = isinstance(term.parts[0], str) and is_absolute(term.parts[0]) and all(map(is_part_of_iri, texts))
        finish = (lambda text: Term(f"<{text}>")) if is_sure else (lambda text: _iri(text, paths[0]))
    elif term.kind == "blank":
        finish = _blank
    else:
        finish = _literal_function(term.datatype or f"{XSD}string", term.language, paths[0])
    if len(term.parts) == 2 and isinstance(term.parts[0], str):
        before, path = term.parts[0], paths[0]
        return lambda value: finish(before + safe(text_of(value, path)))
    form = "".join(part.replace("%", "%%") if isinstance(part, str) else "%s" for part in term.parts)

    def make(*values: Any) -> Term:
        return finish(form % tuple(safe(text_of(value, path)) for value, path in zip(values, paths, strict=True)))

    return make


_UNSAFE = re.compile(
    "[^A-Za-z0-9._~\u00a0-\ud7ff\uf900-\ufdcf\ufdf0-\uffef\U00010000-\U0001fffd\U00020000-\U0002fffd"
    "\U00030000-\U0003fffd\U00040000-\U0004fffd\U00050000-\U0005fffd\U00060000-\U0006fffd\U00070000-\U0007fffd"
    "\U00080000-\U0008fffd\U00090000-\U0009fffd\U000a0000-\U000afffd\U000b0000-\U000bfffd\U000c0000-\U000cfffd"
    "\U000d0000-\U000dfffd\U000e1000-\U000efffd-]"
)
"""What is not in `iunreserved` (RFC 3987, section 2.2)."""


def iri_safe(text: str) -> str:
    """Returns a text percent-encoded for an IRI (R2RML 7.3; RFC 3986, section 2.1)."""
    return text if text.isalnum() and text.isascii() else _UNSAFE.sub(_percent, text)


def is_part_of_iri(text: str) -> bool:
    """Returns whether a text has only characters that an IRI may have (RDF 1.1 N-Triples, IRIREF)."""
    return is_absolute(f"x:{text}")


def _percent(match: re.Match[str]) -> str:
    return "".join(f"%{byte:02X}" for byte in match[0].encode())


_UNSAFE_IN_LABELS = re.compile("[^A-Za-z0-9]")


def _blank(text: str) -> Term:
    """Returns the blank node of a text; different texts have different ones."""
    label = _UNSAFE_IN_LABELS.sub(lambda match: "".join(f"_{byte:02x}" for byte in match[0].encode()), text)
    return Term(f"_:b{label}")


def _iri(text: str, path: Path) -> Term:
    if not is_absolute(text):
        raise UnusableRecord(f"{_named(path)}: `{text}` is no absolute IRI")
    return Term(f"<{text}>")


@lru_cache(_CACHED_NUMBERS)
def _double(text: Number) -> Term:
    """Returns the literal of a number as squall writes doubles, so that it equals what arithmetic gives."""
    value = float(text)
    if isinf(value):
        raise UnusableRecord(f"the number `{text}` is too large for xsd:double")
    return double(value)


def _literal_function(datatype: str, language: str, path: Path) -> Callable[[Any], Term]:
    """Returns the function from a value to a literal of a datatype, or with a language."""
    if language:
        return lambda value: literal(text_of(value, path), language=language)
    if datatype == f"{XSD}string":
        return lambda value: literal(text_of(value, path))

    def make(value: Any) -> Term:
        if type(value) is Number:
            if datatype == DOUBLE:
                return _double(value)
            value = _plain_decimal(value) if datatype == DECIMAL else value
        made_literal = literal(text_of(value, path), datatype)
        if not is_well_formed(made_literal):
            name = datatype.removeprefix(XSD)
            raise UnusableRecord(f"{_named(path)}: `{text_of(value, path)}` is no xsd:{name}")
        return made_literal

    return make


def _plain_decimal(value: Number) -> str:
    """Returns a number without an exponent, unless that would be too long."""
    number = Decimal(value)
    is_plain = "e" not in value and "E" not in value
    return str(value) if is_plain or abs(number.adjusted()) > _MAX_EXPONENT else format(number, "f")


# Times and conditions

_DECIMAL = re.compile(r"-?[0-9]+(?:\.[0-9]+)?")


def _time_maker(time: TimeMap) -> Callable[[Items], int]:
    get, of_value = _getter(time.reference), time_function(time)
    return lambda items: of_value(get(items))


def time_function(time: TimeMap) -> Callable[[Any], int]:
    """Returns the function from a value to the time (integer ms). It raises UnusableRecord."""
    path, unit = time.reference.path, time.unit_ms

    def make(value: Any) -> int:
        if value is None:
            raise UnusableRecord(f"{_named(path)} is missing, which has the time")
        try:
            time_ms = time_of_value(value, unit)
        except (SyntaxError, ValueError, ArithmeticError):
            time_ms = None
        if time_ms is None or not ALWAYS < time_ms < FOREVER:
            shown = value if isinstance(value, str) else json.dumps(value)
            raise UnusableRecord(f"{_named(path)}: `{shown}` is no time")
        return time_ms

    return make


def time_of_value(value: Any, unit_ms: int) -> int | None:
    """Returns the time (integer ms) of a number of some unit, or of a text in ISO 8601; None if it is none.

    A text that is a decimal number is a number. Fractions of milliseconds are left out.
    """
    if type(value) is TypedText:
        value = str(value)
    kind = type(value)
    if kind is int:
        return int(value) * unit_ms
    if kind is str and value.isdecimal() and value.isascii() and len(value) <= _MAX_EXPONENT:
        return int(value) * unit_ms
    if kind is Number or (kind is str and _DECIMAL.fullmatch(value)):
        number = Decimal(value)
        if abs(number.adjusted()) > _MAX_EXPONENT:
            return None
        return int((number * unit_ms).to_integral_value(ROUND_FLOOR))
    return time_of(value.strip()) if kind is str and value.strip() else None


def _holds(condition: Condition, items: Items) -> bool:
    return fulfils(_value(items, *condition.reference), condition.json)


def fulfils(value: Any, expected: str) -> bool:
    """Returns whether a value is the one of a condition."""
    if type(value) is Number or type(value) is int or (type(value) is TypedText and value.datatype == DECIMAL):
        return expected[:1] in "-0123456789" and Decimal(value) == Decimal(expected)
    return not isinstance(value, dict | list) and json.dumps(value) == expected


def _with_suffix(statements: Statements, own: str) -> Statements:
    """Returns statements in which the labels of blank nodes end in a suffix."""

    def renamed(term: Term) -> Term:
        return Term(term + own) if term[0] == "_" else term

    return [(time, type(statement)(*map(renamed, statement))) for time, statement in statements]
