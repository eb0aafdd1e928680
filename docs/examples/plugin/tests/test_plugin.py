"""Holds the plug-in against squall's suites, and runs a program in its language."""

from __future__ import annotations

import pytest

import squall
from squall.errors import TranslatorError
from squall.testing import LexerSuite, PlannerSuite, assert_outputs


class TestArrows(LexerSuite):
    lexer = "arrows"
    good = (
        "parent(X, Y), parent(Y, Z) => grandparent(X, Z)",
        "=> person(ann)",
        "% nothing\n\np(X,X) => q(X), r(X,a) % all\n",
    )
    bad = (("parent(X, Y) grandparent(X, Y)", 1), ("p(X) => q(X)\np(X) =>", 2), ("p(X, Y, Z) => q(X)", 1))


class TestWritten(PlannerSuite):
    planner = "written"
    max_examples = 20


def test_a_program() -> None:
    assert_outputs(
        "parent(X, Y), parent(Y, Z) => grandparent(X, Z)\ngrandparent(X, Y) => old(X)\n",
        "1 :ann :parent :bob\n2 :bob :parent :cat",
        "2 :ann :grandparent :cat\n2 :ann rdf:type :old",
        lexer="arrows",
        planner="written",
    )


def test_a_function_in_both_ways() -> None:
    assert_outputs(
        "[(?x <urn:at> ?page) domain(?page ?name) -> (?x <urn:in> ?name)]\n"
        "[(?x <urn:in> ?name) domain(?root ?name) -> (?x <urn:from> ?root)]",
        "1 :a <urn:at> <http://www.example.org/page?x=1>",
        '1 :a <urn:in> "www.example.org"\n1 :a <urn:from> <http://www.example.org/>',
        lexer="jena",
    )


def test_a_variable_in_the_head_only() -> None:
    with pytest.raises(TranslatorError, match="`Xx` is in the head only") as caught:
        squall.compile("p(X) => q(Xx)\n", lexer="arrows")
    assert caught.value.hint == "did you mean `X`?"
