"""Proposes a mapping for records by a sample of them.

A subject is what looks like an identity; the time is what looks like one. What is proposed has to be read by a person:
names of classes and properties are made of the names of fields.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from squall.errors import SourceError
from squall.functions.values import is_well_formed
from squall.rdf import ALWAYS, FOREVER, XSD, literal
from squall.rdf.iris import is_absolute
from squall.streams.mappings.evaluation import time_of_value
from squall.streams.mappings.paths import Steps
from squall.streams.mappings.shapes import Sample, Shape

NAMESPACE = "http://example.org/"
_ID = re.compile(r"@?id", re.IGNORECASE)
_IDENTITY = re.compile(r"(?i:@?id|.*[_-]id|uuid|guid|urn|uri|iri)|.*[a-z](Id|ID)")
_NAMING = re.compile(
    r"(.*[_-])?(sensor|device|station|name|code|key|serial|mac|host|user|account|symbol)", re.IGNORECASE
)
_TIME = re.compile(
    r"(?i:@?(.*[_-])?(t|time|timestamp|time_?stamp|ts|date|datetime|at|when|created|updated|observed|received))"
    r"|.*[a-z](Time|Timestamp|Date|At)"
)
_DATE_TIME = re.compile(r"-?[0-9]{4,}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}.*")
_DATATYPES = ("integer", "double", "boolean", "dateTime", "date")
"""The datatypes that texts are tried with, in this order."""
_SECONDS = range(10**8, 10**11)
"""Numbers of time that are seconds: from 1973 to 5138. Larger ones are milliseconds."""
_MAX_UNIT = 1000
_MAX_DEPTH = 20


@dataclass(frozen=True)
class _Variable:
    """A field: its name in the mapping, and its path from the record."""

    name: str
    steps: Steps


@dataclass(frozen=True)
class _Term:
    """A term of a proposed triple.

    Attributes:
        kind: ``value`` (a literal), ``iri`` (the IRI that a field has) or ``template`` (an IRI made of fields).
        variables: The fields.
        text: The text before them in a template.
        datatype: The local name of the datatype of a literal, or ``""``.
    """

    kind: str
    variables: tuple[_Variable, ...]
    text: str = ""
    datatype: str = ""


@dataclass
class Proposal:
    """A proposed mapping.

    Attributes:
        pattern: The pattern: objects by key, arrays of one member, variables; keys with a mark are optional.
        triples: Its triples: subject, local name of the predicate, object.
        time: The field with the time, and whether it is in seconds; None: there is none.
        notes: What a person has to look at.
        is_csv: Whether it is for rows.
    """

    pattern: Any
    triples: list[tuple[_Term, str, _Term]] = field(default_factory=list)
    time: tuple[_Variable, bool] | None = None
    notes: list[str] = field(default_factory=list)
    is_csv: bool = False

    def short_form(self) -> str:
        """Returns the mapping in the short form."""
        lines = [*(f"# {note}" for note in self.notes), f"PREFIX ex: <{NAMESPACE}>"]
        if any(object.datatype for _, _, object in self.triples):
            lines.append(f"PREFIX xsd: <{XSD}>")
        lines += ["", _pattern_text(self.pattern, ""), "=> {"]
        for subject, pairs in self._by_subject():
            objects = [f"ex:{predicate} {_short_term(object)}" for predicate, object in pairs]
            lines.append(f"  {_short_term(subject)} " + " ;\n    ".join(objects) + " .")
        time = "" if self.time is None else f" AT ?{self.time[0].name}{' SECONDS' if self.time[1] else ''}"
        return "\n".join([*lines, f"}}{time}", ""])

    def rml(self) -> str:
        """Returns the mapping in RML. Triples that RML cannot make are left out, with a note.

        Raises:
            SourceError: RML can make none of them.
        """
        triples, notes = [], list(self.notes)
        for triple in self.triples:
            if _is_in_rml(triple):
                triples.append(triple)
            else:
                notes.append(
                    f"left out: the triples with ex:{triple[1]}, since RML does not join a record and its parts"
                )
        if not triples:
            hint = "leave out `--format rml`: the short form can"
            raise SourceError("RML does not join a record and its parts, as all proposed triples do", hint=hint)
        formulation = "CSV" if self.is_csv else "JSONPath"
        maps: dict[tuple[Steps, _Term], list[tuple[str, _Term]]] = {}
        for subject, predicate, object in triples:
            maps.setdefault((_array(subject.variables), subject), []).append((predicate, object))
        texts = []
        for number, ((iterator, subject), pairs) in enumerate(maps.items()):
            source = [f'rml:source "records" ; rml:referenceFormulation ql:{formulation}']
            if iterator:
                source.append(f"rml:iterator {_quoted(_json_path(iterator))}")
            if self.time is not None:
                place = self.time[0].steps[0] if self.is_csv else _json_path(self.time[0].steps)
                source.append(f'squall:time {_quoted(str(place))} ; squall:unit "{"s" if self.time[1] else "ms"}"')
            optional = " ; squall:optional true" if self._is_optional(subject) else ""
            maps_of_pairs = [
                f"    [ rr:predicate ex:{predicate} ; rr:objectMap [ {self._rml_term(object, iterator)} ] ]"
                for predicate, object in pairs
            ]
            source_text = " ;\n    ".join(source)
            texts.append(
                f"<#m{number}> rml:logicalSource [ {source_text} ] ;\n"
                f"  rr:subjectMap [ {self._rml_term(subject, iterator)}{optional} ] ;\n"
                f"  rr:predicateObjectMap\n" + " ,\n".join(maps_of_pairs) + " .\n"
            )
        return "\n".join([*(f"# {note}" for note in dict.fromkeys(notes)), _RML_PREFIXES, *texts])

    def _by_subject(self) -> Iterator[tuple[_Term, list[tuple[str, _Term]]]]:
        subjects: dict[_Term, list[tuple[str, _Term]]] = {}
        for subject, predicate, object in self.triples:
            subjects.setdefault(subject, []).append((predicate, object))
        yield from subjects.items()

    def _is_optional(self, subject: _Term) -> bool:
        return any(_is_marked(self.pattern, variable.steps) for variable in subject.variables)

    def _rml_term(self, term: _Term, iterator: Steps) -> str:
        references = [
            str(variable.steps[0]) if self.is_csv else _json_path(variable.steps[len(iterator) :])
            for variable in term.variables
        ]
        if term.kind == "template":
            braces = "-".join(f"{{{_escaped(reference)}}}" for reference in references)
            return f"rr:template {_quoted(f'{NAMESPACE}{term.text}{braces}')}"
        extra = f" ; rr:datatype <{XSD}{term.datatype}>" if term.datatype else ""
        extra = " ; rr:termType rr:IRI" if term.kind == "iri" else extra
        return f"rml:reference {_quoted(references[0])}{extra}"


_RML_PREFIXES = f"""@prefix rr: <http://www.w3.org/ns/r2rml#> .
@prefix rml: <http://semweb.mmlab.be/ns/rml#> .
@prefix ql: <http://semweb.mmlab.be/ns/ql#> .
@prefix squall: <urn:x-squall:> .
@prefix ex: <{NAMESPACE}> .
"""


class _Optional(str):
    """A key of a pattern that not all objects have."""

    __slots__ = ()


def propose(sample: Sample) -> Proposal:
    """Returns a mapping for records like those of a sample. Raises SourceError if it has no triples for them."""
    proposal = _Proposer(sample).proposal()
    if not proposal.triples:
        hint = "; ".join(proposal.notes) or "a record is an object with fields"
        raise SourceError("no mapping can be proposed: no field is in all records, or they are no objects", hint=hint)
    return proposal


class _Proposer:
    """Makes a proposal."""

    def __init__(self, sample: Sample) -> None:
        self.sample = sample
        self.result = Proposal({}, is_csv=sample.is_csv)
        self.names: set[str] = set()
        self.properties: dict[tuple[Steps, str], str] = {}
        self.times: list[tuple[_Variable, bool]] = []

    def proposal(self) -> Proposal:
        self.result.pattern = self._shape(self.sample.shape, (), None, "")
        if self.times:
            self.result.time = min(self.times, key=lambda pair: len([step for step in pair[0].steps if step is None]))
            time = self.result.time[0]
            self.result.triples = [triple for triple in self.result.triples if triple[2].variables != (time,)]
        else:
            self.result.notes.append("no field looks like a time: add `AT ?field`, or give the source `time=`")
        if self.sample.malformed:
            self.result.notes.append(f"{len(self.sample.malformed)} records of the sample cannot be read")
        return self.result

    def _shape(self, shape: Shape, steps: Steps, parent: _Term | None, predicate: str) -> Any:
        """Returns the pattern of a shape, and adds its triples.

        Args:
            shape: The shape.
            steps: Its path.
            parent: The subject to which its values belong; None: there is none yet.
            predicate: The local name of the property that leads to it.
        """
        if shape.kind == "array" and shape.element is not None:
            return [self._shape(shape.element, (*steps, None), parent, predicate)]
        if shape.kind == "object" and len(steps) < _MAX_DEPTH:
            return self._object(shape, steps, parent, predicate)
        variable = self._variable(predicate or "value", steps)
        if parent is not None:
            self.result.triples.append((parent, predicate, self._object_term(shape, variable)))
        return variable

    def _object(self, shape: Shape, steps: Steps, parent: _Term | None, predicate: str) -> dict[str, Any]:
        variables = {
            key: self._variable(_local_name(key), (*steps, key))
            for key, member in shape.members.items() if member.kind == "scalar"
        }  # fmt: skip
        time = self._time_of(shape, variables)
        subject = self._subject(shape, steps, variables, parent, predicate, time)
        new_subject = None if subject is parent else subject
        if parent is not None and new_subject is not None:
            self.result.triples.append((parent, predicate, new_subject))
        identities = () if new_subject is None else new_subject.variables
        pattern: dict[str, Any] = {}
        for key, member in shape.members.items():
            if not self._is_usable(member, (*steps, key)):
                continue
            name = self._property(key, steps, "" if new_subject else predicate)
            marked_key = key if member.count == shape.count else _Optional(key)
            variable = variables.get(key)
            pattern[marked_key] = self._shape(member, (*steps, key), subject, name) if variable is None else variable
            if variable is not None and subject is not None and variable not in identities:
                self.result.triples.append((subject, name, self._object_term(member, variable)))
        return pattern

    def _is_usable(self, member: Shape, steps: Steps) -> bool:
        """Returns whether a field can be mapped. If it has values that cannot, that is noted."""
        if not member.count or (member.kind == "array" and (member.element is None or not member.element.count)):
            return False
        if member.kind == "mixed" or (member.element is not None and member.element.kind == "mixed"):
            self.result.notes.append(f"left out: the field {_shown(steps)}, which has values of several kinds")
            return False
        return True

    def _subject(
        self,
        shape: Shape,
        steps: Steps,
        variables: dict[str, _Variable],
        parent: _Term | None,
        predicate: str,
        time: tuple[_Variable, bool] | None,
    ) -> _Term | None:
        """Returns the subject of the triples of an object: itself, or its parent if nothing identifies it."""
        text = f"{predicate}-" if predicate else ""
        if (key := _identity(shape, variables)) is not None:
            is_iri = all(isinstance(value, str) and is_absolute(value) for value in shape.members[key].values)
            return _Term("iri", (variables[key],)) if is_iri else _Term("template", (variables[key],), text)
        if steps and steps[-1] is not None:
            return parent
        return self._made_subject(shape, steps, variables, parent, text, time)

    def _made_subject(
        self,
        shape: Shape,
        steps: Steps,
        variables: dict[str, _Variable],
        parent: _Term | None,
        text: str,
        time: tuple[_Variable, bool] | None,
    ) -> _Term | None:
        """Returns a subject that is made of the identity of the parent, and of a field that is always there."""
        required = [variables[key] for key in variables if shape.members[key].count == shape.count]
        parts = [*(() if parent is None else parent.variables), *([time[0]] if time is not None else required[:1])]
        if not parts:
            self.result.notes.append(f"left out: {_shown(steps)}, in which no field is always there")
            return parent
        names = " and ".join(f"`{variable.name}`" for variable in parts)
        self.result.notes.append(f"nothing looks like the identity of {_shown(steps)}: it is made of {names}")
        return _Term("template", tuple(parts), text)

    def _time_of(self, shape: Shape, variables: dict[str, _Variable]) -> tuple[_Variable, bool] | None:
        """Returns the field with the time of an object, and whether it is in seconds."""
        for is_named in (True, False):
            for key, variable in variables.items():
                member = shape.members[key]
                if member.count == shape.count and bool(_TIME.fullmatch(key)) == is_named:
                    unit = _time_unit(member.values, is_named)
                    if unit:
                        time = (variable, unit == 1000)
                        self.times.append(time)
                        return time
        return None

    def _object_term(self, shape: Shape, variable: _Variable) -> _Term:
        texts = [value for value in shape.values if type(value) is str]
        if len(texts) < len(shape.values) or not texts:
            return _Term("value", (variable,))
        if all(re.match("https?://", text) and is_absolute(text) for text in texts):
            return _Term("iri", (variable,))
        names = _DATATYPES if self.sample.is_csv else _DATATYPES[3:]
        datatypes = (name for name in names if all(_is_of(text, name) for text in texts))
        return _Term("value", (variable,), datatype=next(datatypes, ""))

    def _property(self, key: str, steps: Steps, prefix: str) -> str:
        """Returns the local name of the property of a field, which no other field of the object has."""
        base = f"{prefix}_{_local_name(key)}" if prefix else _local_name(key)
        numbers = (f"{base}{number or ''}" for number in range(len(self.properties) + 1))
        name = next(name for name in numbers if self.properties.setdefault((steps, name), key) == key)
        return name

    def _variable(self, name: str, steps: Steps) -> _Variable:
        base = re.sub(r"[^A-Za-z0-9_]+", "_", name)
        base = base if base[0].isalpha() or base[0] == "_" else f"v{base}"
        numbers = (f"{base}{number or ''}" for number in range(len(self.names) + 1))
        free_name = next(candidate for candidate in numbers if candidate not in self.names)
        self.names.add(free_name)
        return _Variable(free_name, steps)


def _identity(shape: Shape, variables: dict[str, _Variable]) -> str | None:
    """Returns the field that identifies an object, by its name."""

    def is_possible(key: str) -> bool:
        member = shape.members[key]
        return member.count == shape.count and set(member.kinds) <= {"text", "integer"} and "" not in member.values

    for pattern in (_ID, _IDENTITY, _NAMING):
        for key in variables:
            if pattern.fullmatch(key) and is_possible(key):
                return key
    return None


def _time_unit(values: Sequence[Any], is_named: bool) -> int:
    """Returns the unit of times in ms; 0: the values are none."""
    if all(type(value) is str and _DATE_TIME.fullmatch(value) for value in values):
        return 1 if all(_is_time(value) for value in values) else 0
    if not is_named or not all(_is_time(value) for value in values):
        return 0
    numbers = [time_of_value(value, 1) for value in values]
    is_text = any(type(value) is str and not value.replace(".", "").isdigit() for value in values)
    return 1000 if not is_text and all(number in _SECONDS for number in numbers) else 1


def _is_time(value: Any) -> bool:
    try:
        time = time_of_value(value, _MAX_UNIT)
    except (SyntaxError, ValueError):
        return False
    return time is not None and ALWAYS < time < FOREVER


def _is_of(text: str, datatype: str) -> bool:
    if datatype == "boolean":
        return text in ("true", "false")
    if datatype in ("integer", "double") and (text != text.strip() or re.match("[+-]?0[0-9]", text)):
        return False
    return is_well_formed(literal(text, f"{XSD}{datatype}")) and text not in ("INF", "-INF", "+INF", "NaN")


# Texts


def _pattern_text(pattern: Any, indent: str) -> str:
    if isinstance(pattern, _Variable):
        return f"?{pattern.name}"
    if isinstance(pattern, list):
        return f"[ {_pattern_text(pattern[0], indent)} ]"
    inner = f"{indent}  "
    members = (
        f"{json.dumps(str(key), ensure_ascii=False)}{'?' if isinstance(key, _Optional) else ''}: "
        f"{_pattern_text(value, inner)}"
        for key, value in pattern.items()
    )
    return "{ " + f",\n{inner}".join(members) + " }"


def _short_term(term: _Term) -> str:
    if term.kind == "iri":
        return f"IRI(?{term.variables[0].name})"
    if term.kind == "template":
        return f"ex:{term.text}" + "-".join(f"{{?{variable.name}}}" for variable in term.variables)
    return f"?{term.variables[0].name}" + (f"^^xsd:{term.datatype}" if term.datatype else "")


def _local_name(key: str) -> str:
    """Returns the local name of a property for a field."""
    name = re.sub(r"\W+", "_", key).strip("_") or "field"
    return name if name[0].isalpha() else f"f{name}"


def _shown(steps: Steps) -> str:
    return f"`{_json_path(steps)}`" if steps else "a record"


def _json_path(steps: Steps) -> str:
    return "$" + "".join(
        "[*]" if step is None
        else f".{step}" if re.fullmatch("[A-Za-z_][A-Za-z0-9_]*", str(step))
        else f"[{json.dumps(str(step), ensure_ascii=False)}]"
        for step in steps
    )  # fmt: skip


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _escaped(reference: str) -> str:
    return re.sub(r"([{}\\])", r"\\\1", reference)


def _array(variables: Sequence[_Variable]) -> Steps:
    """Returns the longest path to the elements of an array in which all variables are."""
    arrays = [_array_of(variable.steps) for variable in variables]
    return max(arrays, key=len, default=())


def _array_of(steps: Steps) -> Steps:
    return steps[: len(steps) - steps[::-1].index(None)] if None in steps else ()


def _is_in_rml(triple: tuple[_Term, str, _Term]) -> bool:
    """Returns whether RML can make a triple: its subject is in one item, its object in that or in an array of it."""
    subject, _, object = triple
    arrays = {_array_of(variable.steps) for variable in subject.variables}
    if len(arrays) != 1:
        return False
    iterator = arrays.pop()
    places = {_array_of(variable.steps) for variable in object.variables}
    return all(place[: len(iterator)] == iterator for place in places) and (
        len(object.variables) == 1 or places == {iterator}
    )


def _is_marked(pattern: Any, steps: Steps) -> bool:
    """Returns whether a path of a pattern goes through an optional key."""
    for step in steps:
        if step is None:
            pattern = pattern[0]
            continue
        key = next(key for key in pattern if key == step)
        if isinstance(key, _Optional):
            return True
        pattern = pattern[key]
    return False


FORMATS: dict[str, Callable[[Proposal], str]] = {"short": Proposal.short_form, "rml": Proposal.rml}
"""The notations of a proposal, by name."""
