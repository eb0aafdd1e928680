"""Mappings and records for laws: patterns with triples, their texts in both notations, and a naive evaluator.

The evaluator does what docs/guides/data-that-are-not-rdf.md says, by all solutions of a pattern, without rules or
levels. It shares no code with `squall.streams.mappings`.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from hypothesis import strategies as st

E = "http://example.org/"
XSD = "http://www.w3.org/2001/XMLSchema#"
KEYS = ("a", "b", "c d")


class Wrong(Exception):
    """A record that cannot be used."""


@dataclass(frozen=True)
class Var:
    """A variable of a pattern."""

    name: str


@dataclass(frozen=True)
class Part:
    """A term of a triple: a constant, a variable, or a template of a variable with a text before it.

    `kind` is ``constant``, ``value``, ``iri`` (a template), ``blank`` (a template), ``text`` (a template),
    ``typed`` (xsd:integer) or ``language``.
    """

    kind: str
    names: tuple[str, ...] = ()
    constant: str = ""


@dataclass(frozen=True)
class Spec:
    """A mapping: a pattern (objects, arrays of one member, variables, constants) and triples."""

    pattern: Any
    optional: frozenset[tuple[str, ...]]
    triples: tuple[tuple[Part, Part, Part], ...]
    time: str = ""
    unit: str = "ms"

    def short_form(self) -> str:
        triples = " . ".join(" ".join(map(short_term, triple)) for triple in self.triples)
        seconds = " SECONDS" if self.unit == "s" else ""
        time = f" AT ?{self.time}{seconds}" if self.time else ""
        return f"PREFIX ex: <{E}>\n{self._pattern(self.pattern, ())} => {{ {triples} }}{time}"

    def _pattern(self, pattern: Any, path: tuple[str, ...]) -> str:
        if isinstance(pattern, Var):
            return f"?{pattern.name}"
        if isinstance(pattern, list):
            return f"[ {self._pattern(pattern[0], (*path, '*'))} ]"
        if isinstance(pattern, dict):
            members = (
                f"{json.dumps(key)}{'?' * ((*path, key) in self.optional)}: {self._pattern(value, (*path, key))}"
                for key, value in pattern.items()
            )
            return f"{{ {', '.join(members)} }}"
        return json.dumps(pattern)


def short_term(part: Part) -> str:
    braces = "-".join(f"{{?{name}}}" for name in part.names)
    match part.kind:
        case "constant":
            return f"ex:{part.constant}"
        case "value":
            return f"?{part.names[0]}"
        case "typed":
            return f"?{part.names[0]}^^<{XSD}integer>"
        case "language":
            return f"?{part.names[0]}@en"
        case "iri":
            return f"ex:{part.constant}{braces}"
        case "blank":
            return f"_:{part.constant}{braces}"
    return f'"{part.constant}{braces}"'


def variables(pattern: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yields the variables of a pattern with their paths, in which ``*`` is an element of an array."""
    if isinstance(pattern, Var):
        yield pattern.name, path
    elif isinstance(pattern, dict):
        for key, value in pattern.items():
            yield from variables(value, (*path, key))
    elif isinstance(pattern, list):
        yield from variables(pattern[0], (*path, "*"))


def solutions(pattern: Any, value: Any, names: frozenset[str], where: tuple[str, ...] = ()) -> Iterator[dict[str, Any]]:
    """Yields the bindings of some variables that a pattern has in a value. Arrays without them do not count.

    Raises:
        Wrong: A value has a wrong type.
    """
    if isinstance(pattern, Var):
        if pattern.name in names:
            yield {pattern.name: value}
        else:
            yield {}
    elif isinstance(pattern, dict):
        members = [(key, part) for key, part in pattern.items() if matters(part, names)]
        if value is not None and not isinstance(value, dict) and members:
            raise Wrong(f"no object at {where}")
        member_solutions = [
            list(solutions(part, None if value is None else value.get(key), names, (*where, key)))
            for key, part in members
        ]
        for combination in itertools.product(*member_solutions):
            yield {name: bound for bindings in combination for name, bound in bindings.items()}
    elif isinstance(pattern, list):
        if value is not None and not isinstance(value, list):
            raise Wrong(f"no array at {where}")
        for item in value or []:
            yield from solutions(pattern[0], item, names, (*where, "*"))
    elif type(value) is type(pattern) and value == pattern:
        yield {}


