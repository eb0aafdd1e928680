"""The output operators: what they emit, when, and how often, compared with the answer at every instant."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from squall.builders.runtime.operators.output import AppendOnlyOutput, AppendOnlySolutionOutput, OutputOperator
from squall.builders.runtime.state import compact_deltas
from squall.builders.runtime.zset import Delta, Row, row_fact
from squall.contracts import Output
from squall.model import Report
from squall.plan import operators as ops
from squall.rdf import ALWAYS, FOREVER, Atom, Solution, Triple
from tests.laws import examples_of
from tests.snapshots import INSTANTS, ONE, REL, A, Advance, B, C, at, courses, forget

OUTPUTS = ("istream", "dstream", "rstream", "changes")
CHANGE, NONEMPTY, PERIODIC = Report("change"), Report("nonempty"), Report("periodic", 3)
TIMES = (ALWAYS, *range(2 * len(INSTANTS)))
"""The instants at which anything may begin or end."""


# The model


def answer(taken: Iterable[Delta], instant: int) -> Counter[object]:
    """Returns the facts (a set) and solutions (a bag) that are valid at an instant."""
    counts: Counter[Row] = Counter()
    for row, count in at(taken, instant).items():
        counts[row[:-1]] += count
    results: Counter[object] = Counter()
    for row, count in counts.items():
        if count > 0:
            results[row_fact(row)] = count if isinstance(row_fact(row), Solution) else 1
    return results


def expected_outputs(
    output: str, report: Report, taken: Sequence[Delta], now: int, instants: Sequence[int]
) -> Counter[object]:
    """Returns the expected outputs up to a time: (time, fact, change)."""
    times = instants if output == "rstream" else _reported(report, TIMES)
    results: Counter[object] = Counter()
    before: Counter[object] = Counter()
    for time in (time for time in times if time <= now):
        holds = answer(taken, time)
        changed = {
            "istream": {"": holds - before}, "dstream": {"": before - holds}, "rstream": {"": holds},
            "changes": {"delete": before - holds, "insert": holds - before},
        }[output]  # fmt: skip
        if output != "rstream" or report.policy != "change" or holds != before:
            for change, counts in changed.items():
                results.update({(time, fact, change): count for fact, count in counts.items()})
        before = holds
    return results


def _reported(report: Report, times: Sequence[int]) -> Sequence[int]:
    return [time for time in times if report.policy != "periodic" or time == ALWAYS or time % report.period == 0]


def rows_of(delta: Delta, kind: str) -> Delta:
    """Returns a delta of a fact or a solution, made from a delta of a term and a rule."""
    term, rule, *remainder = delta
    if kind == "solutions":
        return ("?x y", term, None, rule, *remainder)
    return (term, B, C, rule, *remainder)


def course_of(course: Sequence[Advance], kind: str) -> list[Advance]:
    return [Advance(step.now, [rows_of(delta, kind) for delta in step.batch]) for step in course]


COURSES = courses(2, (A, B), always=True)
"""Courses of rows that consist of a term and the name of a rule."""


# What is output


@pytest.mark.parametrize("kind", ["facts", "solutions"])
@pytest.mark.parametrize(
    ("output", "report"),
    [
        *((output, Report()) for output in OUTPUTS), *((output, PERIODIC) for output in OUTPUTS),
        ("rstream", CHANGE), ("rstream", NONEMPTY), ("istream", CHANGE),
    ],
    ids=lambda value: value if isinstance(value, str) else value.policy,
)  # fmt: skip
@given(course=COURSES, grid=st.sets(st.sampled_from(TIMES)))
@settings(max_examples=examples_of(15), deadline=None)
def test_it_outputs_the_answer_as_time_advances(
    kind: str, output: str, report: Report, course: list[Advance], grid: set[int]
) -> None:
    """`grid` has the evaluation times, which matter to RSTREAM (snapshot) output only."""
    op = OutputOperator(ops.Sink(output, report=report))
    instants = _reported(report, sorted(grid))
    deltas: list[Delta] = []
    outputs: list[Output] = []
    passed = ALWAYS - 1
    for step in course_of(course, kind):
        op.apply(0, step.batch)
        deltas += step.batch
        result = op.flush(step.now, [time for time in instants if passed < time <= step.now])
        assert all(passed < out.time <= step.now for out in result)
        outputs += result
        passed = step.now
        assert Counter((out.time, out.fact, out.change) for out in outputs) == expected_outputs(
            output, report, deltas, passed, instants
        )
    assert [out.time for out in outputs] == sorted(out.time for out in outputs)
    changes = [(out.time, out.change) for out in outputs]
    assert changes == sorted(changes), "of an instant, deletions come before insertions"
    # A solution that becomes more may name a rule since which it is one.
    at_once = kind == "facts" and output == "istream" and report.policy != "periodic"
    _is_made_by_a_maker(outputs, deltas, now=at_once)


def _is_made_by_a_maker(came: Iterable[Output], taken: Sequence[Delta], now: bool) -> None:
    """Checks that the rule of an output derives its fact: now, or at some time up to then."""
    for out in came:
        since = [out.time] if now else [time for time in TIMES if time <= out.time]
        makers = {row[-1] for time in since for row in at(taken, time) if row_fact(row[:-1]) == out.fact}
        assert out.rule in makers, out


@pytest.mark.parametrize("output", OUTPUTS)
@given(course=COURSES)
@settings(max_examples=examples_of(15), deadline=None)
def test_another_instance_resumes_from_its_state(output: str, course: list[Advance]) -> None:
    op = OutputOperator(ops.Sink(output))
    deltas: list[Delta] = []
    store: list[Delta] = []
    outputs: list[Output] = []
    passed = ALWAYS - 1
    for step in course_of(course, "facts"):
        op = OutputOperator(ops.Sink(output))
        op.resume_at(passed)
        op.restore(0, store)
        op.enable_changelog()
        op.apply(0, step.batch)
        deltas += step.batch
        outputs += op.flush(step.now, [time for time in TIMES if passed < time <= step.now])
        store += [delta for _, state in op.drain_changelog() for delta in state]
        passed = step.now
    assert Counter((out.time, out.fact, out.change) for out in outputs) == expected_outputs(
        output, Report(), deltas, passed, TIMES
    )


@pytest.mark.parametrize("output", OUTPUTS)
@given(course=COURSES)
@settings(max_examples=examples_of(10), deadline=None)
def test_expired_rows_are_deleted(output: str, course: list[Advance]) -> None:
    op = OutputOperator(ops.Sink(output))
    for step in course_of(course, "facts"):
        op.apply(0, step.batch)
        op.flush(step.now)
    assert op.size() == 0
    assert not op.rules


def fact(subject: str, rule: str = "rule") -> Row:
    return (subject, C, C, rule)


def test_a_fact_is_output_once_whichever_rules_derive_it() -> None:
    op = OutputOperator(ops.Sink())
    op.apply(0, [(*fact(A, "one"), 1, FOREVER, 1), (*fact(A, "two"), 1, FOREVER, 1)])
    assert op.flush(1) == [Output(Triple(A, C, C), 1, "one")]
    op.apply(0, [(*fact(A, "two"), 2, FOREVER, 1)])
    assert op.flush(2) == []


def test_a_fact_that_holds_again_is_output_again_with_the_rule_that_derives_it() -> None:
    op = OutputOperator(ops.Sink())
    op.apply(0, [(*fact(A, "one"), 1, 3, 1), (*fact(A, "two"), 5, 7, 1)])
    assert op.flush(9) == [Output(Triple(A, C, C), 1, "one"), Output(Triple(A, C, C), 5, "two")]


def test_a_fact_that_returns_names_a_rule_that_still_derives_it() -> None:
    op = OutputOperator(ops.Sink())
    op.apply(0, [(*fact(A, "one"), 1, FOREVER, 1)])
    op.flush(2)
    op.apply(0, [(*fact(A, "one"), 3, 8, -1)])
    assert op.flush(9) == [Output(Triple(A, C, C), 8, "one")]


def test_a_rule_that_did_not_make_it_after_all_is_not_named() -> None:
    op = OutputOperator(ops.Sink())
    op.apply(0, [(*fact(A, "one"), 5, 9, 1), (*fact(A, "two"), 5, 9, 1)])
    op.apply(0, [(*fact(A, "one"), 5, 9, -1)])
    assert op.flush(9) == [Output(Triple(A, C, C), 5, "two")]


def test_a_retraction_names_a_rule_that_derived_the_fact() -> None:
    op = OutputOperator(ops.Sink("dstream"))
    op.apply(0, [(*fact(A, "one"), 1, 5, 1), (*fact(A, "two"), 3, 7, 1)])
    assert op.flush(9) == [Output(Triple(A, C, C), 7, "one")]


def test_static_facts_are_output() -> None:
    op = OutputOperator(ops.Sink())
    op.apply(0, [(REL, A, "axiom", ALWAYS, FOREVER, 1)])
    assert op.flush(ALWAYS) == [Output(Atom(C, (A,)), ALWAYS, "axiom")]


@pytest.mark.parametrize("output", OUTPUTS)
def test_generalized_triples_are_not_output(output: str) -> None:
    op = OutputOperator(ops.Sink(output))
    op.apply(0, [(ONE, C, C, "r", 1, 3, 1), (A, "_:b", C, "r", 1, 3, 1)])
    assert op.flush(9, [1, 2, 3]) == []


def test_a_solution_is_output_once_for_each_additional_occurrence() -> None:
    op = OutputOperator(ops.Sink())
    op.apply(0, [("?x", A, "q", 1, 5, 2), ("?x", A, "q", 3, 9, 2), ("?x", A, "q", 7, 9, 1)])
    output_times = [out.time for out in op.flush(9)]
    assert output_times == [1, 1, 3, 3, 7]


def test_reporting_on_change_counts_solutions_and_not_derivations() -> None:
    op = OutputOperator(ops.Sink("rstream", report=CHANGE))
    op.apply(0, [(*fact(A, "one"), 1, 9, 1), (*fact(A, "two"), 2, 9, 1), ("?x", A, "q", 3, 9, 1)])
    assert [out.time for out in op.flush(5, [1, 2, 3, 4])] == [1, 3, 3]


def test_between_two_periods_nothing_is_output() -> None:
    op = OutputOperator(ops.Sink(report=Report("periodic", 10)))
    op.apply(0, [(*fact(A), 1, 9, 1), (*fact(B), 8, 12, 1)])
    assert op.flush(30) == [Output(Triple(B, C, C), 10, "rule")]


# What only grows


GROWING = st.lists(
    st.tuples(st.sampled_from([A, B]), st.integers(0, 6), st.integers(1, 6), st.integers(0, 6), st.sampled_from("rs")),
    max_size=8,
)
"""Append-only facts by subject: their start, their length, how long before the start they come, and the name of a
rule."""


def growing(spans: Iterable[tuple[str, int, int, int, str]], last: int, kind: str) -> list[Advance]:
    coming = [
        (start - early, rows_of((subject, rule, start, start + length, 1), _kind_of(subject, kind)))
        for subject, start, length, early, rule in spans
    ]
    return [
        Advance(now, [delta for expected, delta in coming if expected == now or (now == 0 and expected < 0)])
        for now in range(last)
    ]


def _kind_of(subject: str, kind: str) -> str:
    """Returns the kind of a row: with both, the rows of one subject are facts and those of the other solutions."""
    return {"both": "facts" if subject == A else "solutions"}.get(kind, kind)


def append_only_output(kind: str) -> AppendOnlyOutput | AppendOnlySolutionOutput:
    if kind == "facts":
        return AppendOnlyOutput(ops.Sink(), remembers=True)
    return AppendOnlySolutionOutput(ops.Sink(), has_facts=kind == "both", expires=True)


KINDS = ["facts", "solutions", "both"]


@pytest.mark.parametrize("kind", KINDS)
@given(spans=GROWING, forgets=st.booleans(), twice=st.booleans())
@settings(max_examples=examples_of(50), deadline=None)
def test_an_append_only_answer_is_output_when_it_arrives(
    kind: str, spans: list[tuple[str, int, int, int, str]], forgets: bool, twice: bool
) -> None:
    """With `twice`, the deltas that begin at an instant come in two batches."""
    op = append_only_output(kind)
    deltas: list[Delta] = []
    outputs: list[Output] = []
    for step in growing(spans, max(TIMES), kind):
        half = len(step.batch) // 2 if twice else 0
        for part in (step.batch[:half], step.batch[half:]):
            op.apply(0, part)
            outputs += op.flush(step.now)
            assert op.next_time > step.now
            if forgets:
                forget(op, step.now)
        deltas += step.batch
    assert Counter((out.time, out.fact, out.change) for out in outputs) == expected_outputs(
        "istream", Report(), deltas, max(TIMES), ()
    )
    assert [out.time for out in outputs] == sorted(out.time for out in outputs)
    _is_made_by_a_maker(outputs, deltas, now=kind == "facts")
    forget(op, max(TIMES))
    assert op.size() == 0


@given(spans=GROWING)
@settings(max_examples=examples_of(25), deadline=None)
def test_append_only_facts_resume_from_their_state(spans: list[tuple[str, int, int, int, str]]) -> None:
    """No row has to be buffered: all rows come when they begin."""
    store: list[Delta] = []
    deltas: list[Delta] = []
    outputs: list[Output] = []
    spans = [(subject, start, length, 0, rule) for subject, start, length, _, rule in spans]
    for step in growing(spans, max(TIMES), "facts"):
        op = AppendOnlyOutput(ops.Sink(), remembers=True)
        op.restore(0, store)
        op.enable_changelog()
        op.apply(0, step.batch)
        outputs += op.flush(step.now)
        store += [delta for _, state in op.drain_changelog() for delta in state]
        deltas += step.batch
    assert Counter((out.time, out.fact, out.change) for out in outputs) == expected_outputs(
        "istream", Report(), deltas, max(TIMES), ()
    )


@pytest.mark.parametrize("kind", ["solutions", "both"])
@given(spans=GROWING, complete=st.integers(0, max(TIMES)), compacts=st.booleans())
@settings(max_examples=examples_of(50), deadline=None)
def test_append_only_solutions_resume_from_their_state(
    kind: str, spans: list[tuple[str, int, int, int, str]], complete: int, compacts: bool
) -> None:
    """Another instance goes on at each step. Up to a time, an operator for complete instants writes the state."""
    store: list[Delta] = []
    deltas: list[Delta] = []
    outputs: list[Output] = []
    for step in growing(spans, max(TIMES), kind):
        op = OutputOperator(ops.Sink()) if step.now < complete else append_only_output(kind)
        op.resume_at(step.now - 1)
        op.restore(0, store)
        op.enable_changelog()
        op.apply(0, step.batch)
        outputs += op.flush(step.now)
        changes = [changes for slot, part in op.drain_changelog() for changes in part if slot == 0]
        store = compact_deltas([*store, *changes], step.now) if compacts else [*store, *changes]
        deltas += step.batch
    assert Counter((out.time, out.fact, out.change) for out in outputs) == expected_outputs(
        "istream", Report(), deltas, max(TIMES), ()
    )


def solution(term: str) -> Row:
    return ("?x", term, "rule")


def test_a_solution_is_output_as_often_as_it_begins() -> None:
    op = AppendOnlySolutionOutput(ops.Sink(name="query"), has_facts=False, expires=True)
    op.apply(0, [(*solution(A), 1, 4, 2), (*solution(A), 2, 4, 1)])
    assert op.flush(2) == [Output(row_fact(solution(A)[:-1]), time, "query") for time in (1, 1, 2)]
    op.apply(0, [(*solution(A), 4, 6, 4)])
    assert op.next_time == 4
    assert op.flush(3) == []
    assert op.flush(4) == [Output(row_fact(solution(A)[:-1]), 4, "query")], "three of the four continue"


def test_a_solution_that_is_prolonged_needs_no_further_state() -> None:
    op = AppendOnlySolutionOutput(ops.Sink(), has_facts=False, expires=True)
    sizes = set[int]()
    for time in range(50):
        op.apply(0, [(*solution(A), time + 9 if time else 0, time + 10, 1)])
        assert len(op.flush(time)) == (not time)
        op.expire(time)
        sizes.add(op.size())
    assert sizes == {1}


def test_solutions_that_never_end_need_no_state() -> None:
    op = AppendOnlySolutionOutput(ops.Sink(), has_facts=False, expires=False)
    op.enable_changelog()
    op.apply(0, [(*solution(A), 1, FOREVER, 1), (*solution(A), 3, FOREVER, 1)])
    assert [out.time for out in op.flush(3)] == [1, 3]
    assert op.size() == 0
    assert list(op.drain_changelog()) == []


def test_state_is_deleted_where_rows_are_unique() -> None:
    op = AppendOnlyOutput(ops.Sink(), remembers=False)
    op.apply(0, [(*fact(A), 1, FOREVER, 1), (*fact(A), 1, FOREVER, 1), (*fact(B), 5, FOREVER, 1)])
    assert op.next_time == 1
    assert op.flush(1) == [Output(Triple(A, C, C), 1, "rule")]
    assert op.size() == 1, "what waits for its time"
    assert op.next_time == 5
    assert op.flush(5) == [Output(Triple(B, C, C), 5, "rule")]
    assert op.size() == 0
    assert op.next_time == FOREVER


def test_what_only_grows_is_rdf_as_well() -> None:
    op = AppendOnlyOutput(ops.Sink(), remembers=True)
    op.apply(0, [(ONE, C, C, "r", ALWAYS, FOREVER, 1), (REL, ONE, "r", ALWAYS, FOREVER, 1)])
    assert op.flush(ALWAYS) == [Output(Atom(C, (ONE,)), ALWAYS, "r")]
