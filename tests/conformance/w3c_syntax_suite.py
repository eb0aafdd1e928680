"""The syntax tests of the suite ``w3c-rdf-tests``: SPARQL 1.0 and 1.1, queries and updates (``index.json``)."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from squall.lexers.sparql import lexer
from tests.conformance import Case, Stages, entries, refusal

POSITIVE = {"PositiveSyntaxTest", "PositiveSyntaxTest11", "PositiveUpdateSyntaxTest11"}
NEGATIVE = {"NegativeSyntaxTest", "NegativeSyntaxTest11", "NegativeUpdateSyntaxTest11"}


def cases(folder: Path) -> Iterator[Case]:
    """Yields the cases of the index, in its order."""
    for entry in entries(folder / "index.json"):
        if entry["dir"].startswith("sparql/") and (POSITIVE | NEGATIVE).intersection(entry["type"]):
            (action,) = entry["action"]
            yield Case(entry["id"], partial(_run, folder / action, bool(POSITIVE.intersection(entry["type"]))))


def _run(path: Path, positive: bool, stages: Stages) -> None:
    text = path.read_bytes().decode("utf-8")  # as it is: line ends are a part of the tests
    if positive:
        program = lexer(text, path.name)
        assert lexer(str(program), path.name) == program, f"printed as another tree: {program}"
        return
    with refusal():
        lexer(text, path.name)
