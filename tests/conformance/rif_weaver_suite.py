"""The suite ``rif-owl2rl-weaver``: rule sets in RIF's presentation syntax, and single rules with data.

The files are the inside of a document, with lines that begin with ``#`` for another engine. Each has to translate, and
to print as a text of the same tree; where there are data, what has to follow is known.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pyoxigraph

import squall
from squall import rdf
from squall.lexers.rif.presentation import lexer
from squall.rdf import Atom, Fact, Triple, iri
from squall.translators.rif import translator
from tests.conformance import Case, LeftOut, Stages
from tests.conformance.programs import answer

_NOT_RIF = {
    "#DEFINE": "macros of its author (`#DEFINE`)",
    "Not(": "negation (`Not`) is not in RIF-BLD",
}
FOLLOWS: dict[str, tuple[str, Fact]] = {
    "prp-irp.core": ("prp-irp.nt", Atom(iri("http://www.w3.org/2007/rif#error"), ())),
    "rdfs.core": ("spsp.nt", Triple(iri("data:x"), iri("data:q"), iri("data:y"))),
    "minrdfs.core": ("spsp.nt", Triple(iri("data:x"), iri("data:q"), iri("data:y"))),
}
"""The conclusions from the data of a file, by rule set."""


def cases(folder: Path) -> Iterator[Case]:
    """Yields one case per rule set."""
    for path in sorted(folder.glob("*.core")):
        yield Case(path.name, partial(_run, path))


def _run(path: Path, stages: Stages) -> None:
    text = path.read_text(encoding="utf-8")
    for construct, reason in _NOT_RIF.items():
        if construct in text:
            raise LeftOut(reason)
    document = lexer(_wrapped(text), str(path))
    assert lexer(str(document), path.name) == document
    system = translator(document)
    squall.plan(system, stages.planner)
    if path.name in FOLLOWS:
        data, expected = FOLLOWS[path.name]
        quads = pyoxigraph.parse((path.parent / data).read_bytes(), format=pyoxigraph.RdfFormat.N_TRIPLES)
        facts = [rdf.triple(quad.subject, quad.predicate, quad.object) for quad in quads]
        assert expected in answer(system, facts, stages), f"{expected} does not follow"


def _wrapped(text: str) -> str:
    """Returns the document around the text of a file, which is only its inside."""
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    prefixes = [line for line in lines if re.match(r"\s*Prefix\(", line)]
    return "\n".join(["Document(", *prefixes, "Group(", *(line for line in lines if line not in prefixes), "))"])
