"""Mappings of records: the two notations, and what a mapping makes of a record."""

from __future__ import annotations

import json
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from squall.errors import SquallError, single_errors
from squall.rdf import Columns
from squall.streams.formats.records import RecordDecoder
from squall.streams.mappings import rml, short_form
from squall.streams.mappings.by_column import column_evaluator
from squall.streams.mappings.evaluation import Evaluator, Number, Statements, UnusableRecord
from squall.streams.mappings.item_columns import JsonTable
from squall.streams.mappings.model import Mapping, Records
from squall.streams.mappings.paths import steps_of
from tests import mapping_strategies as naive
from tests.mapping_strategies import E, Spec, Var, specs


def short(text: str) -> Mapping:
    return short_form.read(f"PREFIX ex: <{E}>\n{text}", "m.map")


def mapped(mapping: Mapping, record: Any) -> Statements:
    value = json.loads(json.dumps(record), parse_float=Number)
    return Evaluator(mapping).statements(value)


@given(st.data())
def test_a_record_makes_what_the_solutions_of_the_pattern_make(data: st.DataObject) -> None:
    spec = data.draw(specs())
    mapping = short_form.read(spec.short_form(), "m.map")
    for record in data.draw(st.lists(naive.records(spec.pattern), min_size=1, max_size=4)):
        expected, is_wrong, may_be_wrong = naive.naive(spec, record)
        try:
            statements = mapped(mapping, record)
        except UnusableRecord:
            assert may_be_wrong
            continue
        assert not is_wrong
        assert {(time, tuple(statement)) for time, statement in statements} == expected
        assert len(statements) == len(expected)
        assert [time for time, _ in statements] == sorted(time for time, _ in statements if time is not None) or (
            not spec.time
        )


@st.composite
def flat_specs(draw: st.DrawFn) -> Spec:
    """Draws a mapping of flat records, mostly with a predicate for each triple, so that it is applied by column."""
    spec = draw(specs())
    numbers = draw(st.sampled_from([[0, 1, 2, 3], [0, 1, 2, 3], [0, 0, 0, 1]]))
    triples = tuple(
        (triple[0], naive.Part("constant", (), f"p{number}"), triple[2])
        for number, triple in zip(numbers, spec.triples, strict=False)
    )
    names = sorted({name for triple in triples for part in triple for name in part.names} | {spec.time or "v0"})
    return Spec({name: Var(name) for name in names}, frozenset(), triples, spec.time, spec.unit)


COLUMNS = (st.integers(0, 5), st.sampled_from(["x", "y/z"]), st.sampled_from([1, True, "1", 2.5, "2.5", False, 0]))
"""The values of columns: of one type, or such as are equal in Python without being so in JSON."""


@given(st.data())
def test_by_column_and_record_by_record_is_the_same(data: st.DataObject) -> None:
    spec = data.draw(flat_specs())
    mapping = short_form.read(spec.short_form(), "m.map")
    if len({triple[1] for triple in spec.triples}) == len(spec.triples):
        assert column_evaluator(mapping) is not None
    columns = {name: data.draw(st.sampled_from(COLUMNS)) for name in spec.pattern}
    if spec.time:
        columns[spec.time] = st.integers(0, 9)
    record = st.fixed_dictionaries(columns)
    if data.draw(st.booleans()):
        record = record | st.fixed_dictionaries({}, optional=columns)
    values = data.draw(st.lists(record, min_size=1, max_size=6))
    if data.draw(st.booleans()) and spec.time:
        values.sort(key=lambda value: cast(int, value.get(spec.time, 0)))
    decoder = RecordDecoder(Records(mapping), "", 7, ".s")
    events, bad = decoder.lines("\n".join(map(json.dumps, values)).encode())
    results = [naive.naive(spec, value) for value in values]
    expected = [
        (7 if time is None else time, *_suffixed(triple))
        for statements, is_wrong, _ in results if not is_wrong for time, triple in statements
    ]  # fmt: skip
    assert len(bad) == sum(is_wrong for _, is_wrong, _ in results)
    assert sorted((event.time, *map(str, fact)) for event in events for fact in event.facts) == sorted(expected)
    assert decoder.count == len(expected)
    if isinstance(events, Columns):
        assert events.times == sorted(set(events.times))
        assert sum(events.sizes) == len(events.subjects)


