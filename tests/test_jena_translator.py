"""The Jena translator: the systems of rules, refused constructs, and the exact messages."""

from __future__ import annotations

from pathlib import Path

import pytest

import squall
from squall.contracts import Translator
from squall.errors import Errors, SquallError, TranslatorError
from squall.functions import SAME_VALUE
from squall.functions.jena import function_iri
from squall.lexers.jena import lexer
from squall.model import (
    Bind,
    Call,
    Construct,
    Delete,
    Filter,
    Insert,
    NotExists,
    Pattern,
    Predicate,
    System,
    Variable,
    warnings,
)
from squall.rdf import XSD, Term, iri, literal
from squall.rdf.compounds import LIMIT
from squall.translators.common import with_nesting_limit
from squall.translators.jena import translator

A, B, C, D = (Variable(name) for name in "abcd")
P, Q = iri("urn:p"), iri("urn:q")
ONE = literal("1", XSD + "int")


def translated(text: str) -> tuple[System, ...]:
    return translator(lexer(text, "folder/test.jena")).subsystems


def body(text: str) -> tuple[Predicate, ...]:
    """Returns the predicates of a rule with this body, over ``?a ?b``."""
    (rule,) = translated(f"[(?a <urn:p> ?b) {text} -> (?a <urn:q> ?b)]")
    return rule.predicates


def call(name: str, *arguments: Term | Variable | Call) -> Call:
    return Call(function_iri(name), arguments)


def same(left: Term | Variable, right: Call) -> Filter:
    return Filter(Call(SAME_VALUE, (left, right)))


def messages(text: str) -> list[str]:
    with pytest.raises((TranslatorError, Errors)) as caught:
        translated(text)
    error = caught.value
    return [item.message for item in error.errors] if isinstance(error, Errors) else [error.message]


def test_it_is_a_translator() -> None:
    assert isinstance(translator, Translator)


def test_a_rule_is_a_system_beside_the_others() -> None:
    system = translator(
        lexer("[up: (?a <urn:p> ?b) (?b <urn:p> 1) -> (?a <urn:q> ?b)] -> (<urn:p> <urn:p> _x) .", "f/t.jena")
    )
    assert (system.name, system.reentrant, system.consequences, system.joinables) == ("t", True, (), ())
    up, axiom = system.subsystems
    assert up == System(
        "up",
        joinables=(Pattern(A, P, B), Pattern(B, P, ONE)),
        consequences=(Construct((Pattern(A, Q, B),)),),
    )
    assert axiom == System("rule2", consequences=(Construct((Pattern(P, P, Term("_:x")),)),))


def test_both_arrows_run_forward_with_all_heads() -> None:
    forward = translated("[x: (?a <urn:p> ?b) -> (?a <urn:q> ?b) (?b <urn:q> ?a)]")
    assert translated("[x: (?a <urn:q> ?b) (?b <urn:q> ?a) <- (?a <urn:p> ?b)]") == forward
    (construct,) = forward[0].consequences
    assert isinstance(construct, Construct)
    assert len(construct.template) == 2


def test_rules_keep_their_names_and_get_one_by_position() -> None:
    rule = "(?a <urn:p> ?b) -> (?a <urn:q> ?b)"
    assert [item.name for item in translated(f"[x: {rule}] [{rule}] [x: {rule}] {rule} .")] == [
        "x",
        "rule2",
        "x",
        "rule4",
    ]


def test_origins_are_kept_and_not_compared() -> None:
    (rule,) = translated("\n[x: (?a <urn:p> ?b) -> (?a <urn:q> ?b)]")
    (pattern,) = rule.joinables
    assert isinstance(pattern, Pattern)
    assert [str(rule.origin), str(pattern.origin)] == ["folder/test.jena:2:1", "folder/test.jena:2:5"]
    assert translated("[x: (?a <urn:p> ?b) -> (?a <urn:q> ?b)]") == (rule,)


@pytest.mark.parametrize(
    ("text", "predicates"),
    [
        ("lessThan(?a 1)", [Filter(call("lessThan", A, ONE))]),
        ("sum(?a 1 ?c)", [Bind(C, call("sum", A, ONE))]),
        ("sum(?a 1 ?b)", [same(B, call("sum", A, ONE))]),
        ("sum(?a ?b 1)", [same(ONE, call("sum", A, B))]),
        ("sum(?a 1 ?c) sum(?c 1 ?d)", [Bind(C, call("sum", A, ONE)), Bind(D, call("sum", C, ONE))]),
        ("addOne(?a ?c)", [Bind(C, call("addOne", A))]),
        ("addOne(?c ?a)", [Bind(C, call("subtractOne", A))]),
        ("addOne(?a ?b)", [same(B, call("addOne", A))]),
        ("strConcat(?c)", [Bind(C, call("strConcat"))]),
        ("strConcat(?a 1 ?b ?c)", [Bind(C, call("strConcat", A, ONE, B))]),
        ("regex(?a 'x')", [Filter(call("regex", A, literal("x")))]),
        (
            "regex(?a '(.)(.)' ?b ?c)",
            [
                same(B, call("regexGroup", ONE, A, literal("(.)(.)"))),
                Bind(C, call("regexGroup", literal("2", XSD + "int"), A, literal("(.)(.)"))),
            ],
        ),
        ("makeSkolem(?c ?a ?b)", [Bind(C, with_nesting_limit(call("makeSkolem", A, B), "rule1"))]),
        ("now(?c)", [Bind(C, call("now"))]),
        ("print(?a)", [Filter(call("print", A))]),
        ("unbound(?c) notEqual(?c ?a)", [Filter(call("unbound", C)), Filter(call("notEqual", C, A))]),
    ],
)  # fmt: skip
def test_built_ins_filter_bound_and_bind_unbound_variables(text: str, predicates: list[Predicate]) -> None:
    assert list(body(text)) == predicates


