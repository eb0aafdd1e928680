"""Proposals of mappings by samples of records (`squall map`), and checks of mappings (`squall check`)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from squall.checking.mappings import is_mapping, lint_mapping
from squall.errors import SourceError, UsageError
from squall.streams.address import parse
from squall.streams.mappings import rml, short_form
from squall.streams.mappings.evaluation import Number, evaluator_of
from squall.streams.mappings.proposal import Proposal, propose
from squall.streams.mappings.shapes import Sample, Shape, sample_of
from tests.conftest import Squall

E = "http://example.org/"


def sample(*records: Any, is_csv: bool = False) -> Sample:
    values = json.loads(json.dumps(records), parse_float=Number)
    shape = Shape()
    for value in values:
        shape.add(value)
    return Sample(shape, values, is_csv, [])


SCALARS = st.sampled_from(
    ["x", "", "http://example.org/a b", "http://example.org/a", "urn:a", "2024-01-01T00:00:00Z", "2024-01-01", "7"]
) | st.sampled_from([1, 1700000000, 1700000000000, 2.5, True, False, None, -3])  # fmt: skip
KEYS = st.sampled_from(
    ["id", "sensor_id", "name", "ts", "at", "lat", "valid", "a b", "a-b", "tags", "é", "@type", "{x}"]
)
VALUES = st.recursive(
    SCALARS, lambda values: st.lists(values, max_size=3) | st.dictionaries(KEYS, values, max_size=4), max_leaves=12
)


@st.composite
def samples(draw: st.DrawFn) -> Sample:
    """Draws records of mostly one form: each field is always of one kind, or now and then of another."""
    first = draw(st.dictionaries(KEYS, VALUES, min_size=1, max_size=5))
    records = [first]
    for _ in range(draw(st.integers(0, 3))):
        record = dict(first)
        for key in draw(st.lists(st.sampled_from(sorted(first)), max_size=2)):
            record[key] = draw(VALUES | SCALARS)
        for key in draw(st.lists(st.sampled_from(sorted(first)), max_size=1)):
            record.pop(key, None)
        records.append(record)
    return sample(*records)


def proposed(of: Sample) -> Proposal | None:
    try:
        return propose(of)
    except SourceError:
        return None


@given(samples())
def test_what_is_proposed_can_be_applied_to_the_sample(of: Sample) -> None:
    proposal = proposed(of)
    if proposal is None:
        return
    mapping = short_form.read(proposal.short_form(), "m.map")
    assert not mapping.unused or proposal.time is not None or proposal.notes
    statements = [statement for record in of.records for statement in evaluator_of(mapping).statements(record)]
    assert all((time is not None) == (proposal.time is not None) for time, _ in statements)
    try:
        text = proposal.rml()
    except SourceError:
        return
    document = rml.read(text, "m.ttl")
    assert set(document.mapping.rules) <= set(mapping.rules)
    has_left_out = "RML does not join" in text
    assert has_left_out == (document.mapping != mapping)
    for record in of.records:
        evaluator_of(document.mapping).statements(record)


def test_identities_times_numbers_and_nested_values_are_recognised() -> None:
    records = [
        {"sensorId": "a", "valid": True, "humid": 3, "ts": 1700000000, "lat": 1.5, "url": "http://example.org/x",
         "where": {"id": 5, "name": "n"}, "size": {"w": 1, "h": 2}, "tags": ["a"], "none": None},
        {"sensorId": "b", "valid": False, "humid": 4, "ts": 1700000001, "lat": 2.5, "url": "http://example.org/y",
         "size": {"w": 1, "h": 2}, "tags": []},
    ]  # fmt: skip
    assert (
        propose(sample(*records)).short_form()
        == f"""PREFIX ex: <{E}>

{{ "sensorId": ?sensorId,
  "valid": ?valid,
  "humid": ?humid,
  "ts": ?ts,
  "lat": ?lat,
  "url": ?url,
  "where"?: {{ "id": ?id,
    "name": ?name }},
  "size": {{ "w": ?w,
    "h": ?h }},
  "tags": [ ?tags ] }}