def same_by_column(mapping: Mapping, values: list[Any]) -> bool:
    """Returns whether values can be mapped by column. Then the statements have to be the same, in the same order."""
    by_column = column_evaluator(mapping)
    columns = None if by_column is None else by_column.columns(JsonTable(values), "", 7, ".s")
    if columns is None:
        return False
    statements = [pair for value in values for pair in Evaluator(mapping).statements(value, ".s")]
    times = [7 if time is None else time for time, _ in statements]
    assert [time for time, size in zip(columns.times, columns.sizes, strict=True) for _ in range(size)] == times
    triples = list(zip(columns.subjects, columns.predicates, columns.objects, strict=True))
    assert triples == [tuple(fact) for _, fact in statements]
    assert columns.times == sorted(set(columns.times))
    assert 0 not in columns.sizes
    return True


def _regular(pattern: Any) -> st.SearchStrategy[Any]:
    """Draws records that have the form of a pattern, with fields of one type, some of which are missing."""
    if isinstance(pattern, Var):
        return st.integers(0, 3)
    if isinstance(pattern, dict):
        members = {key: _regular(value) for key, value in pattern.items()}
        return st.fixed_dictionaries(members) | st.fixed_dictionaries({}, optional=members)
    if isinstance(pattern, list):
        return st.lists(_regular(pattern[0]), max_size=3) | st.none()
    return st.just(pattern) | st.sampled_from(["other", None])


@given(st.data())
def test_arrays_and_conditions_by_column_and_record_by_record_are_the_same(data: st.DataObject) -> None:
    spec = data.draw(specs())
    mapping = short_form.read(spec.short_form(), "m.map")
    record = data.draw(st.sampled_from([_regular, _regular, naive.records]))(spec.pattern)
    values = json.loads(json.dumps(data.draw(st.lists(record, max_size=5))), parse_float=Number)
    same_by_column(mapping, values)


ARRAYS = {
    "an element": '{ "t": ?t, "of": [ { "k": ?k, "n": ?n } ] } => { ex:{?k} a ex:T ; ex:n ?n } AT ?t',
    "both": '{ "t": ?t, "id": ?i, "of": [ { "k": ?k } ] } => { ex:{?i} a ex:S ; ex:of ex:{?k} . ex:{?k} a ex:T } AT ?t',
    "times of elements": '{ "id": ?i, "of": [ { "k": ?k, "t": ?t } ] } => { ex:{?i} ex:k ?k } AT ?t',
    "two arrays": '{ "id": ?i, "of": [ { "k": ?k } ], "to": [ ?n ] } => { ex:{?i} ex:k ?k ; ex:n ?n }',
    "pairs": '{ "id": ?i, "of": [ { "k": ?k } ], "to": [ ?n ] } => { ex:{?i}-{?k} ex:n ?n }',
    "an array in an array": '{ "of": [ { "k": ?k, "in": [ ?n ] } ] } => { ex:{?k} ex:n ?n }',
    "selected records": '{ "id": "a", "of": [ { "k": ?k } ] } => { ex:x ex:k ?k }',
    "selected elements": '{ "id": ?i, "of": [ { "n": 1, "k": ?k } ] } => { ex:{?i} ex:k ?k }',
    "several patterns": '{ "id": "a", "t": ?t } => { ex:a ex:t ?t } { "id": "b", "t": ?t } => { ex:b ex:t ?t }',
    "equal triples": '{ "id": ?i, "of": [ { "k": ?k } ] } => { ex:{?i} ex:p ?k ; ex:p "x" }',
    "blank nodes": '{ "of": [ { "k": ?k, "n"?: ?n } ] } => { _:{?k} ex:n ?n }',
}


@pytest.mark.parametrize("name", ARRAYS)
def test_records_with_arrays_are_mapped_by_column(name: str) -> None:
    """Of each kind, also of no elements, of several, and of equal ones."""
    arrays: list[Any] = [[{"k": "x", "n": 1, "t": 2, "in": [1, 2]}, {"k": "y", "n": 2, "t": 3, "in": []}], [], None]
    arrays += [[{"k": "x", "n": 1, "t": 9}] * 2, [{"k": "z", "n": 1, "t": 10}]]
    values = [{"t": 9, "id": "ab"[number % 2], "of": array, "to": [1, 1]} for number, array in enumerate(arrays)]
    for some in (values, values[-1:], []):
        assert same_by_column(short(ARRAYS[name]), some)