def test_built_ins_come_after_all_patterns() -> None:
    (rule,) = translated("[sum(?a 1 ?b) (?a <urn:p> ?b) -> (?a <urn:q> ?b)]")
    assert rule.predicates == (same(B, call("sum", A, ONE)),)


def test_no_value_has_wildcards_of_its_own() -> None:
    first, second, third = (Variable(f"any {number}") for number in (1, 2, 3))
    assert body("noValue(?a <urn:q>)") == (NotExists((Pattern(A, Q, first),)),)
    assert body("noValue(?a <urn:q> 1)") == (NotExists((Pattern(A, Q, ONE),)),)
    assert body("noValue(?c ?c ?b) noValue(?a <urn:q> ?d)") == (
        NotExists((Pattern(first, second, B),)),
        NotExists((Pattern(A, Q, third),)),
    )


@pytest.mark.fault("J1")
@pytest.mark.parametrize(
    ("text", "guards"),
    [
        ("(?x :p ?y) noValue(?x :q ?y) -> (?x :q ?y)", 1),
        ("noValue(?x :q :a) (?x :p ?y) noValue(?x :q :a) -> (?x :q :a)", 2),
        ("(?x :q ?y) <- (?x :p ?y) noValue(?x :q ?y)", 1),
        ("(?x :p ?y) noValue(?x :q) -> (?x :r ?y)", 0),
        ("(?x :p ?y) noValue(?y :q ?x) -> (?x :q ?y)", 0),
        ("(?x :p ?y) noValue(?x :q ?y) -> (?x :q ?y) (?x :r ?y)", 0),
        ("(?x :p ?y) noValue(?x :q ?z) makeTemp(?z) -> (?x :q ?z)", 0),
    ],
)
def test_a_guard_for_the_conclusion_itself_is_left_out(text: str, guards: int) -> None:
    """J1 of the reported faults: the commonest idiom of published rules was refused as not stratified."""
    system = squall.compile(f"@prefix : <http://example.org/>.\n[guarded: {text}]", lexer="jena", profile="jena")
    guard_warnings = [warning for warning in warnings(system) if "is left out" in str(warning)]
    assert [warning.severity for warning in guard_warnings] == ["info"] * guards
    if guards:
        system = squall.compile(f"@prefix : <http://example.org/>.\n[guarded: {text}]", lexer="jena")
        plain = squall.compile("@prefix : <http://example.org/>.\n[guarded: (?x :p ?y) -> (?x :q ?y)]", lexer="jena")
        assert (guards == 2) or system.subsystems[0].joinables == plain.subsystems[0].joinables


def test_what_no_value_leaves_open_may_be_bound_later() -> None:
    before, after = body("noValue(?a <urn:q> ?c) addOne(?a ?c)")
    assert before == NotExists((Pattern(A, Q, Variable("any 1")),))
    assert after == Bind(C, call("addOne", A))


def _temporary(text: str) -> list[Call]:
    """Returns the calls that make temporary nodes, without the limit around them."""
    limits = [part.expression for rule in translated(text) for part in rule.predicates if isinstance(part, Bind)]
    results = [limit.arguments[1] for limit in limits if isinstance(limit, Call) and limit.function == LIMIT]
    return [call for call in results if isinstance(call, Call)]


def test_a_temporary_node_gets_the_rule_the_call_and_all_that_is_bound() -> None:
    first, second, third = _temporary("[(?a <urn:p> ?b) makeTemp(?c ?d) makeTemp(?e) -> (?c ?d ?e)]")
    assert [result.arguments[2:] for result in (first, second, third)] == [(A, B), (A, B, C), (A, B, C, D)]
    assert [result.arguments[0] for result in (first, second)] == [ONE, literal("2", XSD + "int")]
    assert first.arguments[1] == second.arguments[1]
    assert first.arguments[1] != third.arguments[1]


def test_a_temporary_node_does_not_depend_on_the_names_of_variables() -> None:
    (item,) = _temporary("[x: (?a <urn:p> ?b) makeTemp(?c) -> (?a <urn:q> ?c)]")
    (two,) = _temporary("[y: (?d <urn:q> ?e) <- (?d <urn:p> ?b) makeTemp(?e)]")
    (other,) = _temporary("[x: (?a <urn:p> ?b) makeTemp(?c) -> (?b <urn:q> ?c)]")
    assert item.arguments[:2] == two.arguments[:2]
    assert item.arguments[:2] != other.arguments[:2]