=> {{
  ex:{{?sensorId}} ex:valid ?valid ;
    ex:humid ?humid ;
    ex:lat ?lat ;
    ex:url IRI(?url) ;
    ex:where ex:where-{{?id}} ;
    ex:size_w ?w ;
    ex:size_h ?h ;
    ex:tags ?tags .
  ex:where-{{?id}} ex:name ?name .
}} AT ?ts SECONDS
"""
    )


def test_columns_get_datatypes() -> None:
    rows = [
        {
            "code": "007",
            "n": "1",
            "d": "1.5",
            "b": "true",
            "when": "2024-01-01T00:00:00Z",
            "day": "2024-01-02",
            "zip": "01234",
        },
        {
            "code": "008",
            "n": "-2",
            "d": "3",
            "b": "false",
            "when": "2024-01-01T00:00:01Z",
            "day": "2024-01-03",
            "zip": "1",
        },
    ]
    text = propose(sample(*rows, is_csv=True)).short_form()
    for term in ("ex:n ?n^^xsd:integer", "ex:d ?d^^xsd:double", "ex:b ?b^^xsd:boolean", "ex:day ?day^^xsd:date",
                 "ex:zip ?zip .", "} AT ?when\n", "ex:{?code} ex:n"):  # fmt: skip
        assert term in text


def test_what_is_not_sure_is_noted() -> None:
    text = propose(
        sample({"v": [{"x": 1, "t": "2024-01-01T00:00:00Z"}], "id": 1, "m": 1}, {"v": [], "id": 2, "m": {}})
    ).short_form()
    assert "# nothing looks like the identity of `$.v[*]`: it is made of `id` and `t`" in text
    assert "# left out: the field `$.m`, which has values of several kinds" in text
    assert "} AT ?t\n" in text
    assert "# no field looks like a time" in propose(sample({"id": 1, "v": 1})).short_form()
    with pytest.raises(SourceError, match="no mapping can be proposed"):
        propose(sample(1, 2))


def test_samples_are_read_of_all_formats(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("x.ndjson").write_bytes(b'\xef\xbb\xbf{"a": 1}\n{\n\n{"a": 2}\n{"a": 3}')
    Path("x.csv").write_text('a;b\n1;"x\ny"\n2\n3;\n')
    Path("x.json").write_text("[1, 2]")
    Path("empty.csv").write_text("a,b\n")
    Path("x.nt").write_text("")
    read = sample_of(parse("x.ndjson", ""), 2)
    assert (read.records, read.malformed) == (
        [{"a": 1}, {"a": 2}],
        ["line 2: it is no JSON: Expecting property name enclosed in double quotes (line 1, column 2)"],
    )
    rows = sample_of(parse("x.csv?separator=;", ""), 9)
    assert (rows.records, rows.is_csv) == ([{"a": "1", "b": "x\ny"}, {"a": "3", "b": None}], True)
    assert rows.malformed == ["line 4: the row has 1 values, and there are 2 columns"]
    assert sample_of(parse("x.csv?separator=;&header=c,d", ""), 1).records == [{"c": "a", "d": "b"}]
    assert sample_of(parse("x.json", ""), 1).records == [[1, 2]]
    for uri, message in (("empty.csv", "it is empty"), ("x.nt", "is RDF, and needs no mapping"), (".", "is no file"),
                         ("none.csv", "No such file"), ("tcp://h:1?format=json", "is no file of records")):  # fmt: skip
        with pytest.raises((SourceError, UsageError), match=message):
            sample_of(parse(uri, ""), 1)


CHECKED = f"""PREFIX ex: <{E}>
{{ "sensr": ?s, "d": {{ "vv": ?v }}, "x"?: ?x, "t": ?t }} => {{ ex:{{?s}} ex:v ?v . ex:all ex:has ex:{{?s}} }}
"""


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("m.map").write_text(CHECKED)
    Path("x.ndjson").write_text('{"sensor": "a", "d": {"v": 1}, "t": 1}\n{"sensor": "b", "d": {"v": 2}, "t": 2}\n')
    Path("x.csv").write_text("sensr,d\na,b\n")
    Path("p.rq").write_text("SELECT ?s { ?s ?p ?o }")


@pytest.mark.usefixtures("files")
def test_a_mapping_is_checked_with_and_without_a_sample() -> None:
    def codes(*uris: str) -> list[tuple[str, str]]:
        return [(finding.code, finding.message) for finding in lint_mapping("m.map", [parse(uri, "") for uri in uris])]

    alone = [
        ("fixed-subject", "the subject <http://example.org/all> is the same for all records"),
        ("no-time", "the mapping `m.map` has no time"),
        ("unused-variable", "nothing uses `?x`"),
        ("unused-variable", "nothing uses `?t`"),
    ]
    assert codes() == alone
    with_sample = codes("x.ndjson?time=t")
    assert with_sample == [
        alone[0],
        ("unusable-records", "2 of 2 records of `x.ndjson` cannot be used"),
        ("unknown-field", "no record of `x.ndjson` has the field `sensr`"),
        ("unknown-field", "no record of `x.ndjson` has the field `d.vv`"),
        *alone[2:],
    ]
    assert ("nested-path", "the mapping has the path `d.vv`, and rows of CSV have columns alone") in codes("x.csv")
    Path("m.map").write_text("PREFIX")
    assert [code for code, _ in codes()] == ["syntax"]
    Path("m.map").write_text(
        f'PREFIX ex: <{E}> {{ "kind": "z", "sensor": ?s, "t": ?t }} => {{ ex:{{?s}} a ex:S }} AT ?t'
    )
    assert [code for code, _ in codes("x.ndjson")] == ["no-triples", "unknown-field"]
    with pytest.raises(UsageError, match="CSV and JSON have no mapping in common"):
        codes("x.ndjson", "x.csv")


@pytest.mark.usefixtures("files")
def test_mappings_are_known_by_their_names_or_their_content() -> None:
    Path("m.ttl").write_text("@prefix rml: <http://w3id.org/rml/> .")
    Path("o.ttl").write_text("")
    assert [is_mapping(name) for name in ("m.map", "M.RML", "m.ttl", "o.ttl", "none.ttl", "p.rq")] == [
        True, True, True, False, False, False,
    ]  # fmt: skip


@pytest.mark.usefixtures("files")
def test_the_command_line_proposes_checks_and_runs_a_mapping(squall: Squall) -> None:
    code, out, err = squall("map", "x.ndjson")
    assert (code, err) == (0, "2 records read; check the mapping: `squall check FILE --source x.ndjson`\n")
    Path("new.map").write_text(out)
    assert squall("check", "new.map", "--source", "x.ndjson", "--strict") == (0, "", "nothing found\n")
    code, out, _ = squall("run", "p.rq", "--source", "x.ndjson?map=new.map", "--format", "csv")
    assert (code, out.split()) == (0, ["time,s", f"1,{E}a", f"2,{E}b"])
    code, out, _ = squall("map", "x.ndjson", "--format", "rml", "--sample", "1", "--quiet")
    Path("new.ttl").write_text(out)
    assert squall("check", "new.ttl", "--source", "x.ndjson")[0] == 0
    code, out, _ = squall("check", "m.map", "--source", "x.ndjson", "--strict", "--format", "json")
    assert code == 1
    assert {finding["code"] for finding in json.loads(out)["findings"]} >= {"unknown-field", "no-time"}
    code, _, err = squall("check", "m.map", "p.rq")
    assert code == 2
    assert "`p.rq` is a program, and no mapping" in err


NESTED = f"""PREFIX ex: <{E}>
{{ "sensor": ?s, "d": {{ "w": ?w, "u"?: ?u }}, "tags": [ {{ "n": ?n }} ], "x"?: {{ "y": ?y }}, "t": ?t }}
=> {{ ex:{{?s}} ex:w ?w ; ex:u ?u ; ex:n ?n ; ex:y ?y }} AT ?t
"""


@pytest.mark.usefixtures("files")
def test_fields_that_no_record_has_are_named_where_the_mapping_has_them() -> None:
    Path("m.map").write_text(NESTED)
    Path("x.ndjson").write_text('{"sensor": "a", "d": {"ww": 1}, "tags": [{"m": 1}], "x": {}, "t": 1}\n')
    findings = [finding for finding in lint_mapping("m.map", [parse("x.ndjson", "")]) if finding.code != "no-triples"]
    assert {finding.code for finding in findings} == {"unknown-field"}
    assert [finding.message for finding in findings] == [
        f"no record of `x.ndjson` has the field `{name}`" for name in ("d.w", "d.u", "tags[*].n", "x.y")
    ]
    row = NESTED.splitlines()[1]
    origins = [finding.origin for finding in findings if finding.origin is not None]
    assert [(origin.line, origin.column) for origin in origins] == [
        (2, row.index(key) + 1) for key in ('"w"', '"u"', '"n"', '"y"')
    ]
    assert [finding.hint for finding in findings][:2] == ["did you mean `ww`?", "that is so for the first 1 record"]


@pytest.mark.usefixtures("files")
def test_a_run_warns_of_fields_that_no_record_has(squall: Squall) -> None:
    """Not of those that the mapping marks as optional. The run goes on."""
    Path("m.map").write_text(NESTED)
    Path("x.ndjson").write_text('{"sensor": "a", "d": {"ww": 1}, "tags": [{"n": 1}, {"n": 2}], "t": 1}\n')
    code, out, err = squall("run", "p.rq", "--source", "x.ndjson?map=m.map", "--format", "csv")
    assert (code, out.split()) == (0, ["time,s", f"1,{E}a", f"1,{E}a"])
    assert "m.map:2:24: translation warning: no record of `x.ndjson` has the field `d.w`" in err
    assert err.count("no record of") == 1
    Path("x.ndjson").write_text('{"sensor": "a", "d": {"w": 1}, "tags": [{"n": 1}, {"n": 2}], "t": 1}\n')
    assert "no record of" not in squall("run", "p.rq", "--source", "x.ndjson?map=m.map")[2]
    Path("none.ndjson").write_text("")
    code, _, err = squall("run", "p.rq", "--source", "none.ndjson?map=m.map")
    assert (code, "no record of" in err) == (0, False)