@pytest.mark.parametrize(
    "text",
    [
        '{ "of": [ { "k": ?k, "in": [ { "n": ?n } ] } ] } => { ex:{?k} a ex:T . ex:{?n} a ex:N }',  # they alternate
        '{ "k": ?k } => { GRAPH ex:g { ex:{?k} a ex:T } }',
    ],
)
def test_what_is_mapped_record_by_record(text: str) -> None:
    assert column_evaluator(short(text)) is None


@pytest.mark.parametrize(
    "value",
    [
        {"t": 1, "id": None, "of": []},  # the subject is missing, though no element needs it
        {"t": 1, "id": "a", "of": {}},
        {"t": 1, "id": "a", "of": [3]},
        {"t": None, "id": "a", "of": []},
        {"t": 0, "id": "a", "of": []},  # it is late
        {"t": 1, "id": {}, "of": []},
    ],
)
def test_what_cannot_be_mapped_by_column_is_left_to_the_way_record_by_record(value: Any) -> None:
    first = {"t": 1, "id": "b", "of": [{"k": "x"}]}
    mapping = short(ARRAYS["both"])
    assert same_by_column(mapping, [first])
    assert not same_by_column(mapping, [first, value])


def _suffixed(triple: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(term + ".s" if term.startswith("_:") else term for term in triple)


# Both notations

PREFIXES = f"""@prefix ex: <{E}> . @prefix squall: <urn:x-squall:> . @prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
"""
OLD = (
    PREFIXES
    + """@prefix rr: <http://www.w3.org/ns/r2rml#> . @prefix rml: <http://semweb.mmlab.be/ns/rml#> .
@prefix ql: <http://semweb.mmlab.be/ns/ql#> .
"""
)
NEW = PREFIXES + "".join(f"@prefix {prefix}: <http://w3id.org/rml/> .\n" for prefix in ("rml", "rr", "ql"))


def rml_of(spec: Spec, is_new: bool) -> str:
    """Returns a mapping in RML, a triples map for each triple."""
    paths = dict(naive.variables(spec.pattern))
    maps = []
    for number, triple in enumerate(spec.triples):
        names = [name for part in triple for name in part.names]
        levels = {_array(paths[name]) for name in names}
        iterator = levels.pop() if len(levels) == 1 else ()
        time = f'squall:time "{_json_path(paths[spec.time])}" ; squall:unit "{spec.unit}" ;' if spec.time else ""
        subject, predicate, object = (_rml_term(part, paths, iterator) for part in triple)
        is_optional = any(paths[name][: len(marked)] == marked for name in triple[0].names for marked in spec.optional)
        optional = " ; squall:optional true" if is_optional else ""
        maps.append(
            f'<#m{number}> rml:logicalSource [ rml:source "x" ; rml:referenceFormulation ql:JSONPath ;\n'
            f'  {time} rml:iterator "{_json_path(iterator)}" ] ;\n'
            f"  rr:subjectMap [ {subject}{optional} ] ;\n"
            f"  rr:predicateObjectMap [ rr:predicateMap [ {predicate} ] ; rr:objectMap [ {object} ] ] ."
        )
    return (NEW if is_new else OLD) + "\n".join(maps)


def _array(path: tuple[str, ...]) -> tuple[str, ...]:
    """Returns a path up to its last array."""
    return path[: len(path) - path[::-1].index("*")] if "*" in path else ()


def _json_path(path: tuple[str, ...], begin: str = "$") -> str:
    return begin + "".join("[*]" if step == "*" else f"['{step}']" for step in path)


def _rml_term(part: naive.Part, paths: dict[str, tuple[str, ...]], iterator: tuple[str, ...]) -> str:
    references = [_json_path(paths[name][len(iterator) :]) for name in part.names]
    template = part.constant + "-".join(f"{{{reference}}}" for reference in references)
    match part.kind:
        case "constant":
            return f"rr:constant ex:{part.constant}"
        case "iri":
            return f'rr:template "{E}{template}"'
        case "blank":
            return f'rr:template "{template}" ; rr:termType rr:BlankNode'
        case "text":
            return f'rr:template "{template}" ; rr:termType rr:Literal'
        case "typed":
            return f'rml:reference "{references[0]}" ; rr:datatype xsd:integer'
        case "language":
            return f'rml:reference "{references[0]}" ; rr:language "EN"'
    return f'rml:reference "{references[0]}"'


@st.composite
def common_specs(draw: st.DrawFn) -> Spec:
    """Draws a mapping that both notations have: the variables of a triple are in the same items, or all but one, which
    is there once, are in the record. There is no time in an array, and no condition."""
    pattern = draw(naive.patterns(conditions=False))
    spec = draw(specs())
    paths = dict(naive.variables(pattern))
    at_record = sorted(name for name, path in paths.items() if "*" not in path)
    triples = []
    for triple in spec.triples:
        anchor = draw(st.sampled_from(sorted(paths)))
        peers = sorted(name for name, path in paths.items() if _array(path) == _array(paths[anchor]))
        one_level = draw(st.booleans()) or not at_record or triple[2].kind not in ("value", "typed", "language")
        parts = []
        for number, part in enumerate(triple):
            names = peers if one_level else [anchor] if number == 2 else at_record
            parts.append(naive.Part(part.kind, tuple(draw(st.sampled_from(names)) for _ in part.names), part.constant))
        triples.append((parts[0], parts[1], parts[2]))
    time = draw(st.sampled_from(["", *at_record]))
    markable = sorted(path for path in paths.values() if path[-1] != "*")
    optional = draw(st.frozensets(st.sampled_from(markable), max_size=1)) if markable else frozenset()
    return Spec(pattern, optional, tuple(triples), time, spec.unit)


@given(common_specs(), st.booleans())
def test_both_notations_are_the_same_value(spec: Spec, is_new: bool) -> None:
    document = rml.read(rml_of(spec, is_new), "m.ttl")
    assert document.is_csv is False
    assert document.mapping == short_form.read(spec.short_form(), "m.map")


# What is refused


@pytest.mark.parametrize(
    ("text", "place", "message", "hint"),
    [
        ('{ "a": ?a } => { exx:{?a} a ex:S }', "2:18", "the prefix `exx:` is not declared", "did you mean `ex:`?"),
        ('{ "a": ?a } => { ex:{?b} a ex:S }', "2:18", "`?b` is not in the pattern", '`"field": ?b`'),
        ('{ "a": ?a } => { ex:{a} a ex:S }', "2:18", "`{a}` is no variable in braces", "write `{?name}`"),
        ('{ "a": ?a, "b": ?a } => { ex:{?a} a ex:S }', "2:17", "`?a` stands for two fields", "its own variable"),
        ('{ "a": ?a, "a": ?b } => { ex:{?a} a ex:S }', "2:12", 'the key "a" is there twice', ""),
        ('{ "a": ?a } => { ?a a ex:S }', "2:18", "a subject is no literal", "`ex:{?name}`, or `IRI(?name)`"),
        ('{ "a": ?a } => { ex:x ?a ex:S }', "2:23", "a predicate is no literal", "`ex:{?name}`"),
        ('{ "a": ?a } => { ex:x _:{?a} ex:S }', "2:23", "a predicate is no blank node", ""),
        ('{ "a": ?a } => { GRAPH "g" { ex:{?a} a ex:S } }', "2:24", "the name of a graph is no literal", ""),
        ('{ "a": ?a } => { [] ex:p ?a }', "2:18", "a blank node in brackets is not supported", "`_:{?id}`"),
        ('{ "a": ?a } => { ex:x ex:p (?a) }', "2:28", "a collection in brackets is not supported", "its members"),
        ('{ "a": ?a } => { _:x ex:p ?a }', "2:18", "the blank node `_:x` would be the same", "`_:{?id}`"),
        ('{ "a": ?a } => { <{?a}> ex:p ?a }', "2:18", "`<{?a}>` makes no absolute IRIs", "`IRI(?name)`"),
        ('{ "a": ?a } => { <a> ex:p ?a }', "2:18", "`<a>` is no absolute IRI", "with its scheme"),
        ('{ "a": ?a } => { ex:x ex:p "{" }', "2:28", "there is a single `{`", r"write `\{`"),
        ('{ "a": ?a } => { ex:x ex:p "\\q" }', "2:28", "`\\q` is no escape", "escapes:"),
        ('{ "a": ?a } => { ex:x ex:p ?a^^ex:{?a} }', "2:32", "a datatype is no template", ""),
        ('{ "a": ?a } => { }', "2:16", "a mapping without triples does nothing", ""),
        ('{ "a": ?a } => { ex:x ex:p ?a } AT ?t', "2:36", "`?t` is not in the pattern", '`"field": ?t`'),
        ('{ "a": ?a } => { ex:x ex:p ?a } AT ?a DAYS', "2:39", "`DAYS` cannot stand here", "SECONDS"),
        ("{ a: ?a } => { ex:x ex:p ?a }", "2:3", "`a:` cannot stand here", 'a key is written `"a"`'),
        ('{ "a": a } => { ex:x ex:p ?a }', "2:8", "`a` cannot stand here", "a variable or a value"),
        ('{ "a": [ ?a, ?b ] } => { ex:x ex:p ?a }', "2:12", "`,` cannot stand here", "expected `]`"),
        ('{ "a": ?a } => { ex:x ex:p', "2:16", "this bracket is never closed", "end it with `}`"),
        ('{ "a": ?a }', "2:11", "the text ends too early", "expected `=>`"),
        ('{ "sensor": ?sensor } => { ex:{?sensors} a ex:S }', "2:28", "`?sensors` is not", "did you mean `?sensor`?"),
        ('{ "a": ?a => { ex:x ex:p ?a }', "2:11", "`=>` cannot stand here", "expected `,`"),
        ('{ "a: ?a } => { ex:x ex:p ?a }', "2:3", "this text is never closed", 'end it with `"`'),
        ('{ "a": ?a } => { ex:x ex:p <<ex:a ex:b ex:c>> }', "2:28", "`<<ex:a` cannot stand here", "a term"),
    ],
)
def test_the_short_form_says_what_is_wrong(text: str, place: str, message: str, hint: str) -> None:
    with pytest.raises(SquallError) as raised:
        short(text)
    error = single_errors(raised.value)[0]
    assert message in error.message
    assert str(error.origin) == f"m.map:{place}"
    assert hint in (error.hint or "")


def test_all_errors_are_given_at_once() -> None:
    with pytest.raises(SquallError) as raised:
        short('{ "a": ?a } => { ex:{?b} a ey:S ; ez:p ?c }')
    assert len(single_errors(raised.value)) == 4


SOURCE = 'rml:logicalSource [ rml:source "x" ; rml:referenceFormulation ql:JSONPath ]'
SUBJECT = 'rr:subjectMap [ rr:template "http://x/{a}" ]'
PAIR = "rr:predicateObjectMap [ rr:predicate ex:p ; rr:object ex:o ]"


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        (f"<#m> {SOURCE} ; {SUBJECT} ; rr:predicateObjectMap [ rr:predicate ex:p ; rr:objectMap [ "
         "rr:parentTriplesMap <#m> ] ] .", "`parentTriplesMap` of an object map is not supported", "a rule over two"),
        (f'<#m> rr:logicalTable [ rr:tableName "T" ] ; {SUBJECT} ; {PAIR} .', "`logicalTable` of a triples map", "SQL"),
        (f"<#m> {SOURCE.replace('ql:JSONPath', 'ql:XPath')} ; {SUBJECT} ; {PAIR} .",
         "the reference formulation `http://semweb.mmlab.be/ns/ql#XPath` is not supported", "`ql:JSONPath`"),
        (f"<#m> {SOURCE} ; {SUBJECT} ; rr:predicateObjectMap [ rr:predicate ex:p ; rr:objectMap [ "
         "<http://semweb.mmlab.be/ns/fnml#functionValue> [] ] ] .", "`functionValue` of an object map", "functions"),
        (f'<#m> {SOURCE} ; rr:subjectMap [ rml:reference "a" ; rr:termType rr:Literal ] ; {PAIR} .',
         "a subject is no literal", ""),
        (f'<#m> {SOURCE} ; rr:subjectMap [ rr:template "{{a}}" ] ; {PAIR} .', "makes no absolute IRIs", "a scheme"),
        (f'<#m> {SOURCE} ; rr:subjectMap [ rr:template "http://x" ] ; {PAIR} .', "has no reference", "rml:constant"),
        (f'<#m> {SOURCE} ; rr:subjectMap [ rr:template "http://x/{{a" ] ; {PAIR} .', "has a single `{`", ""),
        (f'<#m> {SOURCE} ; rr:subjectMap [ rr:template "http://x/{{a[?(@.b)]}}" ] ; {PAIR} .',
         "`a[?(@.b)]` is not supported from `[?(@.b)]` on", ""),
        (f"<#m> {SOURCE} ; {SUBJECT}, [ rr:constant ex:s ] ; {PAIR} .", "has more than one subject map", ""),
        (f"<#m> {SOURCE} ; {PAIR} .", "a triples map has no subject map", ""),
        (f"<#m> {SUBJECT} ; {PAIR} .", "a triples map has no logicalSource", ""),
        (f"<#m> {SOURCE} ; {SUBJECT} .", "makes no triples", "add `rml:predicateObjectMap`"),
        (f"<#m> {SOURCE} ; {SUBJECT} ; rr:predicateObjectMap [ rr:object ex:o ] .", "has no predicate", ""),
        (f'<#m> {SOURCE} ; {SUBJECT} ; rr:predicateObjectMap [ rr:predicate ex:p ; rr:objectMap [ '
         'rml:reference "a" ; rr:template "b" ] ] .', "an object map has `reference` and `template`", "exactly one"),
        (f'<#m> {SOURCE} ; {SUBJECT} ; rr:predicateObjectMap [ rr:predicate ex:p ; rr:objectMap [ '
         'rml:reference "a" ; rr:termType rr:IRI ; rr:language "en" ] ] .', "with a datatype or a language", ""),
        (f'<#m> {SOURCE} ; {SUBJECT} ; rr:predicateObjectMap [ rr:predicate ex:p ; rr:objectMap [ rr:constant [] ] ] .',
         "a constant is no blank node", "rr:BlankNode"),
        (f'<#m> {SOURCE} ; rr:subject "x" ; {PAIR} .', "a subject is no literal", "name an IRI"),
        (f'<#m> {SOURCE} ; rr:subjectMap [ rr:template "http://x/{{a}} b" ] ; {PAIR} .', "characters that no IRI", ""),
        (f'<#m> {SOURCE} ; {SUBJECT} ; rr:predicateObjectMap [ rr:predicate ex:p ; rr:objectMap [ '
         'rml:reference "a" ; rr:datatype "double" ] ] .', "the datatype `double` is no IRI", "xsd:double"),
        (f'<#m> {SOURCE} ; {SUBJECT} ; rr:predicateObjectMap [ rr:predicate ex:p ; rr:objectMap [ '
         'rml:reference "a" ; rr:language "e n" ] ] .', "`e n` is no language tag", ""),
        (f'<#m> {SOURCE} ; {SUBJECT} ; {PAIR} . <#n> {SOURCE.replace("x", "y")} ; {SUBJECT} ; {PAIR} .',
         "the mapping has several sources: `x`, `y`", "a mapping for each"),
        (f'<#m> {SOURCE} ; {SUBJECT} ; {PAIR} ; rr:subjectMapp ex:a .', "`subjectMapp` of a", "`subjectMap`"),
        (f'<#m> {SOURCE} ; {SUBJECT} ; {PAIR} ; rml:baseIRI ex:a .', "`baseIRI` is not supported", "a scheme"),
        (f'<#m> {SOURCE[:-2]} ; squall:unit "d" ; squall:time "a" ] ; {SUBJECT} ; {PAIR} .', "`d` is no unit", "`ms`"),
        ("ex:a ex:b ex:c .", "`m.ttl` has no triples map", ""),
        ("ex:a ex:b", "the mapping is no Turtle", ""),
    ],
)  # fmt: skip
def test_rml_is_refused_by_name_and_place(text: str, message: str, hint: str) -> None:
    with pytest.raises(SquallError) as raised:
        rml.read(OLD + text, "m.ttl")
    errors = single_errors(raised.value)
    assert any(message in error.message and hint in (error.hint or "") for error in errors)
    assert all(error.origin is not None and error.origin.name == "m.ttl" for error in errors)


