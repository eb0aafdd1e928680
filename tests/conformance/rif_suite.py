"""The suite ``rif-w3c``: the W3C's test cases for RIF Core and BLD, each in both syntaxes, and documents of rif4j.

A conclusion becomes the condition of one more rule, in a document of its own: it is entailed if that rule fires. Local
constants of the two are apart. What a premise entails that is inconsistent is everything.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyoxigraph

import squall
from squall.errors import BuilderError, SquallError, TranslatorError, single_errors
from squall.lexers.rif import exchange, presentation, tree
from squall.rdf import Atom, iri
from squall.streams.sources.documents import load
from tests.conformance import Case, KnownBad, LeftOut, Stages, entries
from tests.conformance.programs import UNSUPPORTED

PLACE = "http://www.w3.org/2005/rules/test/repository/tc/"
"""The beginning of the IRIs of imported files."""

GOAL = "urn:x-squall:test:goal"

BAD = {
    "RDF_Combination_Constant_Equivalence_4": "the import has a broken datatype IRI",
}
PLAIN = {"IRI_from_IRI", "Multiple_IRIs_from_String", "Multiple_Strings_from_IRI"}
"""The cases whose conclusion in presentation syntax uses a built-in as a relation of the program."""

Entry = dict[str, Any]


def cases(folder: Path) -> Iterator[Case]:
    """Yields two cases for each case of the index that has both syntaxes, and one for each document of another
    engine."""
    for entry in entries(folder / "index.json"):
        for syntax in ("rif", "rifps"):
            name = f"{entry['suite'].partition('_')[0]} {entry['id']} ({syntax})"
            yield Case(name, partial(_run, folder / entry["dir"], entry, syntax))
    for path in sorted((folder / "extra").rglob("*")):
        if path.suffix in (".rif", ".rifps", ".xml"):
            yield Case(f"extra {path.parent.name}/{path.name}", partial(_read, path))


def _run(folder: Path, entry: Entry, syntax: str, stages: Stages) -> None:
    name = entry["id"]
    if name in BAD:
        raise KnownBad(BAD[name])
    if entry["suite"].startswith("PRD") and "BLD" not in entry["dialects"]:
        raise LeftOut("RIF-PRD: actions and the negation of productions")
    run = KINDS.get(entry["type"])
    if run is None:
        raise LeftOut(f"the type `{entry['type']}` is not known")
    for path in folder.iterdir() if run is not _rejected else ():
        if path.suffix == f".{syntax}" and "conclusion" not in path.name:
            _written_and_read_again(path)
    run(folder, name, syntax, stages)


def _read(path: Path, stages: Stages) -> None:
    """Reads a document, and translates it unless it uses an unsupported construct."""
    if path.name in PARTS:
        raise LeftOut("a condition by itself is no document")
    _written_and_read_again(path)
    try:
        system = squall.compile(
            path, lexer="rifps" if path.suffix == ".rifps" else "rif", documents=_all_places(path.parents[2])
        )
    except SquallError as error:
        wrong = [item.message for item in single_errors(error)]
        messages = [message for message in wrong if any(reason in message for reason in REFUSED)]
        assert wrong == messages, f"refused: {wrong}"
        raise LeftOut(wrong[0]) from error
    squall.plan(system, stages.planner)


PARTS = {"RuleML2010_Query.xml", "VideoOnDemand_Condition.xml", "VideoOnDemand_Effect.xml"}
REFUSED = [
    "the rule is not safe",
    "is not declared",
    "is not in the lexical space",
    "there is no external",
    "does not take",
]


def _written_and_read_again(path: Path) -> None:
    """Checks that a document as text of either syntax is read as the same tree."""
    lexer = presentation.lexer if path.suffix == ".rifps" else exchange.lexer
    document = lexer(path.read_text(encoding="utf-8"), str(path))
    assert exchange.lexer(exchange.lexer.written(document), "written.rif") == document
    assert presentation.lexer(presentation.lexer.written(document), "written.rifps") == document


def _rejected(folder: Path, name: str, syntax: str, stages: Stages) -> None:
    """Checks that the program is refused, and for the reason of the case."""
    path = _file(folder, name, ("input", "premise"), syntax)
    try:
        system = squall.compile(path, documents=places(folder, name))
        for _ in load(system, places(folder, name)):
            pass
    except SquallError as error:
        text = " | ".join(item.message for item in single_errors(error))
        if name in REASONS:
            assert REASONS[name] in text, f"refused for another reason: {text}"
        assert not any(phrase in text for phrase in UNSUPPORTED), f"refused as not supported: {text}"
        return
    raise AssertionError("it is not refused")


REASONS = {
    "No_free_variables": "is not declared",
    "Core_NonSafeness": "the rule is not safe",
    "OWL_Combination_Invalid_DL_Formula": "an attribute that is a variable",
    "OWL_Combination_Invalid_DL_Import": "is not OWL DL",
    "RDF_Combination_Invalid_Constant_1": "has the literal",
    "RDF_Combination_Invalid_Profiles_1": "does not go together",
}
"""What the message has to say where the case has a reason that is known. Another case has to be refused, too."""


def _accepted(folder: Path, name: str, syntax: str, stages: Stages) -> None:
    path = _file(folder, name, ("input",), syntax)
    compiled(path, places(folder, name))


DEFECTS = {
    "Builtins_PlainLiteral": ["#lang>"],
    "Builtins_String": ["#substring>", "iri-to-uri", "escape-html-uri"],
    "Builtins_Time": ["timezone-from-date>", "date-equal", "subtract-dayTimeDuration-from-date>", "#dayTime>",
                      r'"-?\d+\.\d+"\^\^<[^>]*#integer>'],
}  # fmt: skip
"""Patterns of the lines of a case that are known to be wrong or doubtful: typing errors, integers with a fraction."""


def _outside(formula: tree.Formula) -> tree.Formula:
    """Returns the formula with each relation marked as external."""
    if isinstance(formula, tree.And):
        return replace(formula, formulas=tuple(map(_outside, formula.formulas)))
    return tree.External(formula) if isinstance(formula, tree.Atom) else formula


def _entailed(folder: Path, name: str, syntax: str, stages: Stages) -> None:
    if name in DEFECTS:
        _each_line(folder, name, syntax, stages)
    conclusion = _conclusion(folder, name, syntax)
    if syntax == "rifps" and name in PLAIN:
        assert not _entails(folder, name, conclusion, syntax, stages), "a relation that no rule concludes holds"
        assert _entails(folder, name, _outside(conclusion), syntax, stages), "it is not entailed"
        raise KnownBad("its conclusion leaves out `External`; with it, as in XML, it is entailed")
    assert _entails(folder, name, conclusion, syntax, stages), "it is not entailed"


def _each_line(folder: Path, name: str, syntax: str, stages: Stages) -> None:
    """Checks each line of the only condition by itself. Raises KnownBad if only lines fail that are known to be
    wrong."""
    lexer = exchange.lexer if syntax == "rif" else presentation.lexer
    path = _file(folder, name, ("premise",), syntax)
    document = lexer(path.read_text(encoding="utf-8"), str(path))
    assert document.group is not None
    (rule,) = document.group.sentences
    assert isinstance(rule, tree.Implies)
    assert isinstance(rule.condition, tree.And)
    lines = [line for line in rule.condition.formulas if not _holds(line, stages)]
    wrong = [str(tree.node_text(line)) for line in lines]
    existing = [line for line in wrong if any(re.search(part, line) for part in DEFECTS[name])]
    assert wrong == existing, f"does not hold: {[line for line in wrong if line not in existing]}"
    if wrong:
        raise KnownBad(f"wrong or doubtful: {' '.join(wrong)}")


def _holds(line: tree.Formula, stages: Stages) -> bool:
    goal = tree.Implies(tree.Atom(tree.Const(GOAL, tree.IRI)), line)
    with TemporaryDirectory() as temporary:
        path = Path(temporary, "line.rifps")
        path.write_text(str(tree.Document((), tree.Group((goal,)))), encoding="utf-8")
        try:
            return Atom(iri(GOAL), ()) in (_facts(path, {}, stages) or ())
        except TranslatorError:
            return False


def _not_entailed(folder: Path, name: str, syntax: str, stages: Stages) -> None:
    assert not _entails(folder, name, _conclusion(folder, name, syntax), syntax, stages), "it is entailed"


KINDS = {
    "PositiveEntailmentTest": _entailed,
    "NegativeEntailmentTest": _not_entailed,
    "PositiveSyntaxTest": _accepted,
    "NegativeSyntaxTest": _rejected,
    "ImportRejectionTest": _rejected,
}


def _file(folder: Path, name: str, parts: tuple[str, ...], syntax: str) -> Path:
    paths = [path for part in parts if (path := folder / f"{name}-{part}.{syntax}").is_file()]
    assert paths, f"there is no file {name}-{parts[0]}.{syntax}"
    return paths[0]


def _conclusion(folder: Path, name: str, syntax: str) -> tree.Formula:
    """Returns the formula of a conclusion. For a graph, it says that there are terms for its blank nodes."""
    graph = folder / f"{name}-conclusion.ttl"
    if graph.is_file():
        return _of_graph(graph)
    path = _file(folder, name, ("conclusion", "nonconclusion"), syntax)
    text = path.read_text(encoding="utf-8")
    if syntax == "rif":
        return exchange.condition(text, str(path))
    premise = _file(folder, name, ("premise",), syntax).read_text(encoding="utf-8")
    example = {"ex": "http://example.org/example#"}  # one premise does not declare it
    return presentation.condition(text, str(path), {**example, **presentation.prefixes(premise)})


def _of_graph(path: Path) -> tree.Formula:
    quads = list(pyoxigraph.parse(path.read_bytes(), format=pyoxigraph.RdfFormat.TURTLE))
    blanks = {term.value for quad in quads for term in (quad.subject, quad.object) if _is_blank(term)}
    frames = tuple(tree.Frame(_term(quad.subject), ((_term(quad.predicate), _term(quad.object)),)) for quad in quads)
    variables = tuple(tree.Var(name) for name in sorted(blanks))
    return tree.Exists(variables, tree.And(frames)) if variables else tree.And(frames)


def _is_blank(term: object) -> bool:
    return isinstance(term, pyoxigraph.BlankNode)


def _term(term: Any) -> tree.Term:
    if _is_blank(term):
        return tree.Var(term.value)
    if isinstance(term, pyoxigraph.NamedNode):
        return tree.Const(term.value, tree.IRI)
    return (
        tree.text_constant(term.value, term.language or "")
        if term.language
        else tree.Const(term.value, term.datatype.value)
    )


def _entails(folder: Path, name: str, conclusion: tree.Formula, syntax: str, stages: Stages) -> bool:
    premise = _file(folder, name, ("premise",), syntax)
    goal = tree.Implies(tree.Atom(tree.Const(GOAL, tree.IRI)), conclusion)
    inputs = {**places(folder, name), "urn:premise": str(premise)}
    with TemporaryDirectory() as temporary:
        path = Path(temporary, "goal.rifps")
        path.write_text(str(tree.Document((tree.Import("urn:premise"),), tree.Group((goal,)))), encoding="utf-8")
        try:
            result = _facts(path, inputs, stages)
        except LeftOut:  # what cannot be asked follows nevertheless from what is inconsistent by itself
            if _facts(premise, inputs, stages) is not None:
                raise
            return True
    return result is None or Atom(iri(GOAL), ()) in result


def _facts(path: Path, given: dict[str, str], stages: Stages) -> set[object] | None:
    """Returns all facts that follow from a document, or None if it is inconsistent."""
    system = compiled(path, given)
    try:
        plan = squall.plan(system, stages.planner)
        return {out.fact for out in squall.run(plan, [], stages.builder, load(system, given))}
    except BuilderError as error:
        if "inconsistent" in error.message:
            return None
        raise


def places(folder: Path, name: str) -> dict[str, str]:
    """Returns the files of a case by the IRIs under which they are imported, with and without the file ending."""
    result = {}
    for path in sorted(folder.glob("*-import*")):
        result[f"{PLACE}{name}/{path.name}"] = str(path)
        result[f"{PLACE}{name}/{path.stem}"] = str(path)
    return result


@cache
def _all_places(suite: Path) -> dict[str, str]:
    """Returns the files that all cases import, by their IRIs."""
    folders = {path.parent for path in suite.rglob("*-import*")}
    return {location: file for folder in folders for location, file in places(folder, folder.name).items()}


def compiled(path: Path, given: dict[str, str]) -> squall.System:
    """Compiles a document. What is refused on purpose leaves the case out, by the construct."""
    try:
        return squall.compile(path, documents=given)
    except SquallError as error:
        for item in single_errors(error):
            if (
                "there is no external" in item.message
                or "the rule is not safe" in item.message
                or "is not in OWL 2 RL" in item.message
            ):
                raise LeftOut(item.message) from error
        raise