def matters(pattern: Any, names: frozenset[str]) -> bool:
    """Returns whether a part of a pattern has some of the variables, or a condition outside of arrays."""
    if isinstance(pattern, dict):
        return any(matters(value, names) for value in pattern.values())
    if isinstance(pattern, list):
        return any(name in names for name, _ in variables(pattern))
    return not isinstance(pattern, Var) or pattern.name in names


def text(value: Any) -> str:
    if isinstance(value, dict | list):
        raise Wrong("it has no text")
    return value if isinstance(value, str) else json.dumps(value)


def safe(value: str) -> str:
    return "".join(quote(character, safe="-._~") if character.isascii() else character for character in value)


def quoted(value: str) -> str:
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


def term(part: Part, bindings: dict[str, Any]) -> str | None:
    """Returns the term of a part, None if a variable has no value. Raises Wrong."""
    values = [bindings[name] for name in part.names]
    if None in values:
        return None
    match part.kind:
        case "constant":
            return f"<{E}{part.constant}>"
        case "iri":
            return f"<{E}{part.constant}{'-'.join(safe(text(value)) for value in values)}>"
        case "blank":
            label = part.constant + "-".join(map(text, values))
            return "_:b" + "".join(
                letter if letter.isascii() and letter.isalnum() else "".join(f"_{byte:02x}" for byte in letter.encode())
                for letter in label
            )
        case "text":
            return quoted(part.constant + "-".join(map(text, values)))
        case "language":
            return quoted(text(values[0])) + "@en"
        case "typed":
            lexical = text(values[0])
            try:
                int(lexical)
            except ValueError:
                raise Wrong("no integer") from None
            if lexical != lexical.strip() or "_" in lexical or not lexical.isascii():
                raise Wrong("no integer")
            return f'"{lexical}"^^<{XSD}integer>'
    (value,) = values
    if isinstance(value, str):
        return quoted(value)
    kind = "boolean" if isinstance(value, bool) else "integer" if isinstance(value, int) else "double"
    return f'"{text(value)}"^^<{XSD}{kind}>'