def test_graph_maps_classes_and_objects_of_rml() -> None:
    text = f"""{OLD}<#m> {SOURCE[:-2]} ; rml:iterator "$.owner" ] ;
      rr:subjectMap [ rml:reference "id" ; rr:class ex:A , ex:B ; rr:graph ex:g , rr:defaultGraph ] ;
      rr:predicateObjectMap [ rr:predicate ex:p ; rr:objectMap [ rml:reference "n" ; rr:datatype xsd:string ] ;
                              rr:graphMap [ rr:template "{E}{{n}}" ] ] ."""
    owner = '{ "owner"?: { "id": ?id, "n": ?n } } => '
    triples = "IRI(?id) a ex:A , ex:B ; ex:p ?n^^<http://www.w3.org/2001/XMLSchema#string>"
    named = "IRI(?id) ex:p ?n^^<http://www.w3.org/2001/XMLSchema#string>"
    expected = short(f"{owner} {{ {triples} . GRAPH ex:g {{ {triples} }} GRAPH ex:{{?n}} {{ {named} }} }}")
    mapping = rml.read(text, "m.ttl").mapping
    assert mapping == expected
    assert mapped(mapping, {}) == []
    assert len(mapped(mapping, {"owner": {"id": "urn:a", "n": "x"}})) == 7


