"""IRIs that are spelt like others."""

from __future__ import annotations

from collections.abc import Iterable

from squall.errors import did_you_mean
from squall.rdf import Term, iri_text


def split_iri(term: Term) -> tuple[str, str]:
    """Splits an IRI into its namespace and its local name."""
    text = iri_text(term)
    start = max(text.rfind("/"), text.rfind("#"), text.rfind(":")) + 1
    return text[:start], text[start:]


def near_terms(term: Term, terms: Iterable[Term]) -> str | None:
    """Returns the hint "did you mean ...?" if a term of the same namespace is spelt like this one, or one of the same
    name has a namespace that is spelt like its own (``https`` for ``http``)."""
    own_namespace, local = split_iri(term)
    terms = list(terms)
    namesakes = [other for other in terms if split_iri(other)[1] == local and other != term]
    if local and (hint := did_you_mean(term, namesakes)):
        return hint
    return did_you_mean(
        local, {other for namespace, other in map(split_iri, terms) if namespace == own_namespace and other != local}
    )
