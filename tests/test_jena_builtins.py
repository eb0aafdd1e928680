"""Each of the 47 built-ins that Jena registers: a rule with it, what follows, and its line in the documentation."""

from __future__ import annotations

import logging
import re
from pathlib import Path
from typing import NamedTuple

import pytest

import squall
from squall import functions, plugins
from squall.errors import TranslatorError
from squall.functions import Builtin
from squall.rdf import OWL
from squall.testing import assert_outputs, run

HOLDS = "1 :a :is :so"
PAGE = Path(__file__).parent.parent / "docs" / "languages" / "jena.md"


class Example(NamedTuple):
    """Clauses of a body over `DATA`, with a built-in, and what follows; or, after an ``@``, a whole program."""

    clause: str
    due: str = HOLDS


DATA = """
1 :a :p 5
1 :a :b "x1"
1 :a :l :l1
1 :l1 rdf:first :m
1 :l1 rdf:rest :l2
1 :l2 rdf:first :n
1 :l2 rdf:rest rdf:nil
"""

EXAMPLES = {
    "print": Example("print('seen' ?n)"),
    "addOne": Example("addOne(?n ?m) equal(?m 6) addOne(?k ?n) equal(?k 4)"),
    "lessThan": Example("lessThan(?n 6)"),
    "greaterThan": Example("greaterThan(?n 4.5)"),
    "le": Example("le(?n 5)"),
    "ge": Example("ge(?n 5)"),
    "equal": Example("equal(?n '5.0'^^xsd:decimal)"),
    "notEqual": Example("notEqual(?n 'five') notEqual(?n ?nothing)"),
    "isFunctor": Example("@[(?x :b ?t) -> (?x :f f(?t))] [(?x :f ?f) isFunctor(?f) -> (?x :is :so)]"),
    "notFunctor": Example("notFunctor(?t) notFunctor(?nothing)"),
    "makeTemp": Example("makeTemp(?x1 ?x2) isBNode(?x1) notEqual(?x1 ?x2)"),
    "noValue": Example("noValue(?x :q) noValue(?x :p 6) noValue(?any :q)"),
    "remove": Example("@[(?x :p ?n) le(?n 5) -> remove(0) (?x :is :so)]", "2 :a :is :so"),
    "drop": Example("@[(?x :p ?n) le(?n 5) -> drop(0) (?x :is :so)]", "2 :a :is :so"),
    "sum": Example("sum(?n 2 ?m) equal(?m 7)"),
    "difference": Example("difference(?n 2 ?m) equal(?m 3)"),
    "product": Example("product(?n 2 ?m) equal(?m 10)"),
    "quotient": Example("quotient(?n 2 ?m) equal(?m 2)"),
    "bound": Example("bound(?n ?x)"),
    "unbound": Example("unbound(?nothing)"),
    "isLiteral": Example("isLiteral(?n)"),
    "notLiteral": Example("notLiteral(?x)"),
    "isBNode": Example("isBNode(_b)"),
    "notBNode": Example("notBNode(?x)"),
    "isDType": Example("isDType(?n xsd:integer)"),
    "notDType": Example("notDType(?n xsd:string)"),
    "countLiteralValues": Example("countLiteralValues(?x :p ?m) equal(?m 1)"),
    "max": Example("max(?n 4 ?m) equal(?m 5)"),
    "min": Example("min(?n 4 ?m) equal(?m 4)"),
    "listLength": Example("listLength(?l ?m) equal(?m 2)"),
    "listEntry": Example("listEntry(?l 1 ?m) equal(?m :n)"),
    "listEqual": Example("listEqual(?l ?l)"),
    "listNotEqual": Example("listNotEqual(?l rdf:nil)"),
    "listContains": Example("listContains(?l :m)"),
    "listNotContains": Example("listNotContains(?l :k)"),
    "listMapAsSubject": Example("@[(?x :l ?l) -> listMapAsSubject(?l :of ?x)]", "1 :m :of :a\n1 :n :of :a"),
    "listMapAsObject": Example("@[(?x :l ?l) -> listMapAsObject(?x :has ?l)]", "1 :a :has :m\n1 :a :has :n"),
    "makeInstance": Example("makeInstance(?x :p ?m) isBNode(?m)"),
    "table": Example("@[-> table(:p)] [(?x :p ?n) -> (?x :is :so)]"),
    "tableAll": Example("@[-> tableAll()] [(?x :p ?n) -> (?x :is :so)]"),
    "makeSkolem": Example("makeSkolem(?m ?x 1) isBNode(?m)"),
    "hide": Example("@[-> hide(:q)] [(?x :p ?n) -> (?x :q ?n)] [(?x :q ?n) -> (?x :is :so)]"),
    "strConcat": Example("strConcat(?t 'y' ?m) equal(?m 'x1y')"),
    "uriConcat": Example("uriConcat('urn:' ?t ?m) equal(?m <urn:x1>)"),
    "regex": Example("regex(?t '(.)([0-9])' ?one ?two) equal(?one 'x') equal(?two '1')"),
    "now": Example("now(?m) equal(?m '1970-01-01T00:00:00.001Z'^^xsd:dateTime)"),
    "assertDisjointPairs": Example(
        "@[(?x :l ?l) -> assertDisjointPairs(?l)]", f"1 :m <{OWL}differentFrom> :n\n1 :n <{OWL}differentFrom> :m"
    ),
}
"""By name, in the order of Jena's ``BuiltinRegistry``."""


