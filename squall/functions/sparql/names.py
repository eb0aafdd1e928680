"""The names of SPARQL's functions, and the decorators by which modules of the library define them.

Source of the IRIs: the namespace ``http://www.w3.org/ns/sparql#`` of the W3C for what SPARQL defines, XPath's for
functions that XPath defines with the same meaning, XSD's for casts.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from squall.functions import Builtin, Function, Member, Mode
from squall.rdf import XSD, Term, literal

LANGUAGE = "sparql"
SPARQL = "http://www.w3.org/ns/sparql#"
FN = "http://www.w3.org/2005/xpath-functions#"
OWN = "urn:x-squall:sparql:"

TRUE = literal("true", XSD + "boolean")
FALSE = literal("false", XSD + "boolean")

Maybe = Term | None
"""An argument or a value; None is an error or something unbound (SPARQL 1.1, section 17.2)."""
Members = tuple[Member, ...]


def truth(value: bool | None) -> Maybe:
    """Returns the term of a truth value."""
    return None if value is None else TRUE if value else FALSE


def test_iri(local: str) -> str:
    """Returns the IRI of the test that is true if the function of this name returns true."""
    return f"{OWN}{local}"


def defined(
    name: str,
    local: str,
    body: Callable[..., Maybe],
    least: int,
    most: int | None,
    doc: str,
    *,
    test: Callable[..., bool] | None = None,
    xpath: str | None = None,
    scoped: bool = False,
    **more: Any,
) -> Members:
    """Returns a function with its name in queries, and if there is one, the test that stands for it as a condition.

    local: its name in the W3C's namespace; xpath: its name in XPath's, if it may be called so as well.
    scoped: see `squall.functions.Mode`; the key, which gets the seed of the run, and the bindings are not counted in
    `least` and `most`.
    """
    function = _named(
        SPARQL + local, body, least + scoped, None if scoped else most, doc, seeded=0 if scoped else None, **more
    )
    as_test = _named(test_iri(local), test, least, most, doc, truth=True, **more) if test else None
    spelled = Builtin(
        name,
        LANGUAGE,
        least,
        most,
        test=as_test.iri if as_test else None,
        modes=(Mode(-1, function.iri, scoped=scoped),),
        doc=doc,
    )
    other = _named(FN + xpath, body, least, most, doc, **more) if xpath else None
    return tuple(member for member in (function, as_test, other, spelled) if member is not None)


def _named(iri: str, body: Callable[..., Any], least: int, most: int | None, doc: str, **more: Any) -> Function:
    return Function(iri, body, least, most, doc=doc, **more)
