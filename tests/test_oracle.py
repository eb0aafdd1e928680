"""The oracle agrees with results computed by hand: both ends of windows, every operator, every report policy."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from squall.errors import BuilderError, PlannerError
from squall.functions import function
from squall.functions.jena import function_iri
from squall.model import (
    Aggregate,
    Bind,
    Call,
    Consequence,
    Construct,
    Delete,
    Expression,
    Grouping,
    Insert,
    Joinable,
    NotExists,
    Optional,
    Order,
    Pattern,
    Report,
    Select,
    Slice,
    Slot,
    Source,
    System,
    TableFunction,
    Union,
    Variable,
    with_windows,
)
from squall.model import Filter as Condition
from squall.model.windows import LANDMARK, CountWindow, HoppingWindow, SlidingWindow, Window
from squall.rdf import Event, Solution, Term, heartbeat, iri_text
from squall.testing import oracle, static, stream, term
from squall.testing.streams import show


def slot(text: str) -> Slot:
    return Variable(text[1:]) if text[0] == "?" else term(text)


def patterns(text: str) -> tuple[Pattern, ...]:
    """Returns triple patterns of a text in which ``. `` separates them: ``?x :p ?y. ?y :p ?z``."""
    parts = (map(slot, part.split()) for part in text.split(". ") if part)
    return tuple(Pattern(subject, predicate, value) for subject, predicate, value in parts)


def names(text: str) -> tuple[Variable, ...]:
    return tuple(map(Variable, text.split()))


def part(*body: str | Joinable, **remainder: Any) -> System:
    """Returns a system whose body is given as texts of patterns, and as joinables."""
    joinables = [element for item in body for element in (patterns(item) if isinstance(item, str) else (item,))]
    return System(joinables=tuple(joinables), **remainder)


def makes(head: str) -> dict[str, tuple[Consequence, ...]]:
    return {"consequences": (Construct(patterns(head)),)}


def selects(text: str) -> dict[str, tuple[Consequence, ...]]:
    return {"consequences": (Select(names(text)),)}


def call(name: str, *arguments: Expression) -> Call:
    return Call(function_iri(name), arguments)


def lines(system: System, events: str, facts: str = "", output: str | None = None) -> list[str]:
    """Returns the outputs line by line."""
    outputs = replace(system, output=output) if output else system
    return [show(time, item) for time, item, *_ in oracle.outputs(outputs, stream(events), static(facts))]


COPY = part("?x :p ?y", **makes("?x :q ?y"))


def through(window: Window, **remainder: Any) -> System:
    """Returns a system that copies the content of a window."""
    return with_windows(replace(COPY, **remainder), window)


X, Y, Z = names("x y z")


# Windows: where facts begin and end to be valid


@pytest.mark.parametrize(
    ("window", "come", "gone"),
    [
        (LANDMARK, [0], []),
        (SlidingWindow(5), [0, 7], [5, 15]),
        (SlidingWindow(3), [0, 7], [3, 13]),
        (HoppingWindow(5, 5), [5], [20]),
        (HoppingWindow(10, 5), [5], [25]),
        (HoppingWindow(5, 2), [2, 8], [6, 16]),
        (HoppingWindow(5, 5, closed=True), [0, 10], [5, 15]),
        (HoppingWindow(5, 5, origin=2), [2, 12], [7, 17]),
        (CountWindow(1), [0], []),
        (CountWindow(2, 2), [7], []),
    ],
    ids=str,
)
def test_a_fact_begins_and_expires(window: Window, come: list[int], gone: list[int]) -> None:
    """The fact arrives at 0, 7 and 10. A window is a set: where one validity interval ends as another begins, the fact
    stays."""
    events = "0 :a :p :b\n7 :a :p :b\n10 :a :p :b"
    assert lines(through(window), events) == [f"{time} :a :q :b" for time in come]
    assert lines(through(window), events, output="dstream") == [f"{time} :a :q :b" for time in gone]


@pytest.mark.parametrize(
    ("window", "expected"),
    [
        (SlidingWindow(2), ["1 :a :q :b", "4 :c :q :d"]),
        (HoppingWindow(4, 2), ["2 :a :q :b", "4 :a :q :b", "6 :c :q :d", "8 :c :q :d"]),
        (CountWindow(1), ["1 :a :q :b", "4 :c :q :d"]),
        (LANDMARK, ["1 :a :q :b", "4 :a :q :b", "4 :c :q :d"]),
    ],
    ids=str,
)
def test_the_whole_answer_at_every_evaluation_instant(window: Window, expected: list[str]) -> None:
    assert lines(through(window, output="rstream"), "1 :a :p :b\n4 :c :p :d") == expected


def test_the_instants_of_a_hopping_window() -> None:
    answers = oracle.answers(through(HoppingWindow(4, 2)), stream("1 :a :p :b\n12 :a :p :b"))
    assert list(answers) == [-(2**63), 2, 4, 6, 14, 16, 18]


def test_events_without_facts_are_instants_too() -> None:
    events = "1 :a :p :b\n3"
    assert lines(through(LANDMARK, output="rstream"), events) == ["1 :a :q :b", "3 :a :q :b"]
    assert list(oracle.answers(through(SlidingWindow(5)), stream(events))) == [-(2**63), 1, 3, 6, 8]


def test_unread_facts_make_no_instant() -> None:
    assert lines(part(**makes(":a :q :b"), output="rstream"), "1 :a :p :b") == ["always :a :q :b"]
    named = replace(COPY, sources=(Source(term(":s")[1:-1]),), output="rstream")
    assert lines(named, "1 @:s :a :p :b\n2 :c :p :d") == ["1 :a :q :b"]
    events = [*stream("1 :a :p :b"), heartbeat(9)]
    assert [time for time, *_ in oracle.outputs(replace(COPY, output="rstream"), events)] == [1]


def test_the_last_so_many_triples_duplicates_counted() -> None:
    events = "1 :a :p :b , :c\n2 :a :p :c\n3 :a :p :d"
    assert lines(through(CountWindow(2)), events) == ["1 :a :q :b", "1 :a :q :c", "3 :a :q :d"]
    assert lines(through(CountWindow(2)), events, output="dstream") == ["2 :a :q :b"]


def test_more_triples_than_a_window_holds_at_one_instant() -> None:
    assert lines(through(CountWindow(2)), "1 :a :p :b , :c , :d") == ["1 :a :q :c", "1 :a :q :d"]


def test_a_block_of_triples_that_is_not_complete_is_never_seen() -> None:
    events = "1 :a :p :b\n2 :a :p :c\n3 :a :p :d , :e\n4 :a :p :f"
    blocks = through(CountWindow(2, 2))
    assert lines(blocks, events) == ["2 :a :q :b", "2 :a :q :c", "3 :a :q :d", "3 :a :q :e"]
    assert lines(blocks, events, output="dstream") == ["3 :a :q :b", "3 :a :q :c"]


def test_a_count_window_with_steps() -> None:
    events = "1 :a :p :b\n2 :a :p :c , :d\n3 :a :p :e\n4\n5 :a :p :f , :g , :h"
    window = through(CountWindow(3, 2))
    assert lines(window, events, output="rstream") == [
        "2 :a :q :b", "2 :a :q :c", "3 :a :q :c", "3 :a :q :d", "3 :a :q :e", "5 :a :q :e", "5 :a :q :f", "5 :a :q :g",
    ]  # fmt: skip
    assert lines(window, events, output="dstream") == ["3 :a :q :b", "5 :a :q :c", "5 :a :q :d"]


def test_a_window_of_triples_that_leaves_gaps() -> None:
    events = "1 :a :p :b\n2 :a :p :c\n3 :a :p :d\n4 :a :p :e\n5 :a :p :f\n6 :a :p :g"
    assert lines(through(CountWindow(1, 3)), events) == ["3 :a :q :d", "6 :a :q :g"]


def test_each_stream_is_counted_by_itself() -> None:
    events = "1 @:s :a :p :b\n2 @:t :a :p :c\n3 @:t :a :p :d"
    assert lines(through(CountWindow(1)), events, output="dstream") == ["3 :a :q :c"]


def test_streams_through_windows_of_their_own() -> None:
    system = with_windows(COPY, SlidingWindow(2), {term(":s")[1:-1]: SlidingWindow(9)})
    assert lines(system, "1 @:s :a :p :b\n1 :c :p :d", output="dstream") == ["3 :c :q :d", "10 :a :q :b"]


def test_two_sources_of_a_rule_are_one_set() -> None:
    two = (Source(term(":s")[1:-1], SlidingWindow(5)), Source(term(":t")[1:-1], SlidingWindow(5)))
    system = part("?x :p ?y", sources=two, **selects("x"))
    events = "1 @:s :a :p :b\n2 @:t :a :p :b\n2 :e :p :f"
    assert lines(system, events) == ["1 ?x=:a"]
    assert lines(system, events, output="dstream") == ["7 ?x=:a"]


def test_the_same_stream_through_two_windows() -> None:
    """The query asks for facts within 2 ms of a fact that is within the last 9 ms."""
    inner = part("?x :p ?y", sources=(Source("", SlidingWindow(2)),), **selects("x"))
    system = part("?x :r ?z", inner, sources=(Source("", SlidingWindow(9)),), **makes("?x :q ?z"))
    events = "1 :a :r :c\n5 :a :p :b"
    assert lines(system, events) == ["5 :a :q :c"]
    assert lines(system, events, output="dstream") == ["7 :a :q :c"]


def test_static_facts_are_read_by_the_default_graph_and_by_a_source_of_their_name() -> None:
    events = [Event(0, ())]
    facts = [*static(":a :p :b"), static(":c :p :d")[0]._replace(stream="urn:s")]
    for source, expected in (
        (Source("", SlidingWindow(1)), 2),
        (Source("urn:s", SlidingWindow(1)), 1),
        (Source("urn:t"), 0),
    ):
        assert len(oracle.outputs(replace(COPY, sources=(source,)), events, facts)) == expected


def test_what_rules_make_is_read_through_the_default_graph_alone() -> None:
    first = part("?x :r ?y", sources=(Source(term(":s")[1:-1], SlidingWindow(3)),), name="first", **makes("?x :p ?y"))
    for source, expected in (
        (Source("", SlidingWindow(1)), ["1 :a :p :b", "1 :a :q :b"]),
        (Source("urn:t"), ["1 :a :p :b"]),
    ):
        system = System(subsystems=(first, replace(COPY, sources=(source,))))
        assert lines(system, "1 @:s :a :r :b") == expected
    program_system = System(subsystems=(first, with_windows(COPY, SlidingWindow(1))), output="dstream")
    assert lines(program_system, "1 @:s :a :r :b") == ["4 :a :p :b", "4 :a :q :b"]


def test_recursion_over_a_window_holds_as_long_as_its_weakest_step() -> None:
    closure = with_windows(part("?x :p ?y. ?y :p ?z", **makes("?x :p ?z")), SlidingWindow(5))
    events = "0 :a :p :b\n3 :b :p :c\n4 :a :p :b"
    assert lines(closure, events) == ["3 :a :p :c"]
    assert lines(closure, events, output="dstream") == ["8 :a :p :c"]


# Removals


def removing(window: Window = LANDMARK) -> System:
    return with_windows(COPY, window, removals=True)


def test_a_removal_ends_what_came_before_it() -> None:
    events = "1 :a :p :b\n3 - :a :p :b\n5 :a :p :b"
    assert lines(removing(), events) == ["1 :a :q :b", "5 :a :q :b"]
    assert lines(removing(), events, output="dstream") == ["3 :a :q :b"]


def test_events_of_one_instant_are_applied_in_order() -> None:
    assert lines(removing(), "1 :a :p :b\n3 :a :p :b\n3 - :a :p :b", output="dstream") == ["3 :a :q :b"]
    assert lines(removing(), "1 :a :p :b\n3 - :a :p :b\n3 :a :p :b", output="dstream") == []
    assert lines(removing(), "3 :a :p :b\n3 - :a :p :b") == []
    assert lines(removing(), "3 - :a :p :b\n3 :a :p :b") == ["3 :a :q :b"]
    assert lines(removing(CountWindow(2)), "3 :a :p :b\n3 - :a :p :b") == []


def test_of_one_event_what_it_removes_ends_first() -> None:
    facts = stream("3 :a :p :b")[0].facts
    assert [time for time, *_ in oracle.outputs(removing(), [Event(3, facts, removed=facts)], [])] == [3]


def test_a_removal_takes_nothing_from_other_streams() -> None:
    assert lines(removing(), "1 @:s :a :p :b\n2 @:t - :a :p :b", output="dstream") == []
    assert lines(removing(), "2 - :a :p :b", ":a :p :b", output="dstream") == []


def test_a_removal_before_a_window_shows_the_fact() -> None:
    assert lines(removing(HoppingWindow(4, 4)), "1 :a :p :b\n1 :c :p :d\n2 - :a :p :b") == ["4 :c :q :d"]
    assert lines(removing(HoppingWindow(4, 4)), "1 :a :p :b\n5 - :a :p :b", output="dstream") == ["5 :a :q :b"]


def test_removed_triples_count_in_a_count_window() -> None:
    events = "1 :a :p :b\n2 :a :p :c\n3 - :a :p :c\n4 :a :p :d"
    assert lines(removing(CountWindow(2)), events, output="dstream") == ["3 :a :q :c", "4 :a :q :b"]
    assert lines(removing(CountWindow(2, 2)), "1 :a :p :b\n2 - :a :p :b\n3 :a :p :c") == ["3 :a :q :c"]


# Joinables


def test_solutions_are_a_bag() -> None:
    system = part("?x :p ?y", **selects("x"))
    assert lines(system, "1 :a :p :b , :c\n2 :a :p :d") == ["1 ?x=:a", "1 ?x=:a", "2 ?x=:a"]
    assert lines(replace(system, distinct=True), "1 :a :p :b , :c\n2 :a :p :d") == ["1 ?x=:a"]


def test_rules_that_answer_the_same_answer_twice() -> None:
    query = part("?x :p ?y", **selects("x"))
    system = System(subsystems=(replace(query, name="one"), replace(query, name="two")))
    assert lines(system, "1 :a :p :b") == ["1 ?x=:a", "1 ?x=:a"]


def test_a_subquery_hides_its_other_variables_and_keeps_multiplicities() -> None:
    inner = part("?x :p ?y", **selects("x"))
    assert lines(part(inner, "?x :r ?y", **selects("x y")), "1 :a :p :b , :c ; :r :d") == ["1 ?x=:a ?y=:d"] * 2
    assert lines(part(replace(inner, distinct=True), "?x :r ?y", **selects("y")), "1 :a :p :b , :c ; :r :d") == [
        "1 ?y=:d"
    ]


def test_either_adds_and_leaves_unbound_what_a_branch_does_not_bind() -> None:
    either = Union((part("?x :p ?y"), part("?x :r ?z")))
    events = "1 :a :p :b ; :r :c"
    assert lines(part(either, **selects("x y z")), events) == ["1 ?x=:a ?y= ?z=:c", "1 ?x=:a ?y=:b ?z="]
    assert lines(part(either, **selects("x")), events) == ["1 ?x=:a", "1 ?x=:a"]


def test_a_template_with_an_unbound_variable_makes_no_fact() -> None:
    either = Union((part("?x :p ?y"), part("?x :r ?z")))
    assert lines(part(either, **makes("?x :q ?y. ?x :t ?x")), "1 :a :r :c") == ["1 :a :t :a"]


def test_a_pattern_finds_a_set() -> None:
    """Two literals that match one constant make one solution."""
    assert lines(part("?x :p 5", **selects("x")), '1 :a :p 5 , "05"^^xsd:int') == ["1 ?x=:a"]


# Predicates


def test_optional_is_a_left_join() -> None:
    system = part("?x :p ?y", predicates=(Optional(part("?x :r ?z")),), **selects("x z"))
    events = "1 :a :p :b\n3 :a :r :c , :d\n5 - :a :r :c , :d"
    assert lines(system, events) == ["1 ?x=:a ?z=", "3 ?x=:a ?z=:c", "3 ?x=:a ?z=:d", "5 ?x=:a ?z="]
    assert lines(system, events, output="dstream") == ["3 ?x=:a ?z=", "5 ?x=:a ?z=:c", "5 ?x=:a ?z=:d"]


def test_the_condition_of_a_maybe_sees_both_sides() -> None:
    less = Optional(part("?x :r ?z"), call("lessThan", Z, Y))
    system = part("?x :p ?y", predicates=(less,), **selects("x y z"))
    assert lines(system, "1 :a :p 5 ; :r 4 , 7") == [f"1 ?x=:a ?y={term('5')} ?z={term('4')}"]
    assert lines(system, "1 :a :p 5 ; :r 7") == [f"1 ?x=:a ?y={term('5')} ?z="]


def test_maybe_without_shared_variables() -> None:
    system = part("?x :p :b", predicates=(Optional(part(":k :r ?z")),), **selects("x z"))
    assert lines(system, "1 :a :p :b\n2 :k :r :c") == ["1 ?x=:a ?z=", "2 ?x=:a ?z=:c"]


def test_unbound_variables_stay_unbound() -> None:
    maybe = Optional(part("?x :r ?z"))
    system = part("?x :p ?y", predicates=(maybe, Condition(call("unbound", Z))), **selects("x"))
    assert lines(system, "1 :a :p :b\n2 :a :r :c\n3 :d :p :e") == ["1 ?x=:a", "3 ?x=:d"]


def test_without_agrees_on_shared_variables() -> None:
    system = part("?x :p ?y", predicates=(NotExists(patterns("?x :r ?z. ?z :r ?w")),), **makes("?x :q ?y"))
    events = "1 :a :p :b\n2 :a :r :c\n3 :c :r :d"
    assert lines(system, events, output="dstream") == ["3 :a :q :b"]


def test_without_shared_variables_anything_counts() -> None:
    system = with_windows(
        part("?x :p ?y", predicates=(NotExists(patterns(":k :r ?z")),), **makes("?x :q ?y")), SlidingWindow(5)
    )
    events = "1 :a :p :b\n2 :k :r :c"
    assert lines(system, events, output="dstream") == ["2 :a :q :b"]
    assert lines(system, "1 :k :r :c\n2 :a :p :b") == ["6 :a :q :b"], "it begins when what stood against it ends"


def test_without_a_part() -> None:
    """There is no room in which something is both hot and loud."""
    inner = part("?x :hot ?y. ?x :loud ?z", **selects("x"))
    system = part("?x :p ?y", predicates=(NotExists((inner,)),), **makes("?x :q ?y"))
    assert lines(system, "1 :a :p :b ; :hot :c\n2 :a :loud :d", output="dstream") == ["2 :a :q :b"]


@function("test-oracle-twice", languages=())
def _twice(value: Term | None) -> list[tuple[Term | None, Term]]:
    return [] if value == term(":none") else [(value, term(":one")), (value, term(":two"))]


def test_a_table_function_returns_any_number_of_rows() -> None:
    table = TableFunction((Z, Variable("w")), "urn:x-squall:own:test-oracle-twice", (Y,))
    system = part("?x :p ?y", predicates=(table,), **selects("z w"))
    assert lines(system, "1 :a :p :b\n2 :a :p :none") == ["1 ?z=:b ?w=:one", "1 ?z=:b ?w=:two"]


def test_now_is_since_when_a_solution_holds() -> None:
    timed = part("?x :p ?y", predicates=(Bind(Z, call("now")),), **makes("?x :at ?z"))
    events = "0 :a :p :b\n4 :a :p :b\n20 :a :p :b"
    at = '"1970-01-01T00:00:00.02Z"^^<http://www.w3.org/2001/XMLSchema#dateTime>'
    assert lines(with_windows(timed, SlidingWindow(5)), events)[1:] == [f"20 :a :at {at}"]


# Aggregates


def aggregate(kind: str, expression: Expression | None = Y, **remainder: Any) -> System:
    grouping = Grouping((X,), (Aggregate(Z, kind, expression, **remainder),))
    return part("?x :p ?y", grouping=grouping, **selects("z"))


@pytest.mark.parametrize(
    ("system", "facts", "expected"),
    [
        (aggregate("count", None), "1 , 2 , :b", "3"),
        (aggregate("count"), "1 , 2 , :b", "3"),
        (aggregate("count", call("sum", Y, Y)), "1 , 2 , :b", "2"),
        (aggregate("sum"), "1 , 2", "3"),
        (aggregate("sum"), "1 , 0.5", "1.5"),
        (aggregate("sum"), '0.1 , 0.2 , 0.3 , "1"^^xsd:double', '"1.6"^^xsd:double'),
        (aggregate("sum"), '1 , "0.1"^^xsd:float', '"1.1"^^xsd:float'),
        (aggregate("sum"), '"1e0"^^xsd:float , 1e0', '"2.0"^^xsd:double'),
        (aggregate("sum"), '1 , "INF"^^xsd:double', '"INF"^^xsd:double'),
        (aggregate("sum"), '"-INF"^^xsd:float , "INF"^^xsd:double', '"NaN"^^xsd:double'),
        (aggregate("sum"), "1 , :b", ""),
        (aggregate("sum", call("sum", Y, Y)), "1 , :b", ""),
        (aggregate("avg"), "1 , 2", "1.5"),
        (aggregate("avg"), "1 , 2 , 4", f"2.{'3' * 59}"),
        (aggregate("avg"), '"1"^^xsd:double , 2', '"1.5"^^xsd:double'),
        (aggregate("avg"), "1 , :b", ""),
        (aggregate("min"), "2 , 1.5 , :b", ":b"),
        (aggregate("min"), '10 , 9 , "z"', "9"),
        (aggregate("max"), '10 , 9 , "z"', '"z"'),
        (aggregate("max", call("sum", Y, Y)), "1 , 2", '"4"^^xsd:int'),
        (aggregate("max", call("sum", Y, Y)), "1 , :b", ""),
        (aggregate("sample"), "2 , 1 , 3", "1"),
        (aggregate("group_concat"), '"b" , "a" , 3', '"3 a b"'),
        (aggregate("group_concat", separator=", "), ":b , :a", '"http://example.org/a, http://example.org/b"'),
        (aggregate("sum", X), "1", ""),
    ],
)
def test_aggregates(system: System, facts: str, expected: str) -> None:
    ((_, solution, *_),) = oracle.outputs(system, stream(f"1 :a :p {facts}"))
    assert isinstance(solution, Solution)
    assert solution.values == (term(expected) if expected else None,)


@pytest.mark.parametrize(
    ("kind", "distinct", "expected"),
    [
        ("sum", False, "4"),
        ("sum", True, "3"),
        ("count", False, "3"),
        ("count", True, "2"),
        ("avg", True, "1.5"),
        ("group_concat", False, '"1 1 2"'),
        ("group_concat", True, '"1 2"'),
    ],
)
def test_distinct_aggregates(kind: str, distinct: bool, expected: str) -> None:
    """Both :a and :b have the value 1; the multiplicity of a solution in the bag is how often it counts."""
    grouping = Grouping((), (Aggregate(Z, kind, Y, distinct),))
    ((_, solution, *_),) = oracle.outputs(
        part("?x :p ?y", grouping=grouping, **selects("z")), stream("0 :a :p 1 , 2 .\n0 :b :p 1")
    )[-1:]
    assert isinstance(solution, Solution)
    assert solution.values == (term(expected),)


def test_without_keys_there_is_one_group_even_of_no_rows() -> None:
    many = Grouping((), (Aggregate(Y, "count"), Aggregate(Z, "min", X), Aggregate(Variable("s"), "avg", X)))
    system = with_windows(part("?x :p ?o", grouping=many, **selects("y z s")), SlidingWindow(5))
    zero, item = (f'"{number}"^^<http://www.w3.org/2001/XMLSchema#integer>' for number in (0, 1))
    nothing = f"?y={zero} ?z= ?s={zero}"
    assert lines(system, "1 :a :p :b") == [f"always {nothing}", f"1 ?y={item} ?z=:a ?s=", f"6 {nothing}"]


def test_with_keys_there_is_no_empty_group() -> None:
    counted = Grouping((X,), (Aggregate(Z, "count"),))
    system = with_windows(part("?x :p ?y", grouping=counted, **makes("?x :n ?z")), SlidingWindow(5))
    item = '"1"^^<http://www.w3.org/2001/XMLSchema#integer>'
    assert lines(system, "1 :a :p :b\n2 :a :p :c") == [
        f"1 :a :n {item}",
        '2 :a :n "2"^^<http://www.w3.org/2001/XMLSchema#integer>',
        f"6 :a :n {item}",
    ]
    assert lines(system, "1 :a :p :b", output="dstream") == [f"6 :a :n {item}"]


def test_unbound_is_a_key_like_others() -> None:
    counted = Grouping((Z,), (Aggregate(Y, "count"),))
    system = part("?x :p :b", predicates=(Optional(part("?x :r ?z")),), grouping=counted, **selects("z y"))
    item, two = (f'"{number}"^^<http://www.w3.org/2001/XMLSchema#integer>' for number in (1, 2))
    assert lines(system, "1 :a :p :b\n1 :c :p :b\n1 :d :p :b ; :r :e") == [f"1 ?z= ?y={two}", f"1 ?z=:e ?y={item}"]


# Distinct and slice


def test_a_slice_at_every_instant() -> None:
    least = Slice((Order(Y),), limit=1)
    system = with_windows(part("?x :p ?y", slice=least, **selects("x y")), SlidingWindow(5))
    events = "1 :a :p 5\n2 :b :p 10\n3 :c :p 1.5\n9 :d :p 2"
    assert [line.split()[:2] for line in lines(system, events)] == [["1", "?x=:a"], ["3", "?x=:c"], ["9", "?x=:d"]]
    assert [line.split()[:2] for line in lines(system, events, output="dstream")] == [
        ["3", "?x=:a"],
        ["8", "?x=:c"],
        ["14", "?x=:d"],
    ]


def test_order_offset_and_limit() -> None:
    events = "1 :a :p 1 , 2 , 3 , 4 , 5"

    def chosen(offset: int, limit: int | None, descending: bool) -> str:
        cut = Slice((Order(Y, descending),), offset, limit)
        result = lines(part("?x :p ?y", slice=cut, **selects("y"), output="rstream"), events)
        return " ".join(line.partition('"')[2][0] for line in result)

    assert chosen(0, None, False) == "1 2 3 4 5"
    assert chosen(1, 2, False) == "2 3"
    assert chosen(1, 2, True) == "4 3"
    assert chosen(4, 9, False) == "5"
    assert chosen(5, 9, False) == ""
    assert chosen(0, 0, False) == ""


def test_what_an_order_leaves_equal_is_ordered_by_its_text() -> None:
    system = part("?x :p ?y", slice=Slice((Order(Y),), 0, 2), **selects("x"))
    assert lines(system, "1 :c :p 1\n1 :a :p 1\n1 :b :p 1") == ["1 ?x=:a", "1 ?x=:b"]


def test_a_slice_may_order_by_what_it_does_not_show() -> None:
    system = part("?x :p ?y", slice=Slice((Order(Y, True),), 0, 1), **selects("x"))
    assert lines(system, "1 :a :p 1\n1 :b :p 2\n1 :c :p :d") == ["1 ?x=:b"]


def test_distinct_comes_before_the_slice() -> None:
    system = part("?x :p ?y", distinct=True, slice=Slice((Order(X),), 1, 1), **selects("x"))
    assert lines(system, "1 :a :p 1 , 2\n1 :b :p 2") == ["1 ?x=:b"]


def test_a_slice_of_a_rule_slices_its_solutions() -> None:
    system = part("?x :p ?y", slice=Slice((Order(Y),), 0, 2), **makes("?x :q :k"))
    assert lines(system, "1 :a :p 1 , 2\n1 :b :p 3") == ["1 :a :q :k"]


# Consequences and reports


def test_delete_ends_a_fact_at_the_next_instant() -> None:
    process = part("?x :done ?y. ?x :p ?z", name="done", consequences=(Delete(patterns("?x :p ?z")),))
    system = System(subsystems=(COPY, process))
    events = "1 :a :p :b\n5 :a :done :c"
    assert lines(system, events, output="dstream") == ["6 :a :q :b"]
    assert lines(system, events, output="rstream") == ["1 :a :q :b", "5 :a :q :b"]


def test_delete_acts_when_its_solution_begins() -> None:
    """A fact that arrives while the solution holds stays; when the solution begins again, it is deleted."""
    process = with_windows(part(":k :done ?y", consequences=(Delete(patterns(":a :p :b")),)), SlidingWindow(4))
    system = System(subsystems=(COPY, process))
    events = "1 :k :done :c\n3 :a :p :b\n10 :k :done :c"
    assert lines(system, events) == ["3 :a :q :b"]
    assert lines(system, events, output="dstream") == ["11 :a :q :b"]


def test_delete_removes_facts_of_the_same_instant_from_all_streams() -> None:
    process = part(":k :done ?y", consequences=(Delete(patterns(":a :p :b")),))
    events = "1 :k :done :c\n1 :a :p :b\n1 @:s :a :p :b"
    assert lines(System(subsystems=(COPY, process)), events, output="dstream") == ["2 :a :q :b"]


def test_delete_removes_static_data_and_no_derived_facts() -> None:
    process = part(":k :done ?y", consequences=(Delete(patterns(":a :p :b. :c :q :d")),))
    system = System(subsystems=(COPY, process))
    assert lines(system, "1 :k :done :c", ":a :p :b. :c :p :d", output="dstream") == ["2 :a :q :b"]


def test_delete_acts_on_each_solution_that_begins() -> None:
    """Each time somebody is done, the facts that have come since the last time are deleted."""
    process = part("?x :done ?y", consequences=(Delete(patterns(":a :p :b")),))
    system = System(subsystems=(COPY, process))
    events = "1 :k :done :c\n3 :a :p :b\n5 :l :done :c"
    assert lines(system, events, output="dstream") == ["6 :a :q :b"]


def test_delete_in_a_graph_takes_what_that_stream_brought() -> None:
    process = part(":k :done ?y", consequences=(Delete(patterns(":a :p :b"), term(":s")),))
    own = part("?x :p ?y", sources=(Source(iri_text(term(":s"))),), **makes("?x :r ?y"))
    events = "1 @:s :a :p :b\n1 :a :p :b\n5 :k :done :c"
    assert lines(System(subsystems=(COPY, own, process)), events, output="dstream") == ["6 :a :r :b"]


def inserting(*rules: System, where: str = "?x :p ?y", **fields: Any) -> System:
    into: dict[str, Any] = {"name": "into", "consequences": (Insert(patterns("?x :q ?y")),)}
    return System(subsystems=(part(where, **{**into, **fields}), *rules))


def test_insert_puts_facts_there_until_they_are_deleted() -> None:
    """This holds whatever happens to the solution. A fact that is inserted twice is deleted completely."""
    process = part(":k :done ?y. ?x :q ?z", name="done", consequences=(Delete(patterns("?x :q ?z")),))
    system = with_windows(inserting(process), SlidingWindow(4))
    events = "1 :a :p :b\n7 :a :p :b\n20 :k :done :c"
    assert lines(system, events) == ["2 :a :q :b"]
    assert lines(system, events, output="dstream") == ["21 :a :q :b"]


def test_insert_is_read_whatever_the_windows_and_in_its_graph_alone() -> None:
    reads = part("?x :q ?y", name="reads", reentrant=False, **makes("?x :r ?y"))
    own = part("?x :q ?y", sources=(Source(iri_text(term(":g"))),), reentrant=False, **makes("?x :s ?y"))
    default = with_windows(inserting(reads, own), SlidingWindow(4))
    assert lines(default, "1 :a :p :b") == ["2 :a :q :b", "2 :a :r :b"]
    named = inserting(reads, own, consequences=(Insert(patterns("?x :q ?y"), X),))
    assert lines(with_windows(named, SlidingWindow(4)), "1 :g :p :b\n9 :h :p :b") == [
        "2 :g :q :b", "2 :g :r :b", "2 :g :s :b", "10 :h :q :b", "10 :h :r :b",
    ]  # fmt: skip


def test_all_is_deleted_before_anything_is_inserted() -> None:
    """Two facts can be swapped without a third; a fact that is deleted and inserted at once stays."""
    was, now = patterns(":k :swap ?z. :a :p ?x. :b :p ?y"), patterns(":a :p ?y. :b :p ?x")
    swap = part(*was, consequences=(Insert(now), Delete(was)))
    assert lines(swap, "1 :a :p :c\n1 :b :p :d\n5 :k :swap :k") == ["6 :a :p :d", "6 :b :p :c"]
    stays = with_windows(
        part(":a :p ?x", consequences=(Insert(patterns(":a :p ?x")), Delete(patterns(":a :p ?x")))), SlidingWindow(4)
    )
    assert lines(stays, "1 :a :p :c") == ["2 :a :p :c"]
    assert lines(stays, "1 :a :p :c", output="dstream") == []


def test_a_rule_may_insert_what_it_asks_not_to_be_there() -> None:
    once = inserting(where="?x :p ?y", predicates=(NotExists(patterns("?z :q ?w")),))
    assert lines(once, "1 :a :p :b\n5 :c :p :d") == ["2 :a :q :b"]


def test_inserts_of_axioms_hold_from_the_start() -> None:
    start = System("start", consequences=(Insert(patterns(":a :q :b")),))
    absent = System(
        "absent", predicates=(NotExists(patterns(":a :q :b")),), consequences=(Insert(patterns(":c :q :d")),)
    )
    assert lines(System(subsystems=(absent, start)), "") == ["always :a :q :b"]


def test_updates_over_static_data_terminate_before_the_first_event() -> None:
    """Facts that are deleted in between are in no answer."""
    step = part(
        "?x :q ?y. ?y :p ?z", name="step", consequences=(Delete(patterns("?x :q ?y")), Insert(patterns("?x :q ?z")))
    )
    system = System(subsystems=(part("?x :at ?y", name="start", consequences=(Insert(patterns("?x :q ?y")),)), step))
    assert lines(system, "5 :c :p :d", ":z :at :a. :a :p :b. :b :p :c") == ["always :z :q :c", "6 :z :q :d"]


def test_generalized_triples_are_not_inserted() -> None:
    turned = inserting(consequences=(Insert(patterns("?y :q ?x")), Insert(patterns("?x :q ?x"), Y)))
    assert lines(turned, "1 :a :p 1\n3 :a :p :b") == ["4 :a :q :a", "4 :b :q :a"]


def test_updates_without_end_are_an_error() -> None:
    fact = patterns(":a :q :b")
    flip = part(name="flip", predicates=(NotExists(fact),), consequences=(Insert(fact),))
    flop = part(*fact, name="flop", consequences=(Delete(fact),))
    with pytest.raises(BuilderError, match="still something to do"):
        oracle.outputs(System(subsystems=(flip, flop)), [])


def test_deletions_lead_to_deletions() -> None:
    """Each deletion removes its own premise, and then the next premise holds."""
    rules = (
        part(":a :p :b", consequences=(Delete(patterns(":a :p :b")),)),
        part(":c :p :d", predicates=(NotExists(patterns(":a :p :b")),), consequences=(Delete(patterns(":c :p :d")),)),
    )
    events = "1 :a :p :b\n1 :c :p :d"
    assert lines(System(subsystems=(COPY, *rules)), events, output="dstream") == ["2 :a :q :b", "3 :c :q :d"]


def reporting(policy: str, output: str, period: int = 0) -> list[str]:
    system = with_windows(replace(COPY, report=Report(policy, period), output=output), SlidingWindow(4))
    return lines(system, "1 :a :p :b\n2 :z :z :z\n3 :c :p :d\n20 :e :p :f")


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        ("close", ["1 :a", "2 :a", "3 :a", "3 :c", "5 :c", "6 :c", "20 :e"]),
        ("change", ["1 :a", "3 :a", "3 :c", "5 :c", "20 :e"]),
        ("nonempty", ["1 :a", "2 :a", "3 :a", "3 :c", "5 :c", "6 :c", "20 :e"]),
    ],
)
def test_reports(policy: str, expected: list[str]) -> None:
    """The instants are 1, 2, 3, and 5, 6, 7, when these facts expire; then 20 and 24."""
    assert [line[: line.index(" :q")] for line in reporting(policy, "rstream")] == expected


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        ("rstream", ["3 :a :q :b", "3 :c :q :d", "6 :c :q :d", "21 :e :q :f"]),
        ("istream", ["3 :a :q :b", "3 :c :q :d", "21 :e :q :f"]),
        ("dstream", ["6 :a :q :b", "9 :c :q :d", "24 :e :q :f"]),
    ],
)
def test_periodic_reports(output: str, expected: list[str]) -> None:
    assert reporting("periodic", output, 3) == expected


def test_facts_that_expire_within_a_period_are_not_output() -> None:
    assert reporting("periodic", "istream", 10) == ["20 :e :q :f"]
    assert reporting("periodic", "dstream", 10) == ["30 :e :q :f"]


def test_static_answers_are_output_at_once_and_again_with_each_period() -> None:
    system = replace(COPY, output="rstream", report=Report("periodic", 10))
    assert lines(system, "3 :c :p :d", ":a :p :b") == ["always :a :q :b", "10 :a :q :b", "10 :c :q :d"]


# Strata


@pytest.mark.parametrize(
    "cyclic",
    [
        {"predicates": (Optional(part("?x :q ?z")),)},
        {"predicates": (Bind(Z, call("now")),)},
        {"grouping": Grouping((X, Y), ())},
        {"slice": Slice((Order(X),), 0, 1)},
    ],
    ids=["maybe", "now", "grouping", "slice"],
)
def test_operators_on_complete_instants_cannot_be_recursive(cyclic: dict[str, Any]) -> None:
    body = "?x :p ?y" if "Optional" in str(cyclic) else "?x :q ?y"
    with pytest.raises(PlannerError, match="depends on its own negation"):
        oracle.answers(part(body, **cyclic, **makes("?x :q ?y")), [])


def test_aggregates_include_derived_facts() -> None:
    total = Grouping((), (Aggregate(Z, "count"),))
    count = part("?x :q ?y", grouping=total, **makes(":all :count ?z"))
    twice = part("?x :p ?y", **makes("?x :q ?y. ?y :q ?x"))
    result = lines(System(subsystems=(count, twice)), "1 :a :p :b")
    two = '"2"^^<http://www.w3.org/2001/XMLSchema#integer>'
    assert result[1:] == ["1 :a :q :b", f"1 :all :count {two}", "1 :b :q :a"]