def written(example: Example) -> str:
    """Returns the program of an example."""
    body = f"[(?x :p ?n) (?x :b ?t) (?x :l ?l) {example.clause} -> (?x :is :so)]"
    return "@prefix : <http://example.org/> .\n" + (
        example.clause.removeprefix("@") if example.clause[0] == "@" else body
    )


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_built_in_of_jena(name: str) -> None:
    assert f"{name}(" in EXAMPLES[name].clause
    assert_outputs(written(EXAMPLES[name]), DATA, EXAMPLES[name].due, lexer="jena")


def registered(library: str) -> set[str]:
    """Returns the names of the built-ins of Jena rules that a library brings."""
    members = plugins.load(plugins.FUNCTIONS, library)
    return {member.name for member in members if isinstance(member, Builtin) and member.language == "jena"}


def test_there_are_those_of_jena_and_no_others() -> None:
    assert len(EXAMPLES) == 47
    assert registered("jena") | registered("jena-lists") == set(EXAMPLES)


def test_the_page_lists_each() -> None:
    section = PAGE.read_text(encoding="utf-8").partition("## Built-ins\n")[2].partition("\n## ")[0]
    existing, _, own = section.partition("Of squall's own")
    for table, names in (
        (existing, set(EXAMPLES)),
        (own, registered("datatypes") | registered("geosparql") | registered("intervals")),
    ):
        cells = [line.partition(" | ")[0] for line in table.splitlines()]
        assert {name for cell in cells for name in re.findall(r"`(\w+)\(", cell)} == names


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_wrong_number_of_arguments_is_refused(name: str) -> None:
    result = functions.builtins("jena")[name]
    wrong = [count for count in (result.least - 1, (result.most or 0) + 1) if not _takes(result, count) and count >= 0]
    for count in wrong:
        call = f"{name}({' '.join(['?n'] * count)})"
        text = (
            f"[(?x <urn:p> ?n) -> {call}]" if result.where == "head" else f"[(?x <urn:p> ?n) {call} -> (?x <urn:q> 1)]"
        )
        with pytest.raises(TranslatorError, match=f"`{name}` takes .*, not {count}"):
            squall.compile(text, lexer="jena")


def _takes(builtin: Builtin, count: int) -> bool:
    return builtin.least <= count and (builtin.most is None or count <= builtin.most)


def test_print_logs(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "squall.print"):
        run("[(?x <urn:p> ?n) print('seen' ?n) -> (?x <urn:q> ?n) print(?x)]", "1 :a <urn:p> 5")
    messages = [record.getMessage() for record in caplog.records]
    assert sorted(messages) == ['"seen" "5"^^<http://www.w3.org/2001/XMLSchema#integer>', "<http://example.org/a>"]
