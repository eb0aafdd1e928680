"""Terms and Python values stand for each other."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from typing import Any
from uuid import UUID

import pyoxigraph
import pytest
import rdflib
from hypothesis import given
from hypothesis import strategies as st

from squall.errors import ArgumentError
from squall.functions.python_values import to_python, to_term
from squall.rdf import XSD, Term, blank, iri, literal

ZONES = st.builds(lambda minutes: timezone(timedelta(minutes=minutes)), st.integers(-14 * 60, 14 * 60))
VALUES = st.one_of(
    st.booleans(),
    st.integers(),
    st.decimals(allow_nan=False, allow_infinity=False, places=5),
    st.floats(allow_nan=False),
    st.datetimes(timezones=ZONES),
    st.dates(),
    st.times(),
    st.timedeltas(),
    st.binary(),
    st.text(st.characters(exclude_categories=["Cs"])),
)


@given(VALUES)
def test_a_value_is_the_value_of_its_term(value: Any) -> None:
    result = to_python(to_term(value))
    assert result == value
    assert type(result) is type(value)


@pytest.mark.parametrize(
    ("lexical", "datatype", "value"),
    [
        ("007", "unsignedByte", 7),
        ("-1", "nonNegativeInteger", "-1"),
        ("2.50", "decimal", Decimal("2.5")),
        ("1e3", "double", 1000.0),
        ("1", "boolean", True),
        ("yes", "boolean", "yes"),
        ("2026-01-02T03:04:05", "dateTime", datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)),
        (
            "2026-01-02T03:04:05.25+01:30", "dateTime",
            datetime(2026, 1, 2, 3, 4, 5, 250_000, timezone(timedelta(minutes=90))),
        ),
        ("2026-01-02T24:00:00Z", "dateTime", datetime(2026, 1, 3, tzinfo=UTC)),
        ("2026-02-30T00:00:00Z", "dateTime", "2026-02-30T00:00:00Z"),
        ("12026-01-02T03:04:05Z", "dateTime", "12026-01-02T03:04:05Z"),
        ("2026-01-02T03:04:05.1234567Z", "dateTime", "2026-01-02T03:04:05.1234567Z"),
        ("2026-01-02", "date", date(2026, 1, 2)),
        ("2026-01-02Z", "date", "2026-01-02Z"),
        ("03:04:05Z", "time", time(3, 4, 5, tzinfo=UTC)),
        ("PT1M30.5S", "duration", timedelta(seconds=90.5)),
        ("-P1D", "dayTimeDuration", timedelta(days=-1)),
        ("P1M", "duration", "P1M"),
        ("PT0.0000001S", "duration", "PT0.0000001S"),
        ("0aFF", "hexBinary", b"\x0a\xff"),
        ("0", "hexBinary", "0"),
        ("Cv8=", "base64Binary", b"\x0a\xff"),
        ("?", "base64Binary", "?"),
        ("P1Y", "gYear", "P1Y"),
    ],
)  # fmt: skip
def test_values_of_literals(lexical: str, datatype: str, value: object) -> None:
    """What a type of Python cannot hold, and what is ill-typed, is the lexical form."""
    result = to_python(literal(lexical, XSD + datatype))
    assert result == value
    assert type(result) is type(value)


def test_values_of_other_terms() -> None:
    assert to_python(iri("http://example.org/a")) == "http://example.org/a"
    assert to_python(blank("b0")) == "_:b0"
    assert to_python(literal("chat", language="fr")) == "chat"
    assert to_python(literal("x", "urn:a-type")) == "x"


@pytest.mark.parametrize(
    ("value", "term"),
    [
        ("<urn:a>", literal("<urn:a>")),
        (datetime(2026, 1, 2), literal("2026-01-02T00:00:00", XSD + "dateTime")),
        (UUID(int=1), iri("urn:uuid:00000000-0000-0000-0000-000000000001")),
        (rdflib.URIRef("urn:a"), iri("urn:a")),
        (rdflib.Literal("a"), literal("a")),
        (pyoxigraph.NamedNode("urn:a"), iri("urn:a")),
        (float("inf"), literal("INF", XSD + "double")),
    ],
)
def test_terms_of_values(value: object, term: Term) -> None:
    assert to_term(value) == term


@pytest.mark.parametrize("value", [None, object(), [1], Decimal("NaN"), 1j])
def test_what_has_no_term_is_refused(value: object) -> None:
    with pytest.raises(ArgumentError, match="there is no term for"):
        to_term(value)
