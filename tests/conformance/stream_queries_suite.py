"""Queries over streams that are to be read, planned and run: the suites ``csparql-engine`` and ``rsp-query-sets``.

They come without data and answers. Each is run over a small stream that is made up for it, and has to answer what the
oracle does (`squall.testing.oracle`). Text ``${...}`` stands for a number that the program around a query fills in.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import squall
from squall.contracts import Options
from squall.errors import Errors, LexerError, TranslatorError, single_errors
from squall.lexers import cqels, csparql, rspql, sparqlstream
from squall.lexers.sparql import SparqlLexer
from squall.lexers.sparql import tree as q
from squall.model import System, profiles
from squall.plan.seeds import FIXED_SEED
from squall.testing import assert_as_oracle
from squall.translators.sparql import translator
from tests.conformance import Case, LeftOut, Stages, entries, made_up
from tests.conformance.programs import translated

ENGINE = ("engine_java_queries.json", "readytogopack_queries.json")
LEXERS = {
    ".cqels": cqels.lexer, ".csparql": csparql.lexer, ".rspql": rspql.lexer, ".sparqlstream": sparqlstream.lexer,
    ".txt": rspql.lexer, ".sparql": SparqlLexer(),
}  # fmt: skip

PROFILES = {profile.name for profile in profiles.PROFILES}
"""The languages of engines have profiles of the same name."""


def cases(folder: Path) -> Iterator[Case]:
    """Yields one case per text, in the order of the file names."""
    for file in ENGINE:
        for number, entry in enumerate(entries(folder / file)):
            yield _case(f"{file}/{number}", entry["text"], csparql.lexer)
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if (path.suffix in LEXERS and "queries" in path.parts) or path.suffix == ".rspql":
            yield _case(name, path.read_text(encoding="utf-8"), LEXERS[path.suffix])


def _case(name: str, text: str, lexer: SparqlLexer) -> Case:
    return Case(name, partial(_run, name, re.sub(r"\$\{\w+\}", "5", text), lexer))


def _run(name: str, text: str, lexer: SparqlLexer, stages: Stages) -> None:
    program = read(text, name, lexer)
    assert lexer(str(program), name) == program, f"printed as another tree: {program}"
    try:
        system = translated(program, translator)
    except TranslatorError as error:
        raise LeftOut(f"refused: {error.message}") from error
    language = lexer.grammars[-1]
    profile = language if language in PROFILES else profiles.DEFAULT.name
    run_made_up(profiles.apply_profile(system, profile), stages)


def read(text: str, name: str, lexer: SparqlLexer) -> q.Program:
    """Reads a query. A text that is refused is left out, with the place: some of the texts are none of their language,
    or of an older draft of it."""
    try:
        return lexer(text, name)
    except (LexerError, Errors) as error:
        first = next(iter(single_errors(error)))
        place = f", line {first.origin.line}" if first.origin else ""
        raise LeftOut(f"refused{place}: {first.message}") from error


def run_made_up(system: System, stages: Stages) -> None:
    """Runs a program over generated streams, and compares its answers with the oracle."""
    arriving, static = made_up.events(system)
    job = squall.build(squall.plan(system, stages.planner), stages.builder, Options(seed=FIXED_SEED))
    outputs = list(job.run([arriving], static))
    assert_as_oracle(system, outputs, arriving, static)
