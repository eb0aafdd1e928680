"""Helpers that call RIF's built-ins, and terms as their arguments."""

from __future__ import annotations

from typing import Any

from squall import functions
from squall.functions.rif.names import FUNC, PRED
from squall.rdf import RDF, XSD, Term, blank, iri, literal
from squall.rdf.compounds import LIST, compound

X, B, A = iri("urn:x"), blank("b"), literal("a")
SPELLED = functions.builtins("rif")


def of(lexical: str | int, datatype: str = "integer") -> Term:
    return literal(str(lexical), XSD + datatype)


def rdf(lexical: str, datatype: str) -> Term:
    return literal(lexical, RDF + datatype)


def listed(*members: Term | int) -> Term:
    return compound(LIST, [of(member) if isinstance(member, int) else member for member in members])


def text(characters: str, language: str | None = "en") -> Term:
    return literal(characters, None, language)


def call(name: str, *arguments: Term | None) -> Any:
    """Returns the result of a built-in by its name: of a predicate, a function, or a datatype with its prefix."""
    prefixed = {"xs": XSD, "rdf": RDF}
    prefix, _, local = name.rpartition(":")
    iris = [prefixed[prefix] + local] if prefix else [FUNC + name, PRED + name]
    (builtin,) = (SPELLED[item] for item in iris if item in SPELLED)
    assert builtin.least <= len(arguments) <= (len(arguments) if builtin.most is None else builtin.most)
    return functions.lookup(builtin.test or builtin.modes[0].function).evaluate(*arguments)


Result = Term | bool | None


def check(name: str, given: tuple[Term, ...], result: Result) -> None:
    """Asserts that a built-in comes to this."""
    value = call(name, *given)
    assert value == result
    assert type(value) is type(result) or isinstance(result, str)


def assert_total_order(kind: str, one: Term, two: Term, equalities: str | None = None) -> None:
    """Asserts that exactly one of less, equal and greater holds, and that the other predicates agree."""
    less, more = call(f"{kind}-less-than", one, two), call(f"{kind}-greater-than", one, two)
    equal = call(f"{equalities or kind}-equal", one, two)
    assert [less, equal, more].count(True) == 1
    assert call(f"{equalities or kind}-not-equal", one, two) is not equal
    assert call(f"{kind}-less-than-or-equal", one, two) is not more
    assert call(f"{kind}-greater-than-or-equal", one, two) is not less
    assert call(f"{kind}-greater-than", two, one) is less
