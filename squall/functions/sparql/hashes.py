"""Hash functions (SPARQL 1.1, section 17.4.6): of the UTF-8 of a simple literal, as hexadecimal digits."""

from __future__ import annotations

import hashlib
from collections.abc import Callable

from squall.functions.sparql.names import Maybe, Members, defined
from squall.functions.sparql.terms import simple
from squall.rdf import literal


def _hash(algorithm: str) -> Callable[[Maybe], Maybe]:
    def compute(term: Maybe) -> Maybe:
        characters = simple(term)
        if characters is None:
            return None
        return literal(hashlib.new(algorithm, characters.encode(), usedforsecurity=False).hexdigest())

    return compute


MEMBERS: Members = tuple(
    member
    for name in ("MD5", "SHA1", "SHA256", "SHA384", "SHA512")
    for member in defined(name, name.lower(), _hash(name.lower()), 1, 1, f"the {name} digest")
)