def moment(value: Any, unit: str) -> int:
    """Returns the time of a value: a number of the unit, or a text of digits. Raises Wrong."""
    if value == "12":
        value = 12
    if isinstance(value, bool) or not isinstance(value, int | float) or value > 10**15:
        raise Wrong("no time")
    return int(value * (1000 if unit == "s" else 1) // 1)


def naive(spec: Spec, record: Any) -> tuple[set[tuple[int | None, tuple[str, str, str]]], bool, bool]:
    """Returns the triples of a record with their times; whether it certainly cannot be used; and whether it may be so.

    It certainly cannot be used if a solution of all variables of a triple is unusable; it may be so if one of the
    variables of a single term is.
    """
    statements: set[tuple[int | None, tuple[str, str, str]]] = set()
    is_wrong = may_be_wrong = False
    optional = {
        name for name, path in variables(spec.pattern) if any(path[: len(marked)] == marked for marked in spec.optional)
    }
    for triple in spec.triples:
        times = (spec.time,) if spec.time else ()
        groups = [(*part.names,) for part in triple] + [times]
        for group in groups:
            parts = [part for part in triple if part.names == group]
            is_time = bool(times) and group == times
            may_be_wrong |= _is_unusable(spec, record, frozenset(group), parts, triple[0], optional, is_time)
        names = frozenset(itertools.chain.from_iterable(groups))
        try:
            rows = list(solutions(spec.pattern, record, names))
        except Wrong:
            may_be_wrong = True
            continue
        for bindings in rows:
            try:
                time = moment(bindings[spec.time], spec.unit) if spec.time else None
                subject, predicate, object = (term(part, bindings) for part in triple)
            except Wrong:
                is_wrong = True
                continue
            if subject is None and not optional.intersection(triple[0].names):
                is_wrong = True
            elif subject is not None and predicate is not None and object is not None:
                statements.add((time, (subject, predicate, object)))
    return statements, is_wrong, may_be_wrong or is_wrong


def _is_unusable(
    spec: Spec,
    record: Any,
    names: frozenset[str],
    parts: Sequence[Part],
    subject: Part,
    optional: set[str],
    is_time: bool,
) -> bool:
    try:
        for bindings in solutions(spec.pattern, record, names):
            if is_time:
                moment(bindings[spec.time], spec.unit)
            for part in parts:
                if term(part, bindings) is None and part is subject and not optional.intersection(part.names):
                    return True
    except Wrong:
        return True
    return False


# Drawing


@st.composite
def patterns(draw: st.DrawFn, conditions: bool = True) -> Any:
    """Draws a pattern with variables ``v0``, ``v1`` and so on."""
    numbers = itertools.count()

    def node(depth: int) -> Any:
        kinds = ["var", "var", "object", "array", *(["constant"] if conditions else [])]
        match draw(st.sampled_from(kinds if depth else ["object", "object", "object", "array"])):
            case "object" if depth < 3:
                keys = draw(st.lists(st.sampled_from(KEYS), min_size=1, max_size=3, unique=True))
                return {key: node(depth + 1) for key in keys}
            case "array" if depth < 3:
                return [node(depth + 1)]
            case "constant":
                return draw(st.sampled_from(["x", 1, True]))
        return Var(f"v{next(numbers)}")

    pattern = node(0)
    return pattern if any(variables(pattern)) else {"a": Var("v0")}


@st.composite
def specs(draw: st.DrawFn) -> Spec:
    """Draws a mapping."""
    pattern = draw(patterns())
    paths = dict(variables(pattern))
    names = sorted(paths)
    prefixes = sorted({path[:end] for path in paths.values() for end in range(1, len(path) + 1)})
    markable = [path for path in prefixes if path[-1] != "*"]
    optional = draw(st.frozensets(st.sampled_from(markable), max_size=2)) if markable else frozenset()

    def part(kinds: Sequence[str]) -> Part:
        kind = draw(st.sampled_from(kinds))
        if kind == "constant":
            return Part(kind, (), draw(st.sampled_from(["p", "q"])))
        most = 1 if kind in ("value", "typed", "language") else 2
        chosen = tuple(draw(st.lists(st.sampled_from(names), min_size=1, max_size=most)))
        return Part(kind, chosen, draw(st.sampled_from(["", "x"])) if kind in ("text", "iri", "blank") else "")

    triples = tuple(
        (
            part(["iri", "iri", "blank", "constant"]),
            part(["constant", "constant", "iri"]),
            part(["constant", "value", "value", "typed", "language", "iri", "text", "blank"]),
        )
        for _ in range(draw(st.integers(1, 4)))
    )
    time = draw(st.sampled_from(["", *names]))
    return Spec(pattern, optional, triples, time, draw(st.sampled_from(["ms", "s"])))


LEAVES = st.one_of(
    st.sampled_from(["x", "é b", 'q"\\', "", "12", "a/b?c#", "\U0001f600\n"]),
    st.sampled_from([1, 0, -5, 12345678901234567890, 2.5, 1000]),
    st.sampled_from([True, False, None]),
)


def records(pattern: Any) -> st.SearchStrategy[Any]:
    """Draws records that mostly have the form of a pattern."""
    if isinstance(pattern, Var):
        return st.one_of(LEAVES, LEAVES, LEAVES, st.integers(0, 10**13), st.just([1]))
    if isinstance(pattern, dict):
        members = {key: records(value) for key, value in pattern.items()}
        return st.one_of(
            st.fixed_dictionaries(members), st.fixed_dictionaries({}, optional=members), st.fixed_dictionaries(members)
        ) | st.sampled_from([None, "x", 3])
    if isinstance(pattern, list):
        return st.lists(records(pattern[0]), max_size=3) | st.none() | st.just("x")
    return st.sampled_from([pattern, pattern, pattern, "other", None])