@pytest.mark.parametrize(
    ("text", "steps"),
    [
        ("$", ()), ("@", ()), ("", ()), ("$.a.b", ("a", "b")), ("a-b.c_d", ("a-b", "c_d")),
        ("$['a b'][0][*].c", ("a b", 0, None, "c")), ('$["a\\"b"]', ('a"b',)), ("$['it\\'s']", ("it's",)),
    ],
)  # fmt: skip
def test_paths_have_steps(text: str, steps: tuple[str | int | None, ...]) -> None:
    assert steps_of(text) == steps


@pytest.mark.parametrize("text", ["$..a", "$.a[?(@.b)]", "$.a[1:2]", "$.*", "$.a[-1]", "$.a b", "a["])
def test_other_paths_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not supported"):
        steps_of(text)


def test_equal_triples_of_two_rules_are_one() -> None:
    decoder = RecordDecoder(
        Records(short('{ "s": ?s, "a": ?a, "b": ?b } => { ex:{?s} ex:p ?a, ?b ; a ex:A, ex:B }')), "", 0, ""
    )
    events, _ = decoder.lines(b'{"s": "x", "a": 1, "b": 1}\n{"s": "y", "a": 1, "b": 2}')
    assert decoder.count == sum(len(event.facts) for event in events) == 7


