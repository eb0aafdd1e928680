"""LARS programs: their syntax, what is refused and where, and the operators on validity by themselves."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import cast

import pytest
from hypothesis import strategies as st

import squall
from squall.builders.runtime.operators import make_operator
from squall.builders.runtime.operators.temporal import TemporalOperator
from squall.builders.runtime.state import compact_deltas
from squall.builders.runtime.zset import Delta
from squall.errors import BuilderError, SquallError, single_errors
from squall.functions.values import integer
from squall.model import Source
from squall.plan import Input, Node, Plan
from squall.plan import operators as ops
from squall.rdf import ALWAYS, FOREVER
from squall.testing import LexerSuite, run, stream
from tests.laws import PLANNERS, examples, hold

EXAMPLE = {"": "http://example.org/"}


class TestLarsLexer(LexerSuite):
    lexer = "lars"
    good = (
        "x :- a always in [1].",
        "@prefix ex: <http://example.org/>.\n#prefix : <urn:>\nex:p(X, 1) :- ex:q(X, _), r(_, X) in [10 sec].",
        "@tick 1 sec.\nz at U + 1 :- a at U in [2 sec].  % a comment",
        "a :- d in [#2], e [10 #], not c(X, y) in [10 min step 5 min], p(X), K = (X + 1) * 2 - X / 3, K != -1.5.",
        'q(X) :- (p(Y), r(Y, X), Y < "b") in [1 h], s("a\\"b", "5"^^xsd:int, <urn:x>).',
        "p(a). q at 5. r(1, 2, 3).",
    )
    bad = (
        ("x :- a in [5 parsecs].", 1),
        ("x :- a in [-1].", 1),
        ("x :- a in [1.5 sec].", 1),
        ("x :- a in [5 step 0].", 1),
        ("x :- a in [# 0].", 1),
        ("x <- a.", 1),
        ("x :- a", 1),
        ("x :-\n foo:b(X).", 2),
        ("@tick 0.\nx :- a.", 1),
        ("@tick 1. @tick 2.\nx :- a.", 1),
        ("@prefix ex: <example>.\nx :- a.", 1),
        ("% nothing", 1),
        ('x :- a("b).', 1),
    )


REFUSED = [
    ("p(X) :- q(Y).", "the head has the variable `X`, which has no value: the rule is unsafe", "p(X)"),
    ("p(_) :- q(Y).", "the head has `_`, which has no value", "p(_)"),
    ("p(X) :- q(X), not r(X, Z).", "`not` has the variable `Z`, which has no value: the rule is unsafe", "not r(X, Z)"),
    ("p(X) :- q(X), Y > 2.", "the comparison has the variable `Y`, which has no value: the rule is unsafe", "Y > 2"),
    ("p(X) :- not q(X).", "`not` has the variable `X`, which has no value: the rule is unsafe", "not q(X)"),
    ("p(X) :- q(X), not (r(X), s(X)).", "`not` stands in front of one atom", "not (r(X), s(X))"),
    ("p(X) :- q(X) at X in [5].", "`X` is a variable of the atom", "at X in [5]"),
    ("p(X) :- q(X) always in [# 5].", "a window of tuples has no `always`", "always in [# 5]"),
    ("p(X) :- q(X) at T in [# 5].", "a window of tuples has no `at`", "at T in [# 5]"),
    (
        "p(X) :- q(X) in [# 5].\nq(X) :- r(X, X).",
        "a window of tuples counts what streams bring, and a rule derives `<urn:q>(X)`",
        "in [# 5]",
    ),
    (
        "@tick 2 sec.\np(X) :- q(X) in [3 sec].",
        "`3 s` is not a multiple of the tick of the program, which is 2s",
        "3 sec",
    ),
    (
        "p(X) :- q(X) in [5 step 3 msec].\n@tick 2.",
        "`3 ms` is not a multiple of the tick of the program, which is 2ms",
        "3 msec",
    ),
    ("p(1) :- q(X).", None, None),
    ('p("a", X) :- q(X).', "a literal cannot be the subject of a triple", 'p("a", X)'),
    ("p(X) at T :- q(X).", "the time of the head has the variable `T`, which has no value: the rule is unsafe", None),
    ("p(X) :- r(X, Y), (Y > 1) in [5].", "a comparison has no window", "in [5]"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "message", "words"), REFUSED)
def test_what_has_no_meaning_is_refused_with_its_place(text: str, message: str | None, words: str | None) -> None:
    with pytest.raises(SquallError) as caught:
        squall.compile(text, lexer="lars")
    errors = single_errors(caught.value)
    if message is None:
        message, words = "a literal cannot be the subject of a triple", "p(1)"
    error = next(item for item in errors if item.message == message)
    assert error.origin is not None
    assert words is None or error.origin.words == words
    assert error.hint


def test_a_prefix_without_a_declaration_is_refused_with_one() -> None:
    with pytest.raises(SquallError) as caught:
        squall.compile("x :- foo:b(X).", lexer="lars")
    assert caught.value.message == "the prefix `foo:` is not declared"
    assert caught.value.hint is not None
    assert caught.value.hint.startswith("declare it: `@prefix foo: <http://example.org/>.`")


def test_all_errors_of_a_program_are_given_at_once() -> None:
    with pytest.raises(SquallError) as caught:
        squall.compile("p(X) :- q(Y).\np(X) :- q(X) always in [# 5].", lexer="lars")
    assert len(single_errors(caught.value)) == 2


@pytest.mark.parametrize(
    "text",
    [
        "p(X) :- q(X), not p(X).",
        "p(X) :- q(X), not r(X) in [5].\nr(X) :- p(X) in [3].",
        "p(X) :- q(X), not r(X) always in [5].\nr(X) at T + 1 :- p(X) at T in [3].",
    ],
)
def test_negation_in_a_cycle_is_refused_with_the_cycle(text: str) -> None:
    with pytest.raises(SquallError, match="negates what depends on it: `rule1` -> "):
        squall.compile(text, lexer="lars")


def test_a_recursion_without_an_end_is_an_error() -> None:
    with pytest.raises(BuilderError, match="the recursion through windows of `rule2` goes on behind the end"):
        run("z(X) :- b(X).\nz(X) at U + 1 :- z(X) at U in [0].", "1 :x a :b", lexer="lars", prefixes=EXAMPLE)


def test_what_always_holds_has_no_times() -> None:
    text = "@prefix : <http://example.org/>.\nz(X, T) :- b(X) at T in [1]."
    with pytest.raises(BuilderError, match=r"a window with `at` lists the times of .*, which has always held"):
        run(text, "1 :x a :c", ":x a :b .", lexer="lars")


# The operators by themselves: at each instant what their definition says of the input as a set

OPERATORS: dict[str, tuple[ops.Temporal, Callable[[set[int], int], object]]] = {
    "dilate": (ops.Dilate(2), lambda held, now: bool(held & {now, now - 1, now - 2})),
    "dilate by steps": (ops.Dilate(2, 3), lambda held, now: bool(held & {*range(now // 3 * 3 - 2, now // 3 * 3 + 1)})),
    "erode": (ops.Erode(2), lambda held, now: {now, now - 1, now - 2} <= held),
    "erode by steps": (ops.Erode(1, 3), lambda held, now: {now // 3 * 3, now // 3 * 3 - 1} <= held),
    "at": (ops.At(2), lambda held, now: held & {now, now - 1, now - 2}),
    "schedule": (ops.Schedule(0), lambda held, now: now == 5 and min(held, default=9) <= 5),
}  # fmt: skip
ROW = (integer(5),)
INSTANTS = range(20)


def operator(op: ops.Temporal) -> TemporalOperator:
    """Returns an operator whose input has one column."""
    cells = (0, integer(1), integer(1))
    scan, match = Node("scan", ops.Scan(Source(removals=True))), Node("match", ops.Match(cells), (Input("scan"),))
    node = Node("it", cast(ops.Operator, op), (Input("match"),))
    facts, sink = Node("facts", ops.Construct(cells), (Input("it"),)), Node("sink", ops.Sink(), (Input("facts"),))
    instance = make_operator(node, Plan((scan, match, node, facts, sink)))
    assert isinstance(instance, TemporalOperator)
    return instance


def output_at(deltas: Sequence[Delta], instant: int, op: ops.Temporal) -> object:
    """Returns what an operator outputs at an instant: whether the row, or which times."""
    counts: dict[object, int] = {}
    for delta in deltas:
        if delta[-3] <= instant < delta[-2]:
            counts[delta[:-3]] = counts.get(delta[:-3], 0) + delta[-1]
    if isinstance(op, ops.At):
        return {int(row[-1].split('"')[1]) for row, many in counts.items() if many > 0}  # type: ignore[index]
    return any(many > 0 for many in counts.values())


@examples(60)
@pytest.mark.parametrize("name", OPERATORS)
def test_an_operator_gives_what_its_definition_says(name: str, many: int) -> None:
    op, definition = OPERATORS[name]

    def law(spans: list[tuple[int, int, int, bool, int]], resumes: int) -> None:
        """Each span comes at its start or before; some are retracted a little later from then on."""
        steps: list[tuple[int, Delta]] = []
        held: set[int] = set()
        for start, length, cut, retracts, lead in spans:
            steps.append((max(start - lead, 0), (*ROW, start, start + length, 1)))
            end = start + length
            if retracts and start + cut < end:
                steps.append((start + cut, (*ROW, start + cut, end, -1)))
                end = start + cut
            held.update(range(start, end))
        instance, deltas = operator(op), list[Delta]()
        log: list[tuple[int, list[Delta]]] = []
        instance.enable_changelog()
        for now in INSTANTS:
            for time, delta in sorted(steps):
                if time == now:
                    deltas += instance.apply(0, [delta])
            deltas += instance.advance(now)
            log += instance.drain_changelog()
            instance.expire(now)
            if now == resumes:
                instance = resumed_from(log, op, now)
                instance.enable_changelog()
            assert output_at(deltas, now, op) == definition(held, now), f"at {now}, after {deltas}"

    span = st.tuples(st.integers(0, 8), st.integers(1, 6), st.integers(1, 5), st.booleans(), st.integers(0, 3))
    hold(law, many, spans=st.lists(span, max_size=5), resumes=st.integers(0, 12))


def resumed_from(log: Iterable[tuple[int, list[Delta]]], op: ops.Temporal, now: int) -> TemporalOperator:
    """Returns an operator with the state of a changelog, which is compacted at a time."""
    resumed = operator(op)
    resumed.resume_at(now)
    slots: dict[int, list[Delta]] = {}
    for slot, deltas in log:
        slots.setdefault(slot, []).extend(deltas)
    for slot, deltas in slots.items():
        resumed.restore(slot, compact_deltas(deltas, now, resumed.key_width(slot)))
    return resumed


def test_what_begins_where_another_one_ends_is_processed_in_a_run_that_resumes() -> None:
    """Compaction unites what is valid with what follows it. That is not processed yet."""
    instance = operator(ops.Dilate(3))
    instance.enable_changelog()
    instance.apply(0, [(*ROW, 1, 2, 1), (*ROW, 2, 5, 1)])
    assert instance.advance(1) == [(*ROW, 1, 5, 1)]
    log = [*instance.drain_changelog()]
    resumed = resumed_from(log, ops.Dilate(3), 1)
    assert resumed.next_time == 2
    assert resumed.advance(2) == instance.advance(2) == [(*ROW, 5, 8, 1)]
    worker = resumed_from(log, ops.Dilate(3), 1)
    for slot, deltas in instance.drain_changelog():
        worker.restore(slot, deltas)
    assert worker.next_time == FOREVER


def test_what_prolongs_what_prolongs_is_nothing_new() -> None:
    instance = operator(ops.Dilate(3))
    instance.apply(0, [(*ROW, 1, 4, 1), (*ROW, 4, 6, 1), (*ROW, 6, 7, 1)])
    instance.advance(1)
    assert instance.is_prolonged
    instance.apply(0, [(*ROW, 8, 9, 1)])
    assert not instance.is_prolonged


@pytest.mark.parametrize("planner", PLANNERS)
def test_what_stays_on_does_so_however_often_it_was_turned_on(planner: str) -> None:
    program = "@tick 1.\non(X) :- on(X) in [3].\non(X) :- a(X, y)."
    plan = squall.plan(squall.compile(program, lexer="lars", output="changes"), planner)
    outputs = squall.run(plan, stream("\n".join(f"{time} <urn:x> <urn:a> <urn:y>" for time in (1, 2, 3))))
    assert [(out.time, out.change) for out in outputs] == [(1, "insert")]


def test_rows_without_an_end_are_listed_as_time_passes() -> None:
    instance = operator(ops.At(0))
    assert instance.apply(0, [(*ROW, 3, FOREVER, 1)]) == []
    assert instance.next_time == 3
    assert [delta[1] for delta in instance.advance(5)] == [integer(3), integer(4), integer(5)]
    assert instance.next_time == 6
    with pytest.raises(BuilderError, match="holds for ever behind the end of the input"):
        instance.advance(FOREVER - 1)


def test_what_begins_later_is_processed_then() -> None:
    instance = operator(ops.Dilate(2))
    assert instance.apply(0, [(*ROW, 3, 4, 1)]) == []
    assert instance.advance(2) == []
    assert instance.next_time == 3
    assert instance.advance(3) == [(*ROW, 3, 6, 1)]
    assert operator(ops.Erode(2)).apply(0, [(*ROW, ALWAYS, FOREVER, 1)]) == []


def test_what_begins_later_does_so_in_a_run_that_resumes() -> None:
    instance = operator(ops.Dilate(2))
    instance.enable_changelog()
    instance.apply(0, [(*ROW, 1, 2, 1), (*ROW, 6, 7, 1)])
    instance.advance(3)
    log = [*instance.drain_changelog()]
    resumed = resumed_from(log, ops.Dilate(2), 3)
    assert resumed.next_time == 6
    assert resumed.advance(3) == []
    assert resumed.advance(6) == [(*ROW, 6, 9, 1)]
    near = resumed_from(log, ops.Dilate(2), 5)
    assert near.advance(6) == [(*ROW, 6, 9, 1)]


def test_a_fact_holds_at_its_time_if_its_body_does_then() -> None:
    instance = operator(ops.Schedule(0))
    instance.apply(0, [(*ROW, 5, 6, 1)])
    assert instance.advance(5) == [(*ROW, 5, 6, 1)]
    late = operator(ops.Schedule(0))
    late.apply(0, [(*ROW, 6, 7, 1)])
    assert late.advance(6) == []


def test_what_has_held_by_its_time_stays_although_the_rest_is_retracted() -> None:
    instance = operator(ops.Schedule(0, 100))
    instance.apply(0, [(*ROW, start, start + 1, 1) for start in range(1, 19, 2)])
    instance.apply(0, [(*ROW, 20, 30, 1)])
    assert instance.advance(20) == [(*ROW, 500, 600, 1)]
    instance.expire(20)
    assert instance.apply(0, [(*ROW, 20, 30, -1)]) == []
    assert instance.advance(40) == []


def test_what_has_ended_counts_for_as_long_as_the_window_is() -> None:
    instance = operator(ops.Dilate(4))
    instance.enable_changelog()
    instance.apply(0, [(*ROW, 1, 2, 1)])
    assert instance.advance(1) == [(*ROW, 1, 6, 1)]
    resumed = resumed_from([*instance.drain_changelog()], ops.Dilate(4), 3)
    resumed.apply(0, [(*ROW, 4, 5, 1)])
    assert resumed.advance(4) == [(*ROW, 6, 9, 1)]
