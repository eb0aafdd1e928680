"""Queries over streams that are to be read, planned and run: the suites ``csparql-engine`` and ``rsp-query-sets``.

They come without data and answers. Each is run over a small stream that is made up for it, and has to answer what the
oracle does (`squall.testing.oracle`). Text ``${...}`` stands for a number that the program around a query fills in.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

import squall
from squall.errors import Errors, LexerError, TranslatorError
from squall.lexers import cqels, csparql, rspql, sparqlstream
from squall.lexers.sparql import SparqlLexer
from squall.model import System
from squall.testing import assert_as_oracle
from squall.translators.sparql import translator
from tests.conformance import Case, LeftOut, Stages, made_up
from tests.conformance.programs import translated

ENGINE = ("engine_java_queries.json", "readytogopack_queries.json")
LEXERS = {
    ".cqels": cqels.lexer, ".csparql": csparql.lexer, ".rspql": rspql.lexer, ".sparqlstream": sparqlstream.lexer,
    ".txt": rspql.lexer,
}  # fmt: skip

UNGROUPED = "selects a variable that it neither groups by nor aggregates (SPARQL 1.1 Query, section 11.4)"
REFUSED = {
    "engine_java_queries.json/3": UNGROUPED,
    "engine_java_queries.json/15": "selects nothing",
    "yasper/queries/citybench/rspql/Q2.rspql": "has a stray `>` after `ssn:observedBy`",
    "yasper/queries/citybench/rspql/Q7.rspql": "has no blank after `ON`",
    "yasper/queries/citybench/rspql/Q9.rspql": "has a stray `>` after `ssn:observedBy`",
    "yasper/queries/citybench/rspql/location_parking_1.txt": "has `ELECT` for `SELECT`",
    "yasper/queries/citybench/rspql/pollution_weather_1.txt": "has a stray `>` after `ssn:observedBy`",
    "yasper/queries/lsbench/q2.rspql": UNGROUPED,
    "yasper/queries/sample-queries/cqelsql/query3.cqels": "has no pattern, and an IRI without `<` and `>`",
    "yasper/queries/sample-queries/rspql/query8.rspql": "has a CONSTRUCT for a sub-query, which its comment disowns",
}
"""The texts that are not queries of their language, with the reason."""
MISUSED = {f"yasper/queries/sample-queries/{name}" for name in ("cqelsql/query4.cqels", "rspql/query4.rspql")}
"""The texts that are refused because of the way in which they call a function."""


def cases(folder: Path) -> Iterator[Case]:
    """Yields one case per text, in the order of the file names."""
    for file in ENGINE:
        if (folder / file).exists():
            for number, entry in enumerate(json.loads((folder / file).read_text(encoding="utf-8"))):
                yield _case(f"{file}/{number}", entry["text"], csparql.lexer)
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if (path.suffix in LEXERS and "queries" in path.parts) or path.suffix == ".rspql":
            yield _case(name, path.read_text(encoding="utf-8"), LEXERS[path.suffix])


def _case(name: str, text: str, lexer: SparqlLexer) -> Case:
    return Case(name, partial(_run, name, re.sub(r"\$\{\w+\}", "5", text), lexer))


def _run(name: str, text: str, lexer: SparqlLexer, stages: Stages) -> None:
    if name in REFUSED:
        with pytest.raises((LexerError, Errors)):
            lexer(text, name)
        raise LeftOut(f"refused: it {REFUSED[name]}")
    program = lexer(text, name)
    assert lexer(str(program), name) == program, f"printed as another tree: {program}"
    if name in MISUSED:
        with pytest.raises(TranslatorError, match="does not take 4 arguments"):
            translator(program)
        raise LeftOut("refused: it calls geof:distance with 4 arguments (GeoSPARQL 1.1 has 3)")
    run_made_up(translated(program, translator), stages)


def run_made_up(system: System, stages: Stages) -> None:
    """Runs a program over generated streams, and compares its answers with the oracle."""
    arriving, static = made_up.events(system)
    outputs = list(squall.build(squall.plan(system, stages.planner), stages.builder).run([arriving], static))
    assert_as_oracle(system, outputs, arriving, static)