def test_a_head_may_print() -> None:
    only, both = translated(
        "[(?a <urn:p> ?b) -> print(?a)] [(?a <urn:p> ?b) bound(?a) -> (?a <urn:q> ?b) print(?a ?b)]"
    )
    assert (only.predicates, only.consequences) == ((Filter(call("print", A)),), (Construct(()),))
    assert both.predicates == (Filter(call("bound", A)), Filter(call("print", A, B)))
    assert both.consequences == (Construct((Pattern(A, Q, B),)),)


def test_hints_for_planners_say_nothing() -> None:
    text = "-> table(<urn:p>) . -> tableAll() . [(?a <urn:p> ?b) -> (?a <urn:q> ?b) table(<urn:q>)]"
    (rule,) = translated(text)
    assert (rule.name, rule.predicates) == ("rule3", ())


def test_a_body_of_built_ins_is_an_axiom() -> None:
    (rule,) = translated("[sum(1 1 ?c) -> (<urn:p> <urn:q> ?c)]")
    assert (rule.joinables, rule.predicates) == ((), (Bind(C, call("sum", ONE, ONE)),))


def test_a_head_variable_that_nothing_binds_is_named_once() -> None:
    text = "[(?a <urn:p> ?b) lessThan(?d 1) -> (?c <urn:q> ?c) (?a <urn:q> f(?c)) (?a <urn:q> ?b)]"
    system = translator(lexer(text, "test"))
    assert [(warning.message, str(warning.origin)) for warning in warnings(system)] == [
        ("`?c` is in the head, but nothing in the body binds it: this fact is never derived", "test:1:37")
    ]
    assert system.subsystems[0].consequences == (Construct((Pattern(A, Q, B),)),)
    assert len(warnings(translator(lexer("[(?c <urn:q> f(?c)) <-]", "test")))) == 1


def test_a_pattern_with_a_functor_is_a_part_of_its_own() -> None:
    (rule,) = translated("[(?a <urn:p> f(?b)) (?b <urn:q> ?c) -> (?a <urn:q> ?c)]")[1:]
    part, pattern = rule.joinables
    assert isinstance(part, System)
    assert part.joinables == (Pattern(A, P, Variable("any 1")),)
    assert pattern == Pattern(B, Q, C)


def test_a_rule_that_removes_also_inserts() -> None:
    axiom, rule = translated(
        "[-> (<urn:p> <urn:p> 1)] [(?a <urn:p> 1) (?a <urn:q> ?b) -> drop(1) remove(0, 1) (?a <urn:p> ?b)]"
    )
    value = Variable("any 1")
    assert rule.consequences == (Delete((Pattern(A, Q, B), Pattern(A, P, value))), Insert((Pattern(A, P, B),)))
    assert axiom.consequences == (Insert((Pattern(P, P, ONE),)),)


def test_rules_over_lists_are_added_once_and_where_they_are_needed() -> None:
    text = "[(?a <urn:p> ?b) listLength(?b ?c) listEntry(?b 0 ?d) -> (?a ?c ?d)]"
    assert [rule.name for rule in translated(text * 2)] == ["rule1", "rule2", "lists", "lists"]
    assert [rule.name for rule in translated("[(?a <urn:p> ?b) -> (?a <urn:q> ?b)]")] == ["rule1"]


def test_a_rule_that_inserts_cannot_derive_hidden_facts() -> None:
    text = "[-> hide(<urn:q>)] [x: (?a <urn:p> ?b) -> remove(0) (?a <urn:q> ?b)]"
    assert messages(text) == ["the rule `x` makes what `hide` hides"]


def test_a_temporary_node_is_the_same_in_the_rules_of_a_head() -> None:
    outer, inner, other = _temporary(
        "[(?a <urn:p> ?b) makeTemp(?c) -> (?a <urn:q> ?c) [(?d <urn:p> ?c) <- (?d <urn:q> ?a) makeTemp(?e)]]"
    )
    assert outer == inner
    assert other.arguments[1] != inner.arguments[1]


def test_a_count_of_a_rules_own_conclusions_is_refused_with_its_place() -> None:
    text = "[r: (?a <urn:p> ?b) countLiteralValues(?a <urn:q> ?n) -> (?a <urn:q> ?n)]"
    with pytest.raises(SquallError, match=r"<text>:1:21: .*rule `r` aggregates what depends on it: `r` -> `r`"):
        squall.compile(text, lexer="jena")


def test_a_wrong_call_gives_one_error_only() -> None:
    assert messages("[(?a <urn:p> ?b) summ(?a 1 ?c) addOne(?c ?d) -> (?a <urn:q> ?d)]") == [
        "there is no built-in `summ`"
    ]


@pytest.mark.parametrize(
    "program", sorted((Path(__file__).parent / "golden/errors").glob("*.jena")), ids=lambda path: path.stem
)
def test_messages(program: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(program.parent)
    with pytest.raises(SquallError) as caught:
        squall.compile(program.name)
    assert f"{caught.value}\n" == program.with_suffix(".txt").read_text(encoding="utf-8")