def test_indexes_lead_to_elements_of_arrays() -> None:
    text = f"""{OLD}<#m> {SOURCE} ; rr:subjectMap [ rr:template "{E}{{$.a[1].b}}" ; squall:optional true ] ;
      rr:predicateObjectMap [ rr:predicate ex:p ; rr:objectMap [ rml:reference "$.a[0]" ] ] ."""
    mapping = rml.read(text, "m.ttl").mapping
    decoder = RecordDecoder(Records(mapping), "", 0, "")
    lines = ['{"a": [5, {"b": "x"}]}', '{"a": [5]}', '{"a": {"0": 1}}', '{"a": [5, 6]}', "{}"]
    events, bad = decoder.lines("\n".join(lines).encode())
    assert [str(fact) for event in events for fact in event.facts] == [
        f'<{E}x> <{E}p> "5"^^<http://www.w3.org/2001/XMLSchema#integer> .'
    ]
    assert [(index, reason) for index, reason, _ in bad] == [
        (2, "the field `a` is an object, and no array"), (3, "the field `a[1]` is a number, and no object"),
    ]  # fmt: skip
    assert [reason for _, reason, _ in decoder.lines(lines[2].encode())[1]] == [bad[0][1]]


def test_optional_subjects_conditions_and_several_patterns() -> None:
    mapping = short(
        '{ "type": "a", "id": ?a, "n"?: ?n } => { ex:{?a} ex:n ?n . ex:{?n} a ex:N }\n'
        '{ "type": 2.50, "id": ?b } => { ex:{?b} a ex:B }\n{ "ok": true, "id": ?b } => { ex:{?b} a ex:Ok }'
    )
    objects = [
        sorted(str(statement[2]).removeprefix(f"<{E}").rstrip(">") for _, statement in mapped(mapping, record))
        for record in (
            {"type": "a", "id": "x"},
            {"type": "a", "id": "x", "n": "y"},
            {"type": 2.5, "id": "x"},
            {"type": "2.5", "id": "x", "ok": 1},
            {"id": "x", "ok": True},
            {},
        )
    ]
    assert objects == [[], ['"y"', "N"], ["B"], [], ["Ok"], []]
    with pytest.raises(UnusableRecord, match="the field `id` is missing"):
        mapped(mapping, {"type": "a"})
