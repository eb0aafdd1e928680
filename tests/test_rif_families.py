"""Results of RIF's built-ins, family by family: by example and by law."""

from __future__ import annotations

import re
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from squall import functions
from squall.errors import BuilderError
from squall.functions.rif.names import FUNC, PRED
from squall.functions.rif.spaces import same
from squall.functions.sparql.names import FALSE, TRUE
from squall.functions.values import number
from squall.rdf import Term, literal, parts
from tests.rif_calls import A, Result, X, assert_total_order, call, check, of, rdf, text

NAN, INF = of("NaN", "double"), of("INF", "double")


def num(lexical: str, datatype: str = "decimal") -> Term:
    return of(lexical, datatype)


# Numbers


@pytest.mark.parametrize(
    ("name", "given", "result"),
    [
        ("numeric-add", (of(2), of(3, "byte")), of(5)), ("numeric-add", (of(1), num("0.5")), num("1.5")),
        ("numeric-add", (num("0.1", "float"), num("0.2", "double")), num("0.30000000149011613", "double")),
        ("numeric-add", (num("3e38", "float"), num("3e38", "float")), num("INF", "float")),
        ("numeric-add", (of(1), literal("1")), None), ("numeric-add", (of(1), TRUE), None),
        ("numeric-subtract", (of(2), of(3)), of(-1)), ("numeric-subtract", (INF, INF), NAN),
        ("numeric-multiply", (num("1.5"), num("-2")), num("-3")),
        ("numeric-multiply", (of(2**70), of(2**70)), of(2**140)),
        ("numeric-divide", (of(6), of(3)), num("2")), ("numeric-divide", (of(1), of(0)), None),
        ("numeric-divide", (num("1", "float"), of(0)), num("INF", "float")), ("numeric-divide", (of(1), NAN), NAN),
        ("numeric-divide", (of(1), of(3)), num("0." + "3" * 60)),
        ("numeric-integer-divide", (of(10), of(3)), of(3)), ("numeric-integer-divide", (of(3), of(-2)), of(-1)),
        ("numeric-integer-divide", (of(-3), of(2)), of(-1)), ("numeric-integer-divide", (of(-3), of(-2)), of(1)),
        ("numeric-integer-divide", (num("9.0"), of(3)), of(3)),
        ("numeric-integer-divide", (num("-3.5"), of(3)), of(-1)),
        ("numeric-integer-divide", (num("3", "float"), of(4)), of(0)), ("numeric-integer-divide", (of(5), of(0)), None),
        ("numeric-integer-divide", (num("5", "double"), of(0)), None), ("numeric-integer-divide", (of(5), INF), of(0)),
        ("numeric-integer-divide", (INF, of(5)), None), ("numeric-integer-divide", (of(5), NAN), None),
        ("numeric-integer-divide", (NAN, of(5)), None),
        ("numeric-integer-divide", (of(10**40), of(7)), of(10**40 // 7)),
        ("numeric-mod", (of(10), of(3)), of(1)), ("numeric-mod", (of(-10), of(3)), of(-1)),
        ("numeric-mod", (of(10), of(-3)), of(1)), ("numeric-mod", (of(6), of(-2)), of(0)),
        ("numeric-mod", (of(5), of(0)), None), ("numeric-mod", (num("4.5"), num("1.2")), num("0.9")),
        ("numeric-mod", (num("-4.5"), num("1.2")), num("-0.9")), ("numeric-mod", (num("4.5"), num("0")), None),
        ("numeric-mod", (num("1" + "0" * 40), num("7")), num(str(10**40 % 7))),
        ("numeric-mod", (num("123", "double"), num("6", "double")), num("3.0", "double")),
        ("numeric-mod", (num("-5.5", "double"), of(2)), num("-1.5", "double")),
        ("numeric-mod", (num("1", "float"), of(0)), num("NaN", "float")),
        ("numeric-mod", (of(5), INF), num("5.0", "double")),
        ("numeric-mod", (INF, of(5)), NAN), ("numeric-mod", (of(5), NAN), NAN),
        ("numeric-mod", (num("-0", "double"), of(3)), num("-0.0", "double")),
        ("numeric-integer-mod", (of(-10), of(3)), of(-1)),
        ("numeric-equal", (of(1), num("1.0", "float")), True), ("numeric-equal", (NAN, NAN), False),
        ("numeric-equal", (num("0.1"), num("0.1", "float")), True),
        ("numeric-equal", (num("0.1", "float"), num("0.1", "double")), False),
        ("numeric-equal", (num("-0", "double"), of(0)), True), ("numeric-equal", (of(1), literal("1")), False),
        ("numeric-not-equal", (of(1), of(2)), True), ("numeric-not-equal", (NAN, NAN), True),
        ("numeric-not-equal", (of(1), of(1)), False), ("numeric-not-equal", (of(1), A), False),
        ("numeric-less-than", (of(9), of(10)), True), ("numeric-less-than", (NAN, of(1)), False),
        ("numeric-less-than-or-equal", (of(1), num("1.0")), True),
        ("numeric-less-than-or-equal", (of(2), of(1)), False),
        ("numeric-greater-than", (INF, of(10**300)), True), ("numeric-greater-than", (of(1), of(1)), False),
        ("numeric-greater-than-or-equal", (of(1), of(1)), True), ("numeric-greater-than-or-equal", (A, of(1)), False),
    ],
)  # fmt: skip
def test_numbers(name: str, given: tuple[Term, ...], result: Result) -> None:
    check(name, given, result)


INTEGERS = st.integers(-(10**25), 10**25)
DECIMALS = st.decimals(-(10**12), 10**12, places=6)
FLOATS = st.floats(allow_nan=False, allow_infinity=False)


def exact(value: int | Decimal) -> Term:
    return of(value) if isinstance(value, int) else num(format(value, "f"))


def value_of(term: Any) -> Fraction:
    result = number(term)
    assert result is not None
    return Fraction(result.value)


@given(st.one_of(INTEGERS, DECIMALS), st.one_of(INTEGERS, DECIMALS).filter(bool))
def test_quotient_and_rest_make_up_the_dividend(one: int | Decimal, two: int | Decimal) -> None:
    quotient = value_of(call("numeric-integer-divide", exact(one), exact(two)))
    remainder = value_of(call("numeric-mod", exact(one), exact(two)))
    assert quotient * Fraction(two) + remainder == Fraction(one)
    assert abs(remainder) < abs(Fraction(two))
    assert remainder == 0 or (remainder < 0) == (one < 0)


@given(st.one_of(INTEGERS, DECIMALS), st.one_of(INTEGERS, DECIMALS))
def test_exact_sums_and_products(one: int | Decimal, two: int | Decimal) -> None:
    left, right = exact(one), exact(two)
    assert value_of(call("numeric-add", left, right)) == Fraction(one) + Fraction(two)
    assert value_of(call("numeric-multiply", left, right)) == Fraction(one) * Fraction(two)
    assert same(call("numeric-subtract", call("numeric-add", left, right), right), left)


MIXED = st.one_of(
    INTEGERS.map(exact), DECIMALS.map(exact), FLOATS.map(lambda value: num(repr(value), "double")),
    st.floats(width=32, allow_nan=False).map(lambda value: num(repr(value).replace("inf", "INF"), "float")),
)  # fmt: skip


@given(MIXED, MIXED)
def test_numbers_are_in_a_total_order(one: Term, two: Term) -> None:
    assert_total_order("numeric", one, two)


# Truth values and XML


FALSE_1, TRUE_1 = of("0", "boolean"), of("1", "boolean")
XML = [
    rdf(text, "XMLLiteral") for text in ("<a b='1'><c/></a>", '<a  b="1"><c></c></a>', "<a b='2'/>", "x<!-- y -->", "x")
]
NAMESPACES = [rdf(f"<{name} xmlns{colon}='urn:n'/>", "XMLLiteral") for name, colon in (("a", ""), ("p:a", ":p"))]


@pytest.mark.parametrize(
    ("name", "given", "result"),
    [
        ("not", (TRUE,), FALSE), ("not", (FALSE_1,), TRUE), ("not", (of(1),), None), ("not", (literal("true"),), None),
        ("boolean-equal", (TRUE, TRUE_1), True), ("boolean-equal", (FALSE, TRUE), False),
        ("boolean-equal", (TRUE, of(1)), False),
        ("boolean-less-than", (FALSE_1, TRUE), True), ("boolean-less-than", (TRUE, TRUE_1), False),
        ("boolean-greater-than", (TRUE, FALSE), True), ("boolean-greater-than", (FALSE, TRUE), False),
        ("boolean-greater-than", (TRUE, A), False),
        ("XMLLiteral-equal", (XML[0], XML[1]), True), ("XMLLiteral-equal", (XML[0], XML[2]), False),
        ("XMLLiteral-equal", (XML[3], XML[4]), False), ("XMLLiteral-equal", (XML[0], literal("<a/>")), False),
        ("XMLLiteral-not-equal", (XML[0], XML[2]), True), ("XMLLiteral-not-equal", (XML[0], XML[1]), False),
        ("XMLLiteral-not-equal", (XML[0], rdf("<a>", "XMLLiteral")), False),
        ("XMLLiteral-equal", (NAMESPACES[0], NAMESPACES[1]), False),
        ("XMLLiteral-equal", tuple(rdf("a\n" * 9000 + b, "XMLLiteral") for b in ("<![CDATA[b]]>", "b")), True),
        ("XMLLiteral-equal", (rdf("<?a b?>", "XMLLiteral"), rdf("<?a  b?>", "XMLLiteral")), True),
        ("XMLLiteral-equal", (rdf("<?a b?>", "XMLLiteral"), rdf("<?a c?>", "XMLLiteral")), False),
        ("XMLLiteral-equal", (rdf("<a/><b/>", "XMLLiteral"), rdf("<a><b/></a>", "XMLLiteral")), False),
        ("XMLLiteral-equal", (rdf("a<b/>", "XMLLiteral"), rdf("<b/>a", "XMLLiteral")), False),
        ("XMLLiteral-equal", (rdf("<p:a xmlns:p='urn:n' xmlns:q='urn:q'/>", "XMLLiteral"), NAMESPACES[1]), True),
        ("XMLLiteral-equal", (rdf("<p:a xmlns:p='urn:m'/>", "XMLLiteral"), NAMESPACES[1]), False),
        ("XMLLiteral-equal", (rdf("&lt;&#x41;", "XMLLiteral"), rdf("&#60;A", "XMLLiteral")), True),
        ("XMLLiteral-equal", (rdf("<![CDATA[<]]>", "XMLLiteral"), rdf("&lt;", "XMLLiteral")), True),
    ],
)  # fmt: skip
def test_truth_values_and_xml(name: str, given: tuple[Term, ...], result: Result) -> None:
    check(name, given, result)


def test_an_xml_literal_that_is_nested_deeply_is_read() -> None:
    deep = rdf("<a>" * 10**5 + "</a>" * 10**5, "XMLLiteral")
    assert call("XMLLiteral-equal", deep, deep) is True


# Strings


def say(*characters: str) -> tuple[Term, ...]:
    return tuple(map(literal, characters))


@pytest.mark.parametrize(
    ("name", "given", "result"),
    [
        ("compare", say("abc", "abc"), of(0)), ("compare", say("a", "b"), of(-1)), ("compare", say("b", "B"), of(1)),
        ("compare", say("\uffff", "\U00010000"), of(-1)), ("compare", (A, of(1)), None),
        ("compare", (A, text("a")), None),
        ("compare", (A, of("a", "NCName")), of(0)),
        ("concat", say("un", "grate", "ful"), literal("ungrateful")), ("concat", (A, of(1), TRUE), literal("a1true")),
        ("concat", say("a"), A), ("concat", (A, of("x")), None),
        ("string-join", say("Now", "is", "the time", " "), literal("Now is the time")),
        ("string-join", say("a", ","), A), ("string-join", say(","), literal("")),
        ("string-join", (A, of(1), A), None),
        # The places of F&O 7.4.3: from 1, rounded.
        ("substring", (literal("motor car"), of(6)), literal(" car")),
        ("substring", (literal("metadata"), of(4), of(3)), literal("ada")),
        ("substring", (literal("12345"), num("1.5"), num("2.6")), literal("234")),
        ("substring", (literal("12345"), of(0), of(3)), literal("12")),
        ("substring", (literal("12345"), of(5), of(-3)), literal("")),
        ("substring", (literal("12345"), of(-3), of(5)), literal("1")),
        ("substring", (literal("12345"), NAN, of(3)), literal("")),
        ("substring", (literal("12345"), of(1), NAN), literal("")),
        ("substring", (literal("12345"), of(-42), INF), literal("12345")),
        ("substring", (literal("12345"), num("-INF", "double"), INF), literal("")),
        ("substring", (literal("12345"), num("-INF", "double")), literal("12345")),
        ("substring", (literal("12345"), of(-(10**400)), of(10**400 + 3)), literal("12")),
        ("substring", (literal("12345"), of(10**400), INF), literal("")),
        ("substring", (literal("foobar"), of(3)), literal("obar")), ("substring", (A, A), None),
        ("substring", (literal("\U0001d11ea"), of(2)), A),
        ("string-length", say("Harp not on that string, madam; that is past."), of(45)),
        ("string-length", say(""), of(0)), ("string-length", say("\U0001d11e"), of(1)),
        ("string-length", (text("a"),), None),
        ("upper-case", say("abCd0\u00df"), literal("ABCD0SS")), ("lower-case", say("ABc!D"), literal("abc!d")),
        ("encode-for-uri", say("~b\u00e9b\u00e9 100% a/b_-."), literal("~b%C3%A9b%C3%A9%20100%25%20a%2Fb_-.")),
        ("iri-to-uri", say("http://a/~b\u00e9?x=100%#[1]<>\"{}|\\^` '"),
         literal("http://a/~b%C3%A9?x=100%#[1]%3C%3E%22%7B%7D%7C%5C%5E%60%20'")),
        ("escape-html-uri", say("http://a/~b\u00e9 <\"\x7f\n%>"), literal("http://a/~b%C3%A9 <\"%7F%0A%>")),
        ("substring-before", say("tattoo", "attoo"), literal("t")),
        ("substring-before", say("tattoo", "x"), literal("")),
        ("substring-before", say("tattoo", ""), literal("")), ("substring-before", say("tattoo", "t"), literal("")),
        ("substring-after", say("tattoo", "tat"), literal("too")), ("substring-after", say("tattoo", "x"), literal("")),
        ("substring-after", say("tattoo", ""), literal("tattoo")),
        ("replace", say("abracadabra", "bra", "*"), literal("a*cada*")),
        ("replace", say("abracadabra", "a.*?a", "*"), literal("*c*bra")),
        ("replace", say("abracadabra", "a(.)", "a$1$1"), literal("abbraccaddabbra")),
        ("replace", say("darted", "^(.*?)d(.*)$", "$1c$2"), literal("carted")),
        ("replace", say("abracadabra", ".*?", "$1"), None), ("replace", say("a", "a", "\\x"), None),
        ("replace", say("a", "a", "$"), None), ("replace", say("A", "a", "b", "i"), literal("b")),
        ("replace", say("a.b", ".", "$", "q"), literal("a$b")), ("replace", say("a", "a", "b", "z"), None),
        ("replace", say("hallo", "[a-z-[aeiou]]", "."), literal(".a..o")),
        ("contains", say("tattoo", "tt"), True), ("contains", say("tattoo", "x"), False),
        ("contains", say("", ""), True),
        ("contains", (A, text("a")), False),
        ("starts-with", say("tattoo", "tat"), True), ("starts-with", say("tattoo", "att"), False),
        ("ends-with", say("tattoo", "too"), True), ("ends-with", say("tattoo", "atto"), False),
        ("matches", say("abracadabra", "bra"), True), ("matches", say("abracadabra", "^bra"), False),
        ("matches", say("a\nb", "a.b"), False), ("matches", say("a\nb", "a.b", "s"), True),
        ("matches", say("b", "[a-z-[aeiou]]"), True), ("matches", say("e", "[a-z-[aeiou]]"), False),
        ("matches", say("_", r"\w"), False), ("matches", say("-", r"\c"), True), ("matches", say("1", r"\i"), False),
        ("matches", say("\u03b1", r"\p{IsGreek}"), True), ("matches", say("a", "("), False),
        ("matches", say("a", "a", "z"), False), ("matches", (of("a", "token"), of("A", "Name"), literal("i")), True),
        ("matches", (of(1), literal("1")), False),
    ],
)  # fmt: skip
def test_strings(name: str, given: tuple[Term, ...], result: Result) -> None:
    check(name, given, result)


WORDS = st.text("ab\u00e9\U0001d11e ", max_size=12)


@given(WORDS, WORDS)
def test_strings_before_and_after(one: str, two: str) -> None:
    full_result, sought = literal(one), literal(two)
    if call("contains", full_result, sought) and two:
        pieces = call("substring-before", full_result, sought), sought, call("substring-after", full_result, sought)
        assert call("concat", *pieces) == full_result
    assert call("starts-with", call("concat", full_result, sought), full_result) is True
    assert call("ends-with", call("concat", full_result, sought), sought) is True
    assert call("compare", full_result, sought) == of((one > two) - (one < two))


@given(WORDS, st.integers(-3, 15), st.integers(-3, 15))
def test_substring_takes_the_places_from_start_to_start_and_length(characters: str, start: int, length: int) -> None:
    expected = [item for place, item in enumerate(characters, 1) if start <= place < start + length]
    assert call("substring", literal(characters), of(start), of(length)) == literal("".join(expected))
    remainder = [item for place, item in enumerate(characters, 1) if start <= place]
    assert call("substring", literal(characters), of(start)) == literal("".join(remainder))


@given(st.text(st.characters(codec="utf-8"), max_size=12))
def test_encode_for_uri_gives_ascii(characters: str) -> None:
    for name in ("encode-for-uri", "iri-to-uri", "escape-html-uri"):
        encoded = call(name, literal(characters))
        assert parts(encoded).lexical.isascii()
    assert re.fullmatch("[A-Za-z0-9_.~%-]*", parts(call("encode-for-uri", literal(characters))).lexical)


# Python reads these expressions as XPath does.
SIMPLE = st.recursive(
    st.sampled_from(["a", "b", "[ab]", "[^a]", "."]),
    lambda inner: st.one_of(
        st.tuples(inner, inner).map("".join), st.tuples(inner, inner).map(lambda two: f"({two[0]}|{two[1]})"),
        inner.map(lambda one: f"({one})*"), inner.map(lambda one: f"({one})?"),
        inner.map(lambda one: f"({one}){{1,2}}"),
    ),
    max_leaves=4,
)  # fmt: skip


@given(SIMPLE, st.text("abc", max_size=6))
def test_patterns_match_as_those_of_python(pattern: str, subject: str) -> None:
    assert call("matches", *say(subject, pattern)) is (re.search(pattern, subject) is not None)
    assert call("matches", *say(subject, f"^({pattern})$")) is (re.fullmatch(pattern, subject) is not None)
    replaced = call("replace", *say(subject, pattern, "-"))
    assert replaced == (None if re.search(pattern, "") else literal(re.sub(pattern, "-", subject)))


def test_a_constant_pattern_that_is_none_is_refused_before_anything_runs() -> None:
    for iri, more in ((PRED + "matches", ()), (FUNC + "replace", (A,))):
        refuse = functions.lookup(iri).check
        assert refuse is not None
        assert refuse(None, literal("a("), *more) == "`a(` is not a regular expression: a group is not closed"
        assert "the flags are" in (refuse(None, A, *more, literal("z")) or "")
        assert refuse(None, A, *more) is None
        assert refuse(None, None, *more, literal("z")) is None


@pytest.mark.more
def test_a_match_may_take_five_seconds() -> None:
    with pytest.raises(BuilderError, match="took more than 5 s"):
        call("matches", *say("a" * 40 + "b", "^((a|a)*)*$"))


# Plain literals


AUSTRIAN = text("Schlagobers", "de-at")


@pytest.mark.parametrize(
    ("name", "given", "result"),
    [
        ("PlainLiteral-from-string-lang", say("a", "en"), text("a")),
        ("PlainLiteral-from-string-lang", say("a", "EN-gb"), text("a", "en-gb")),
        ("PlainLiteral-from-string-lang", say("a", ""), A), ("PlainLiteral-from-string-lang", say("a", "e_n"), None),
        ("PlainLiteral-from-string-lang", (text("a"), literal("en")), None),
        ("PlainLiteral-from-string-lang", (A, of("en", "language")), text("a")),
        ("string-from-PlainLiteral", (text("a"),), A), ("string-from-PlainLiteral", say("a@en"), literal("a@en")),
        ("string-from-PlainLiteral", (rdf("a@b@en", "PlainLiteral"),), literal("a@b")),
        ("string-from-PlainLiteral", (of(1),), None),
        ("lang-from-PlainLiteral", (text("a"),), of("en", "language")), ("lang-from-PlainLiteral", (A,), literal("")),
        ("lang-from-PlainLiteral", (rdf("a@EN", "PlainLiteral"),), of("en", "language")),
        ("lang-from-PlainLiteral", (X,), None),
        ("PlainLiteral-compare", (text("a"), text("b")), of(-1)),
        ("PlainLiteral-compare", (text("b"), text("a")), of(1)),
        ("PlainLiteral-compare", (rdf("a@EN", "PlainLiteral"), text("a")), of(0)),
        ("PlainLiteral-compare", say("a", "b"), of(-1)), ("PlainLiteral-compare", (text("a"), A), None),
        ("PlainLiteral-compare", (text("a"), text("a", "fr")), None), ("PlainLiteral-compare", (of(1), of(1)), None),
        ("PlainLiteral-length", (text("abc"),), of(3)), ("PlainLiteral-length", say(""), of(0)),
        ("PlainLiteral-length", (of(123),), None),
        ("matches-language-range", (AUSTRIAN, literal("de-*")), True),
        ("matches-language-range", (AUSTRIAN, literal("*")), True),
        ("matches-language-range", (A, literal("*")), False),
        ("matches-language-range", (AUSTRIAN, literal("de")), True),
        ("matches-language-range", (AUSTRIAN, literal("DE-AT")), True),
        ("matches-language-range", (AUSTRIAN, literal("de-ch")), False),
        ("matches-language-range", (AUSTRIAN, literal("en")), False),
        ("matches-language-range", (AUSTRIAN, literal("d")), False),
        ("matches-language-range", (AUSTRIAN, literal("")), False),
        ("matches-language-range", (AUSTRIAN, literal("de_at")), False),
        ("matches-language-range", (AUSTRIAN, of(1)), False),
    ],
)  # fmt: skip
def test_plain_literals(name: str, given: tuple[Term, ...], result: Result) -> None:
    check(name, given, result)


# RFC 4647, section 3.3.2: the tags that the range `de-*-DE` matches, and those that it does not.
@pytest.mark.parametrize(
    "tag", ["de-de", "de-DE-1996", "de-Latn-DE", "de-Latf-DE", "de-DE-x-goethe", "de-Latn-DE-1996", "de-Deva-DE"]
)
def test_extended_filtering_passes_by_subtags(tag: str) -> None:
    assert call("matches-language-range", text("a", tag), literal("de-*-DE")) is True
    assert call("matches-language-range", text("a", tag), literal("de-DE")) is True
    assert call("matches-language-range", text("a", tag), literal("*-DE")) is True


@pytest.mark.parametrize("tag", ["de", "de-x-de", "de-Deva"])
def test_extended_filtering_stops_at_single_letters(tag: str) -> None:
    assert call("matches-language-range", text("a", tag), literal("de-*-DE")) is False
    assert call("matches-language-range", text("a", tag), literal("de-DE")) is False


@given(WORDS, st.sampled_from(["", "en", "de-at"]))
def test_a_plain_literal_is_its_string_and_its_language(characters: str, language: str) -> None:
    result = call("PlainLiteral-from-string-lang", literal(characters), literal(language))
    assert call("string-from-PlainLiteral", result) == literal(characters)
    assert same(call("lang-from-PlainLiteral", result), literal(language))


def test_a_constant_range_that_is_none_is_refused_before_anything_runs() -> None:
    refuse = functions.lookup(PRED + "matches-language-range").check
    assert refuse is not None
    assert refuse(None, literal("de_at")) == "`de_at` is no range of languages"
    assert refuse(None, literal("de-*")) is None
    assert refuse(A, None) is None
