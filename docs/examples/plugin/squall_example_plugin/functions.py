"""A function over terms, and how Jena rules call it: ``domain(?iri ?name)`` computes either of its arguments."""

from __future__ import annotations

from urllib.parse import urlsplit

from squall.functions import SAME_VALUE, Builtin, Function, Mode
from squall.rdf import Term, iri, iri_text, is_iri, literal, parts

DOMAIN = "http://example.org/functions#domain"
HOME = "http://example.org/functions#home"


def _domain(term: Term | None) -> Term | None:
    """Returns the domain of an IRI, and None for any other term."""
    host = urlsplit(iri_text(term)).hostname if term is not None and is_iri(term) else None
    return literal(host) if host else None


def _home(term: Term | None) -> Term | None:
    """Returns the root of a domain, which is given by its name."""
    return None if term is None or is_iri(term) else iri(f"http://{parts(term).lexical}/")


FUNCTIONS = (
    Function(DOMAIN, _domain, 1, 1, doc="the domain of an IRI"),
    Function(HOME, _home, 1, 1, doc="the root of a domain"),
    Builtin("domain", "jena", 2, 2, modes=(Mode(1, DOMAIN), Mode(0, HOME)), same=SAME_VALUE),
)
