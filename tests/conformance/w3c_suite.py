"""The suite ``w3c-rdf-tests``, SPARQL 1.0 and 1.1: syntax, query evaluation, update evaluation; semantics of RDF."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from pathlib import Path

from tests.conformance import Case, w3c_evaluation_suite, w3c_semantics_suite, w3c_syntax_suite, w3c_update_suite


def cases(folder: Path) -> Iterator[Case]:
    """Yields the cases of the index, by what they test."""
    suites = (w3c_syntax_suite, w3c_evaluation_suite, w3c_update_suite, w3c_semantics_suite)
    return chain.from_iterable(suite.cases(folder) for suite in suites)
