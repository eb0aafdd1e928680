"""The suite ``w3c-rdf-tests``, SPARQL 1.0 and 1.1: syntax, query evaluation, update evaluation."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from pathlib import Path

from tests.conformance import Case, w3c_evaluation_suite, w3c_syntax_suite, w3c_update_suite


def cases(folder: Path) -> Iterator[Case]:
    """The cases of the index, by what they test."""
    return chain(w3c_syntax_suite.cases(folder), w3c_evaluation_suite.cases(folder), w3c_update_suite.cases(folder))
