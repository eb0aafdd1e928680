"""The built-ins of RIF: by example, by law, and against the list of the names in RIF-DTB.

The expected values follow from XPath functions and operators 2.0, XSD 1.1 and DTB, by hand.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from squall import functions
from squall.functions.rif.names import FUNC, PRED, SAME
from squall.functions.rif.spaces import SPACES, identity, same
from squall.functions.sparql.names import FALSE, TRUE
from squall.rdf import RDF, XSD, Term, literal
from squall.rdf.compounds import compound
from tests.rif_calls import SPELLED, A, B, X, call, listed, of, rdf, text

DEEP = 900


# The names


_TYPES = """
anyURI base64Binary boolean date dateTime dateTimeStamp double float hexBinary decimal integer long int short byte
nonNegativeInteger positiveInteger unsignedLong unsignedInt unsignedShort unsignedByte nonPositiveInteger
negativeInteger string normalizedString token language Name NCName NMTOKEN time dayTimeDuration yearMonthDuration
XMLLiteral PlainLiteral
"""
_FUNCTIONS = """
numeric-add numeric-subtract numeric-multiply numeric-divide numeric-integer-divide numeric-mod not compare concat
string-join substring string-length upper-case lower-case encode-for-uri iri-to-uri escape-html-uri substring-before
substring-after replace year-from-dateTime month-from-dateTime day-from-dateTime hours-from-dateTime
minutes-from-dateTime seconds-from-dateTime year-from-date month-from-date day-from-date hours-from-time
minutes-from-time seconds-from-time years-from-duration months-from-duration days-from-duration hours-from-duration
minutes-from-duration seconds-from-duration timezone-from-dateTime timezone-from-date timezone-from-time
subtract-dateTimes subtract-dates subtract-times add-yearMonthDurations subtract-yearMonthDurations
multiply-yearMonthDuration divide-yearMonthDuration divide-yearMonthDuration-by-yearMonthDuration
add-dayTimeDurations subtract-dayTimeDurations multiply-dayTimeDuration divide-dayTimeDuration
divide-dayTimeDuration-by-dayTimeDuration add-yearMonthDuration-to-dateTime add-yearMonthDuration-to-date
add-dayTimeDuration-to-dateTime add-dayTimeDuration-to-date add-dayTimeDuration-to-time
subtract-yearMonthDuration-from-dateTime subtract-yearMonthDuration-from-date subtract-dayTimeDuration-from-dateTime
subtract-dayTimeDuration-from-date subtract-dayTimeDuration-from-time PlainLiteral-from-string-lang
string-from-PlainLiteral lang-from-PlainLiteral PlainLiteral-compare PlainLiteral-length make-list count get sublist
append concatenate insert-before remove reverse index-of union distinct-values intersect except
"""
_PREDICATES = """
literal-not-identical iri-string boolean-equal boolean-less-than boolean-greater-than contains starts-with ends-with
matches duration-equal duration-not-equal XMLLiteral-equal XMLLiteral-not-equal matches-language-range is-list
list-contains
"""
TYPES = _TYPES.split()
ORDERS = ["less-than", "less-than-or-equal", "greater-than", "greater-than-or-equal"]


def dtb() -> set[str]:
    """Returns the IRIs of all built-ins of RIF-DTB, section 4."""
    pred = _PREDICATES.split()
    pred += [f"is-literal-{negative}{name}" for name in TYPES for negative in ("", "not-")]
    for kind in ("numeric", "dateTime", "date", "time"):
        pred += [f"{kind}-{order}" for order in ("equal", "not-equal", *ORDERS)]
    pred += [f"{kind}-{order}" for kind in ("dayTimeDuration", "yearMonthDuration") for order in ORDERS]
    casts = {(RDF if name in ("XMLLiteral", "PlainLiteral") else XSD) + name for name in TYPES}
    return {FUNC + name for name in _FUNCTIONS.split()} | {PRED + name for name in pred} | casts


def test_all_names_of_dtb_are_registered_and_no_others() -> None:
    assert len(dtb()) == 236
    assert set(SPELLED) == dtb() | {FUNC + "numeric-integer-mod"}


@pytest.mark.parametrize("name", sorted(SPELLED))
def test_a_built_in_is_a_function_of_the_same_iri(name: str) -> None:
    builtin = SPELLED[name]
    function = functions.lookup(builtin.test or builtin.modes[0].function)
    assert function.iri == name
    assert function.truth == (builtin.test is not None) == name.startswith(PRED)
    assert (function.least, function.most) == (builtin.least, builtin.most)
    assert builtin.same == SAME
    assert builtin.doc


TAKES_ALL = {FUNC + "make-list"}
TAKES_TEXT = {FUNC + "concat", RDF + "PlainLiteral", XSD + "string", XSD + "normalizedString", XSD + "token"}
TAKES_TEXT |= {XSD + name for name in ("language", "Name", "NCName", "NMTOKEN")}


@pytest.mark.parametrize("name", sorted(SPELLED))
def test_arguments_outside_the_domain_give_no_value(name: str) -> None:
    builtin = SPELLED[name]
    evaluate = functions.lookup(builtin.test or builtin.modes[0].function).evaluate
    nothing = False if builtin.test else None
    assert evaluate(*([None] * max(builtin.least, 1))) is nothing
    for argument in (B, X, literal("x", "urn:unknown"), of("x"), of("x", "dateTime"), of("a  b", "token")):
        takes = name in TAKES_ALL or (name in TAKES_TEXT and argument in (X, literal("x", "urn:unknown")))
        if not takes:
            assert evaluate(*([argument] * max(builtin.least, 1))) is nothing


# Guards, negative guards, identity


@pytest.mark.parametrize(
    ("term", "types"),
    [
        (of(1), "decimal integer long int short byte nonNegativeInteger positiveInteger unsignedLong unsignedInt"
                " unsignedShort unsignedByte"),
        (of("1.0", "decimal"), "decimal integer long int short byte nonNegativeInteger positiveInteger unsignedLong"
                               " unsignedInt unsignedShort unsignedByte"),
        (of("-0.5", "decimal"), "decimal"),
        (of(0), "decimal integer long int short byte nonNegativeInteger nonPositiveInteger unsignedLong unsignedInt"
                " unsignedShort unsignedByte"),
        (of(-129), "decimal integer long int short nonPositiveInteger negativeInteger"),
        (of(255, "unsignedByte"), "decimal integer long int short nonNegativeInteger positiveInteger unsignedLong"
                                  " unsignedInt unsignedShort unsignedByte"),
        (of(2**64), "decimal integer nonNegativeInteger positiveInteger"),
        (of("1" * 40 + ".0", "decimal"), "decimal integer nonNegativeInteger positiveInteger"),
        (of("1", "double"), "double"), (of("NaN", "float"), "float"),
        (of("1", "boolean"), "boolean"),
        (A, "string normalizedString token language Name NCName NMTOKEN PlainLiteral"),
        (rdf("a@", "PlainLiteral"), "string normalizedString token language Name NCName NMTOKEN PlainLiteral"),
        (rdf("a@en", "PlainLiteral"), "PlainLiteral"), (text("a"), "PlainLiteral"),
        (literal("a:b"), "string normalizedString token Name NMTOKEN PlainLiteral"),
        (literal("1"), "string normalizedString token NMTOKEN PlainLiteral"),
        (literal("a b"), "string normalizedString token PlainLiteral"),
        (literal("a  b"), "string normalizedString PlainLiteral"), (literal("a\tb"), "string PlainLiteral"),
        (literal(""), "string normalizedString token PlainLiteral"),
        (of("x-klingon", "language"), "string normalizedString token language Name NCName NMTOKEN PlainLiteral"),
        (of("2000-01-01T00:00:00", "dateTime"), "dateTime"),
        (of("2000-01-01T00:00:00Z", "dateTime"), "dateTime dateTimeStamp"),
        (of("2000-01-01T00:00:00Z", "dateTimeStamp"), "dateTime dateTimeStamp"),
        (of("2000-01-01", "date"), "date"), (of("00:00:00", "time"), "time"),
        (of("P1D", "dayTimeDuration"), "dayTimeDuration"), (of("P1Y", "duration"), "yearMonthDuration"),
        (of("P0M", "yearMonthDuration"), "dayTimeDuration yearMonthDuration"),
        (of("0aFF", "hexBinary"), "hexBinary"), (of("Cv8=", "base64Binary"), "base64Binary"),
        (of("http://example.org/ä b", "anyURI"), "anyURI"),
        (rdf("<a b='1'/>text<!-- c -->", "XMLLiteral"), "XMLLiteral"),
    ],
)  # fmt: skip
def test_guards_are_about_values(term: Term, types: str) -> None:
    expected = types.split()
    assert [name for name in TYPES if call(f"is-literal-{name}", term)] == [n for n in TYPES if n in expected]
    assert {name for name in TYPES if call(f"is-literal-not-{name}", term)} == set(TYPES) - set(expected)


@pytest.mark.parametrize(
    "term",
    [
        X, B, listed(1), literal("x", "urn:t"), of("x"), of(256, "byte"), of(" 1 "), of("a  b", "token"),
        of("1", "language"), of("a:b", "NCName"), of("x y", "NMTOKEN"), of("a\nb", "normalizedString"),
        of("2000-01-01T00:00:00", "dateTimeStamp"), of("2000-02-30", "date"), of("24:00:01", "time"),
        of("P1M1D", "duration"), of("P1M", "dayTimeDuration"), of("abc", "hexBinary"), of("0g", "hexBinary"),
        of("Cv8", "base64Binary"), of("Cv9=", "base64Binary"), of("Cv8= ", "base64Binary"), of("A===", "base64Binary"),
        of("2000", "gYear"), of("yes", "boolean"), rdf("a", "PlainLiteral"), rdf("a@1", "PlainLiteral"),
        rdf("<a>", "XMLLiteral"), rdf("<p:a/>", "XMLLiteral"), rdf("</x><x>", "XMLLiteral"),
        rdf("<!DOCTYPE a []>", "XMLLiteral"), rdf("&lol;", "XMLLiteral"),
        rdf('<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>', "XMLLiteral"),
    ],
)  # fmt: skip
def test_non_literals_pass_no_guard(term: Term) -> None:
    assert not [name for name in TYPES if call(f"is-literal-{name}", term)]
    assert not [name for name in TYPES if call(f"is-literal-not-{name}", term)]


IDENTICAL = [
    (of(1), of("+01")), (of(1), of("1.0", "decimal")), (of(1), of(1, "byte")), (of("NaN", "float"), of("NaN", "float")),
    (of("1e0", "double"), of("1", "double")), (of("1", "boolean"), TRUE), (A, of("a", "token")),
    (A, rdf("a@", "PlainLiteral")), (text("a"), rdf("a@EN", "PlainLiteral")), (X, X), (B, B), (of("x"), of("x")),
    (of("2000-01-01T00:00:00Z", "dateTime"), of("1999-12-31T24:00:00+00:00", "dateTimeStamp")),
    (of("P1D", "dayTimeDuration"), of("PT24H", "duration")), (of("P0M", "yearMonthDuration"), of("PT0S", "duration")),
    (of("aa", "hexBinary"), of("AA", "hexBinary")), (of("C v 8 =", "base64Binary"), of("Cv8=", "base64Binary")),
    (rdf("<a c='1' b='2'/>", "XMLLiteral"), rdf('<a b="2" c="1"></a>', "XMLLiteral")),
    (listed(1, A), listed(of("01"), of("a", "string"))), (listed(listed(1), 2), listed(listed(of("1", "int")), 2)),
    (listed(), listed()), (compound(X, [of("01")]), compound(X, [of(1)])),
]  # fmt: skip
DIFFERENT = [
    (of(1), of(2)), (of(1), of("1", "double")), (of("1", "float"), of("1", "double")), (of(1), literal("1")),
    (of("0", "double"), of("-0", "double")), (of("1", "boolean"), of(1)), (A, text("a")), (text("a"), text("a", "fr")),
    (of("2000-01-01T00:00:00Z", "dateTime"), of("2000-01-01T01:00:00+01:00", "dateTime")),
    (of("2000-01-01T00:00:00Z", "dateTime"), of("2000-01-01T00:00:00", "dateTime")),
    (of("2000-01-01", "date"), of("2000-01-01T00:00:00", "dateTime")), (of("P1M", "duration"), of("P30D", "duration")),
    (of("Cv8=", "base64Binary"), of("0AFF", "hexBinary")), (of("urn:x", "anyURI"), literal("urn:x")),
    (rdf("<a/>", "XMLLiteral"), rdf("<b/>", "XMLLiteral")), (rdf("<a/>", "XMLLiteral"), literal("<a/>")),
]  # fmt: skip
APART = [
    (X, B), (X, literal("urn:x")), (of("x"), of("y")), (literal("a", "urn:t"), literal("b", "urn:t")), (of("x"), A),
    (listed(1, 2), listed(2, 1)), (listed(1), listed(1, 1)), (listed(), listed(listed())), (listed(1), of(1)),
    (listed(listed(1), 2), listed(listed(1, 2))), (compound(X, [of(1)]), listed(1)),
]  # fmt: skip


@pytest.mark.parametrize(("left", "right"), IDENTICAL)
def test_identical_values(left: Term, right: Term) -> None:
    assert functions.lookup(SAME).evaluate(left, right) is True
    assert same(right, left)
    assert call("literal-not-identical", left, right) is False


@pytest.mark.parametrize(("left", "right"), DIFFERENT + APART)
def test_different_values(left: Term, right: Term) -> None:
    assert functions.lookup(SAME).evaluate(left, right) is False
    assert not same(right, left)
    assert call("literal-not-identical", left, right) is ((left, right) in DIFFERENT)


def test_unbound_terms_equal_nothing() -> None:
    assert functions.lookup(SAME).evaluate(None, A) is False
    assert functions.lookup(SAME).evaluate(None, None) is False


@pytest.mark.more
def test_deeply_nested_lists_are_compared() -> None:
    left, right = of("01"), of(1)
    for _ in range(DEEP):
        left, right = listed(left), listed(right)
    assert left != right
    assert same(left, right)
    assert not same(left, listed(right))


# Casts


HEX, BASE64 = of("0AFF", "hexBinary"), of("Cv8=", "base64Binary")
STAMP = of("2000-01-01T00:00:00Z", "dateTimeStamp")


@pytest.mark.parametrize(
    ("datatype", "term", "result"),
    [
        ("xs:integer", literal(" 12 "), of(12)), ("xs:integer", of("-1.9", "decimal"), of(-1)),
        ("xs:integer", of("1.5"), None), ("xs:integer", TRUE, of(1)), ("xs:integer", of("INF", "double"), None),
        ("xs:integer", of("7", "token"), of(7)), ("xs:integer", rdf("7@", "PlainLiteral"), of(7)),
        ("xs:integer", rdf("7@en", "PlainLiteral"), None), ("xs:integer", text("7"), None),
        ("xs:byte", of(127), of(127, "byte")), ("xs:byte", of(128), None), ("xs:byte", literal("1.0"), None),
        ("xs:negativeInteger", of(0), None), ("xs:unsignedLong", of(2**64), None),
        ("xs:decimal", literal("-.5"), of("-0.5", "decimal")), ("xs:decimal", of("1e2", "double"), of(100, "decimal")),
        ("xs:decimal", literal("1e2"), None), ("xs:decimal", of("NaN", "float"), None),
        ("xs:double", literal("-INF"), of("-INF", "double")), ("xs:double", literal("+INF"), of("INF", "double")),
        ("xs:float", of("0.1", "double"), of("0.1", "float")), ("xs:double", A, None),
        ("xs:boolean", literal("1"), TRUE), ("xs:boolean", of("0.0", "decimal"), FALSE),
        ("xs:boolean", of("NaN", "double"), FALSE), ("xs:boolean", literal("yes"), None),
        ("xs:string", of("1.50", "decimal"), literal("1.5")), ("xs:string", of("1e6", "double"), literal("1.0E6")),
        ("xs:string", of("0", "boolean"), literal("false")), ("xs:string", of("a", "Name"), A),
        ("xs:string", of("PT36H", "dayTimeDuration"), literal("P1DT12H")), ("xs:string", of("x"), None),
        ("xs:string", of("de", "hexBinary"), literal("DE")),
        ("xs:string", of("Cv 8=", "base64Binary"), literal("Cv8=")),
        ("xs:string", of("1999-12-31T24:00:00-05:00", "dateTime"), literal("2000-01-01T00:00:00-05:00")),
        ("xs:string", of("urn:x", "anyURI"), literal("urn:x")), ("xs:string", B, None), ("xs:string", listed(1), None),
        ("xs:token", listed(), None), ("rdf:PlainLiteral", listed(1), None), ("xs:boolean", listed(1), None),
        ("xs:normalizedString", literal("a\tb\n"), of("a b ", "normalizedString")),
        ("xs:token", literal(" a\t b\n"), of("a b", "token")), ("xs:token", of(1), of(1, "token")),
        ("xs:language", literal(" en-GB"), of("en-GB", "language")), ("xs:language", literal("en_GB"), None),
        ("xs:language", of("de", "hexBinary"), of("DE", "language")),
        ("xs:Name", literal(":a.b-1"), of(":a.b-1", "Name")), ("xs:Name", literal("1a"), None),
        ("xs:NCName", literal("a:b"), None), ("xs:NCName", literal("\u00e9"), of("\u00e9", "NCName")),
        ("xs:NMTOKEN", literal("1a"), of("1a", "NMTOKEN")), ("xs:NMTOKEN", literal(""), None),
        ("xs:NMTOKEN", literal("a b"), None), ("xs:NCName", TRUE, of("true", "NCName")),
        ("xs:anyURI", literal(" http://a/ b "), of("http://a/ b", "anyURI")),
        ("xs:anyURI", of("urn:x", "anyURI"), of("urn:x", "anyURI")), ("xs:anyURI", of(1), None), ("xs:anyURI", X, None),
        ("xs:hexBinary", literal(" 0aff"), HEX), ("xs:hexBinary", BASE64, HEX), ("xs:hexBinary", literal("0af"), None),
        ("xs:base64Binary", HEX, BASE64), ("xs:base64Binary", literal(" Cv8\n= "), BASE64),
        ("xs:base64Binary", of(1), None), ("xs:base64Binary", literal(""), of("", "base64Binary")),
        ("xs:dateTime", of("2000-01-01", "date"), of("2000-01-01T00:00:00", "dateTime")),
        ("xs:dateTime", STAMP, of("2000-01-01T00:00:00Z", "dateTime")), ("xs:dateTime", literal("2000-01-01"), None),
        ("xs:dateTimeStamp", literal("2000-01-01T00:00:00Z"), STAMP), ("xs:dateTimeStamp", STAMP, STAMP),
        ("xs:dateTimeStamp", of("2000-01-01Z", "date"), STAMP), ("xs:dateTimeStamp", of("2000-01-01", "date"), None),
        ("xs:dateTimeStamp", literal("2000-01-01T00:00:00"), None),
        ("xs:date", of("2000-01-01T23:00:00-05:00", "dateTime"), of("2000-01-01-05:00", "date")),
        ("xs:time", of("2000-01-01T23:00:00-05:00", "dateTime"), of("23:00:00-05:00", "time")),
        ("xs:time", of("2000-01-01", "date"), None),
        ("xs:dayTimeDuration", of("P1Y2D", "duration"), of("P2D", "dayTimeDuration")),
        ("xs:yearMonthDuration", of("P1D", "dayTimeDuration"), of("P0M", "yearMonthDuration")),
        ("xs:yearMonthDuration", literal("P1Y1D"), None),
        ("rdf:PlainLiteral", of(1), literal("1")), ("rdf:PlainLiteral", text("a"), text("a")),
        ("rdf:PlainLiteral", rdf("a@EN", "PlainLiteral"), text("a")), ("rdf:PlainLiteral", of("a", "token"), A),
        ("rdf:PlainLiteral", rdf("a@b@", "PlainLiteral"), literal("a@b")), ("rdf:PlainLiteral", of("x"), None),
        ("rdf:XMLLiteral", literal("<a/>"), rdf("<a/>", "XMLLiteral")), ("rdf:XMLLiteral", literal("<a>"), None),
        ("rdf:XMLLiteral", rdf("<b/>", "XMLLiteral"), rdf("<b/>", "XMLLiteral")), ("rdf:XMLLiteral", of(1), None),
    ],
)  # fmt: skip
def test_casts(datatype: str, term: Term, result: Term | None) -> None:
    assert call(datatype, term) == result


STRINGS = st.text(st.characters(codec="utf-8"), max_size=20)
NUMBERS = st.one_of(
    st.integers(-(10**30), 10**30).map(of),
    st.decimals(-(10**9), 10**9, places=4).map(lambda value: of(format(value, "f"), "decimal")),
    st.floats(width=64).map(lambda value: of(repr(value).replace("inf", "INF").replace("nan", "NaN"), "double")),
    st.floats(width=32).map(lambda value: of(repr(value).replace("inf", "INF").replace("nan", "NaN"), "float")),
)
YEARS = st.integers(-9999, 99999).map(lambda year: f"{'-' if year < 0 else ''}{abs(year):04}")
ZONES = st.sampled_from(["", "Z", "+14:00", "-14:00", "+05:30", "-00:30"])
DATES = st.builds(
    lambda year, month, day, zone: of(f"{year}-{month:02}-{day:02}{zone}", "date"),
    YEARS, st.integers(1, 12), st.integers(1, 28), ZONES,
)  # fmt: skip
CLOCKS = st.builds(
    lambda hour, minute, second, fraction, zone: f"{hour:02}:{minute:02}:{second:02}{fraction}{zone}",
    st.integers(0, 23), st.integers(0, 59), st.integers(0, 59), st.sampled_from(["", ".5", ".001", ".123456"]), ZONES,
)  # fmt: skip
TIMES = CLOCKS.map(lambda clock: of(clock, "time"))
DATE_TIMES = st.builds(
    lambda year, month, day, clock: of(f"{year}-{month:02}-{day:02}T{clock}", "dateTime"),
    YEARS, st.integers(1, 12), st.integers(1, 28), CLOCKS,
)  # fmt: skip
DAY_TIMES = st.integers(-(10**12), 10**12).map(
    lambda thousandths: of(f"{'-' if thousandths < 0 else ''}PT{abs(thousandths) / 1000:.3f}S", "dayTimeDuration")
)
YEAR_MONTHS = st.integers(-99999, 99999).map(
    lambda months: of(f"{'-' if months < 0 else ''}P{abs(months)}M", "yearMonthDuration")
)
LITERALS = st.one_of(
    NUMBERS, DATES, TIMES, DATE_TIMES, DAY_TIMES, YEAR_MONTHS, STRINGS.map(literal),
    st.binary(max_size=9).map(lambda data: of(data.hex(), "hexBinary")), st.sampled_from([TRUE, FALSE, text("a")]),
)  # fmt: skip


@pytest.mark.more
@given(LITERALS)
def test_a_value_that_is_cast_to_a_string_and_back_is_the_same(term: Term) -> None:
    datatype = next((name for name in ("hexBinary", "boolean", "double", "float", "date", "dateTime", "time",
                                       "dayTimeDuration", "yearMonthDuration", "decimal", "string")
                     if term.endswith(f"#{name}>")), None) or ("integer" if "#integer>" in term else None)  # fmt: skip
    if datatype is None:
        return
    assert same(call(f"xs:{datatype}", call("xs:string", term)), term)


@given(LITERALS)
def test_a_value_passes_the_guard_or_the_negative_guard_of_each_type(term: Term) -> None:
    for name in TYPES:
        assert call(f"is-literal-{name}", term) != call(f"is-literal-not-{name}", term)


@given(LITERALS, st.sampled_from(TYPES))
def test_a_cast_value_passes_the_guard_of_its_type(term: Term, name: str) -> None:
    prefix = "rdf" if name in ("XMLLiteral", "PlainLiteral") else "xs"
    cast = call(f"{prefix}:{name}", term)
    assert cast is None or call(f"is-literal-{name}", cast)


@given(LITERALS, LITERALS)
def test_equal_values_have_equal_keys(left: Term, right: Term) -> None:
    assert (identity(left) == identity(right)) == same(left, right) != call("literal-not-identical", left, right)


def test_every_type_has_a_space() -> None:
    assert {datatype.rpartition("#")[2] for datatype in SPACES} == set(TYPES)


# IRIs and strings


def test_iri_string_is_a_test_and_computes_both_ways() -> None:
    builtin = SPELLED[PRED + "iri-string"]
    assert call("iri-string", X, literal("urn:x")) is True
    assert call("iri-string", X, of("urn:x", "token")) is True
    assert call("iri-string", X, literal("urn:y")) is False
    assert call("iri-string", X, X) is False
    assert call("iri-string", A, A) is False
    of_string, of_iri = builtin.modes
    assert (of_string.targets(2), of_string.arguments(2)) == (range(1), (1,))
    assert (of_iri.targets(2), of_iri.arguments(2)) == (range(1, 2), (0,))
    compute = functions.lookup(of_string.function).evaluate
    assert [compute(term) for term in (literal("urn:x"), literal("x y"), literal("x"), X, None)] == [X, *[None] * 4]
    compute = functions.lookup(of_iri.function).evaluate
    assert [compute(term) for term in (X, A, B, None)] == [literal("urn:x"), None, None, None]


# The page


def test_the_page_lists_all_built_ins_but_guards_and_casts() -> None:
    page = (Path(__file__).parent.parent / "docs/languages/rif-builtins.md").read_text()
    listed = [line for line in page.splitlines() if line.startswith(("| `func:", "| `pred:"))]
    assert sorted(listed) == sorted(rows())
    table = next(part for part in page.split("\n\n") if part.startswith("| `T` |"))
    assert sorted(re.findall(r"`(?:xs|rdf):(\w+)`", re.sub(r"\|[^|]*\|$", "", table, flags=re.M))) == sorted(TYPES)


def rows() -> list[str]:
    """Returns the tables of docs/languages/rif-builtins.md."""
    prefixes = {FUNC: "func", PRED: "pred"}
    results = []
    for name, builtin in SPELLED.items():
        space, _, local = name.rpartition("#")
        if f"{space}#" in prefixes and not local.startswith("is-literal-"):
            arguments, _, message = builtin.doc.partition(") ")
            results.append(f"| `{prefixes[space + '#']}:{local}{arguments})` | {message} |")
    return results
