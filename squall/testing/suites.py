"""Test suites for lexers, planners and builders: an author of a plug-in subclasses them.

class TestMine(PlannerSuite):
    planner = "mine"        # the name of its entry point, or the planner itself in `staticmethod`
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import fields, is_dataclass, replace
from itertools import pairwise
from typing import Any, ClassVar, cast

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from hypothesis.errors import HypothesisException

import squall
from squall import plugins
from squall.contracts import Builder, Lexer, Output, Planner
from squall.errors import Errors, LexerError, Origin, SquallError
from squall.functions.jena import function_iri
from squall.model import (
    AtomPattern,
    Construct,
    NotExists,
    Pattern,
    Source,
    System,
    Variable,
)
from squall.plan import Input, Node, Plan
from squall.plan import operators as ops
from squall.plan.operators import (
    AntiJoin,
    Column,
    Distinct,
    Extend,
    Invoke,
    Join,
    Match,
    MultiwayJoin,
    OneOf,
    Operator,
    Scan,
    Sink,
    Unit,
    Value,
)
from squall.plan.operators import Filter as Condition
from squall.plan.validation import check
from squall.rdf import Event, Term
from squall.testing.check import Losses, assert_as_oracle, assert_outputs, outputs
from squall.testing.compare import difference
from squall.testing.strategies import event_streams, static_data, systems
from squall.testing.streams import show, static, stream, term, timed


class _Suite:
    max_examples: ClassVar[int] = 60
    """The number of programs that hypothesis draws for each law."""
    shrink: ClassVar[bool] = True
    """Whether hypothesis shrinks a program that breaks a law, which takes many runs."""

    def for_all(self, law: Callable[..., None], **strategies: st.SearchStrategy[Any]) -> None:
        """Runs a law on examples that hypothesis draws.

        Raises:
            Exception: The first one that is neither a broken law nor a `SquallError`: no other example is tried, since
                a stage that crashes mostly does so in all of them.
        """
        checks = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]
        phases = set(Phase) if self.shrink else set(Phase) - {Phase.shrink, Phase.explain}
        limits = settings(max_examples=self.max_examples, deadline=None, suppress_health_check=checks, phases=phases)
        try:
            limits(given(**strategies)(_stopping_at_crashes(law)))()
        except _CrashError as crash:
            raise crash.error from None


class _CrashError(BaseException):
    """An exception for which hypothesis does not search a smaller example."""

    def __init__(self, error: Exception) -> None:
        super().__init__(error)
        self.error = error


def _stopping_at_crashes(law: Callable[..., None]) -> Callable[..., None]:
    """Returns the law so that an exception which no example should raise ends the search for examples."""

    def checked_law(**example: Any) -> None:
        try:
            law(**example)
        except (AssertionError, SquallError, HypothesisException):
            raise
        except Exception as error:
            error.add_note("\n".join(f"{name} = {value!r}" for name, value in example.items()))
            raise _CrashError(error) from error

    return checked_law


class LexerSuite(_Suite):
    """Tests of a lexer.

    Attributes:
        good: Texts of the language.
        bad: Wrong texts, each with the line of its first error.
    """

    lexer: ClassVar[str]
    good: ClassVar[Sequence[str]]
    bad: ClassVar[Sequence[tuple[str, int]]]

    @property
    def lex(self) -> Lexer:
        return cast(Lexer, plugins.load(plugins.LEXERS, self.lexer))

    def test_its_package_declares_file_extensions(self) -> None:
        extensions = [extension for extension, names in plugins.extensions().items() if self.lexer in names]
        assert extensions, f"no entry point in the group `{plugins.EXTENSIONS}` names the language `{self.lexer}`"
        assert all(extension.startswith(".") for extension in extensions)

    def test_it_satisfies_the_protocol(self) -> None:
        assert isinstance(self.lex, Lexer)

    def test_a_tree_is_frozen_and_equal_texts_give_equal_trees(self) -> None:
        for text in self.good:
            assert self.lex(text, "one") == self.lex(text, "two")
            hash(self.lex(text, "one"))

    def test_a_tree_prints_as_text_of_the_language(self) -> None:
        for text in self.good:
            tree = self.lex(text, "good")
            printed = str(tree)
            assert self.lex(printed, "printed") == tree, f"another tree is read from the print:\n{printed}"

    def test_bad_text_is_refused_with_its_place(self) -> None:
        for text, line in self.bad:
            with pytest.raises(SquallError) as caught:
                self.lex(text, "bad")
            first = caught.value.errors[0] if isinstance(caught.value, Errors) else caught.value
            assert isinstance(first, LexerError)
            assert first.origin is not None, f"no place is given: {first}"
            assert (first.origin.name, first.origin.line) == ("bad", line)

    def test_no_text_breaks_it(self) -> None:
        """Checks that any text gives a tree or a `SquallError`."""

        def law(text: str) -> None:
            with suppress(SquallError):
                self.lex(text, "any")

        pieces = [piece for text in (*self.good, *(text for text, _ in self.bad)) for piece in _pieces(text)]
        self.for_all(law, text=st.one_of(st.text(), st.lists(st.sampled_from(pieces), max_size=12).map("".join)))


def _pieces(text: str) -> list[str]:
    """Splits a text at its blanks and keeps these."""
    return [word + " " for word in text.split()] + list(text)


class PlannerSuite(_Suite):
    """Tests of a planner."""

    planner: ClassVar[str | Planner]

    def plan(self, system: System) -> Plan:
        return squall.plan(system, self.planner)

    def test_every_plan_is_well_formed(self) -> None:
        def law(system: System) -> None:
            check(self.plan(system))

        self.for_all(law, system=systems())

    def test_equal_systems_give_equal_plans(self) -> None:
        """Checks that a plan depends neither on origins in the text nor on earlier plans."""

        def law(system: System, other: System) -> None:
            first = self.plan(system)
            self.plan(other)
            assert self.plan(_elsewhere(system)) == first

        self.for_all(law, system=systems(), other=systems())

    def test_names_of_variables_and_order_of_the_body_do_not_change_the_answer(self) -> None:
        def law(system: System, events: list[Event], facts: list[Event], data: st.DataObject) -> None:
            variant = permuted(renamed(system), data)
            actual = outputs(self.plan(variant), [events], facts, "iterator")
            assert_as_oracle(system, actual, events, facts)

        self.for_all(law, system=systems(), events=event_streams(), facts=static_data(), data=st.data())

    def test_answers_are_those_of_the_oracle(self) -> None:
        def law(system: System, events: list[Event], facts: list[Event]) -> None:
            actual = outputs(self.plan(system), [events], facts, "iterator")
            assert_as_oracle(system, actual, events, facts)

        self.for_all(law, system=systems(), events=event_streams(), facts=static_data())

    def test_no_rules(self) -> None:
        assert outputs(self.plan(System()), [stream("1 :a :p :b")], (), "iterator") == []

    @pytest.mark.parametrize("output", ["istream", "dstream", "rstream"])
    def test_the_output_is_the_programs(self, output: str) -> None:
        plan = self.plan(System(output=output, subsystems=(COPY,)))
        assert [node.op.output for node in plan.nodes if isinstance(node.op, Sink)] == [output]

    def test_two_joins_over_the_same_patterns_stay_two(self) -> None:
        grandparent = _rule("g", [("?x", ":p", "?y"), ("?y", ":p", "?z")], [("?x", ":g", "?z")])
        sibling = _rule("s", [("?z", ":p", "?x"), ("?z", ":p", "?y")], [("?x", ":s", "?y")])
        assert_outputs(
            System(subsystems=(grandparent, sibling)),
            "1 :a :p :b\n2 :b :p :c",
            "1 :b :s :b\n2 :a :g :c\n2 :c :s :c",
            planner=self.planner,
        )


class BuilderSuite(_Suite):
    """Tests of a builder. If a run is costly to start, lower `max_examples`."""

    builder: ClassVar[str | Builder]
    max_examples: ClassVar[int] = 40

    def run_plan(self, plan: Plan, batches: Sequence[Sequence[Event]], facts: Sequence[Event] = ()) -> list[Output]:
        return outputs(check(plan), batches, facts, self.builder)

    def expect(self, plan: Plan, events: str, expected: str, facts: str = "") -> None:
        """Runs a hand-written plan and compares its outputs with a text."""
        outputs = self.run_plan(plan, [stream(events)], static(facts))
        differs = difference(((out.time, out.fact) for out in outputs), timed(expected))
        assert not differs, f"missing (-) and surplus (+):\n{differs}"

    # One plan by hand for each operator

    def test_read_and_match(self) -> None:
        plan = _ending(_read(), _match("m", 0, ":p", 1), _emit("m", 1, ":q", 0))
        self.expect(plan, "1 :a :p :b\n2 :a :r :b\n3 :c :p :d", "1 :b :q :a\n3 :d :q :c")

    def test_read_of_one_stream_leaves_the_others_out(self) -> None:
        plan = _ending(_read("http://example.org/s"), _match("m", 0, ":p", 1), _emit("m", 1, ":q", 0))
        (ours,), (other_facts,) = stream("1 :a :p :b"), stream("1 :c :p :d")
        outputs = self.run_plan(plan, [[ours._replace(stream="http://example.org/s"), other_facts]])
        assert [(out.time, out.fact) for out in outputs] == timed("1 :b :q :a")

    def test_match_of_anything(self) -> None:
        plan = _ending(_read(), _match("m", 0, None, None), _emit("m", 0, ":q", 0))
        self.expect(plan, "1 :a :p :b\n2 :a :r :c\n3 :d :p :a", "1 :a :q :a\n3 :d :q :d")

    def test_match_of_a_repeated_column(self) -> None:
        plan = _ending(_read(), _match("m", 0, 1, 0), _emit("m", 0, ":q", 1))
        self.expect(plan, "1 :a :p :b\n2 :a :p :a", "2 :a :q :p")

    def test_match_by_value_and_by_term(self) -> None:
        by_value = Node("m", Match((0, term(":p"), Value(term("5")))), (Input("read"),))
        plan = _ending(_read(), by_value, _emit("m", 0, ":q", ":five"))
        self.expect(plan, '1 :a :p "05"^^xsd:int\n2 :b :p "5"\n3 :c :p 6\n4 :d :p 5', "1 :a :q :five\n4 :d :q :five")
        by_term = Node("m", Match((0, term(":p"), term("5"))), (Input("read"),))
        plan = _ending(_read(), by_term, _emit("m", 0, ":q", ":five"))
        self.expect(plan, '1 :a :p "05"^^xsd:int\n4 :d :p 5', "4 :d :q :five")

    def test_match_of_several_terms(self) -> None:
        several = Node("m", Match((0, term(":p"), OneOf((term(":a"), term(":b"))))), (Input("read"),))
        plan = _ending(_read(), several, _emit("m", 0, ":q", 0))
        self.expect(plan, "1 :x :p :a\n2 :y :p :b\n3 :z :p :c\n4 :z :r :a", "1 :x :q :x\n2 :y :q :y")

    def test_join(self) -> None:
        plan = _ending(
            _read(), _match("l", 0, ":p", 1), _match("r", 0, ":r", 1),
            _binary("j", Join(((1, 0),), (0, 3)), "l", "r", (1,), (0,)), _emit("j", 0, ":q", 1),
        )  # fmt: skip
        self.expect(
            plan, "1 :a :p :b\n2 :b :r :c\n3 :b :r :d\n4 :e :p :b", "2 :a :q :c\n3 :a :q :d\n4 :e :q :c\n4 :e :q :d"
        )

    def test_join_of_a_node_with_itself(self) -> None:
        plan = _ending(
            _read(), _match("m", 0, ":p", 1), _binary("j", Join(((1, 1),), (0, 2)), "m", "m", (1,), (1,)),
            _emit("j", 0, ":q", 1),
        )  # fmt: skip
        self.expect(plan, "1 :a :p :x\n2 :b :p :x", "1 :a :q :a\n2 :a :q :b\n2 :b :q :a\n2 :b :q :b")

    def test_join_on_nothing_is_the_product(self) -> None:
        plan = _ending(
            _read(), _match("l", 0, ":p", None), _match("r", 0, ":r", None),
            _binary("j", Join((), (0, 1)), "l", "r", (), ()), _emit("j", 0, ":q", 1),
        )  # fmt: skip
        self.expect(
            plan,
            "1 :a :p :x\n1 :b :p :x\n2 :c :r :x\n2 :d :r :x",
            "2 :a :q :c\n2 :a :q :d\n2 :b :q :c\n2 :b :q :d",
        )

    def test_multiway_join(self) -> None:
        inputs = (Input("l", (1,)), Input("m", (0,)), Input("r", (0,)))
        plan = _ending(
            _read(), _match("l", 0, ":p", 1), _match("m", 0, ":r", 1), _match("r", 0, ":s", 1),
            Node("j", MultiwayJoin(((1,), (0,), (0,)), (5, 0)), inputs), _emit("j", 0, ":q", 1),
        )  # fmt: skip
        self.expect(plan, "1 :a :p :b\n2 :b :r :c\n3 :c :s :b\n4 :b :s :d\n5 :e :p :b", "4 :d :q :a\n5 :d :q :e")

    @pytest.mark.parametrize(
        ("output", "expected"),
        [
            ("istream", "1 :a :q :b\n2 :c :q :d\n5 :e :q :f"),
            ("dstream", "3 :a :q :b"),
            (
                "rstream",
                "1 :a :q :b\n2 :a :q :b\n2 :c :q :d\n3 :c :q :d\n5 :c :q :d\n5 :e :q :f",
            ),
        ],
    )
    def test_anti_join_withdraws(self, output: str, expected: str) -> None:
        plan = _ending(
            _read(), _match("l", 0, ":p", 1), _match("r", 0, ":r", None),
            _binary("a", AntiJoin(((0, 0),)), "l", "r", (0,), (0,)), _emit("a", 0, ":q", 1), output=output,
        )  # fmt: skip
        self.expect(plan, "1 :a :p :b\n2 :c :p :d\n3 :a :r :x\n5 :a :p :late\n5 :e :p :f", expected)

    def test_changes_are_deletions_and_then_insertions(self) -> None:
        plan = _ending(
            _read(), _match("l", 0, ":p", 1), _match("r", 0, ":r", None),
            _binary("a", AntiJoin(((0, 0),)), "l", "r", (0,), (0,)), _emit("a", 0, ":q", 1), output="changes",
        )  # fmt: skip
        outputs = self.run_plan(plan, [stream("1 :a :p :b\n3 :a :r :x\n3 :c :p :d\n5 :c :r :x")], ())
        assert [(show(out.time, out.fact), out.change) for out in outputs] == [
            ("1 :a :q :b", "insert"), ("3 :a :q :b", "delete"), ("3 :c :q :d", "insert"), ("5 :c :q :d", "delete"),
        ]  # fmt: skip

    def test_condition(self) -> None:
        plan = _ending(
            _read(),
            _match("m", 0, ":p", 1),
            _unary("t", Condition(_apply("notEqual", 0, 1)), "m"),
            _emit("t", 0, ":q", 1),
        )
        self.expect(plan, "1 :a :p :a\n2 :a :p :b", "2 :a :q :b")

    def test_condition_on_what_is_unbound(self) -> None:
        plan = _ending(
            _read(), _match("m", 0, ":p", 1), _unary("t", Condition(Invoke(function_iri("unbound"), (None,))), "m"),
            _emit("t", 0, ":q", 1),
        )  # fmt: skip
        self.expect(plan, "1 :a :p :b", "1 :a :q :b")

    def test_extend_and_what_has_no_value(self) -> None:
        plan = _ending(
            _read(), _match("m", 0, ":p", 1), _unary("e", Extend(_apply("sum", 1, 1)), "m"), _emit("e", 0, ":q", 2)
        )
        self.expect(plan, '1 :a :p "2"^^xsd:int\n2 :b :p :c', '1 :a :q "4"^^xsd:int')

    def test_a_timed_operator_sees_since_when_its_row_holds(self) -> None:
        now = _unary("e", Extend(Invoke(function_iri("now"), ()), timed=True), "m", (0, 1))
        plan = _ending(_read(), _match("m", 0, ":p", 1), now, _emit("e", 0, ":at", 2))
        outputs = self.run_plan(plan, [stream("1 :a :p :b\n3600000 :c :p :d\n3600001 :a :p :b")])
        expected = """1 :a :at "1970-01-01T00:00:00.001Z"^^xsd:dateTime
            3600000 :c :at "1970-01-01T01:00:00Z"^^xsd:dateTime"""
        assert not difference(((out.time, out.fact) for out in outputs), timed(expected))

    @pytest.mark.parametrize(
        ("op", "expected"),
        [
            (ops.Dilate(2), "1 :a :q 5\n7 :b :q 6"),
            (ops.Dilate(2, 4), "4 :a :q 5\n8 :b :q 6"),
            (ops.Erode(2), "3 :a :q 5\n9 :b :q 6"),
            (ops.Schedule(1), "5 :a :q 5"),
        ],
    )
    def test_validity_is_mapped_also_when_nothing_comes(
        self, op: ops.Dilate | ops.Erode | ops.Schedule, expected: str
    ) -> None:
        plan = _ending(_read(), _match("m", 0, ":p", 1), _unary("w", op, "m", (0, 1)), _emit("w", 0, ":q", 1))
        self.expect(plan, "1 :a :p 5\n7 :b :p 6", expected)

    @pytest.mark.parametrize("events", ["", "7 :x :p :y"])
    def test_unit_is_an_axiom(self, events: str) -> None:
        plan = _ending(Node("u", Unit()), _emit("u", ":a", ":q", ":b"))
        self.expect(plan, events, "always :a :q :b")

    def test_distinct_unites_and_keeps_the_first_rule(self) -> None:
        emits = [_emit("m", 0, ":q", 1, id=id, rule=id) for id in ("one", "two")]
        nodes = (_read(), _match("m", 0, ":p", 1), *emits)
        plan = _ending(*nodes)
        outputs = self.run_plan(plan, [stream("1 :a :p :b\n2 :a :p :b")])
        assert [(out.time, out.fact) for out in outputs] == timed("1 :a :q :b")
        assert outputs[0].rule in {"one", "two"}

    def test_emit_of_two_heads(self) -> None:
        heads = (_emit("m", 0, ":q", 1, id="one"), _emit("m", 1, ":r", ":k", id="two"))
        plan = _ending(_read(), _match("m", 0, ":p", 1), *heads)
        self.expect(plan, "1 :a :p :b", "1 :a :q :b\n1 :b :r :k")

    def test_feedback_reaches_the_fixpoint(self) -> None:
        plan = _transitive_closure()
        closed = "\n".join(f"3 :{x} :p :{y}" for x in "abc" for y in "abc" if x + y != "cb")
        self.expect(plan, "1 :a :p :b\n2 :c :p :a\n3 :b :p :c", f"2 :c :p :b\n{closed}")

    # Whole programs

    def test_answers_are_those_of_the_oracle(self) -> None:
        def law(system: System, events: list[Event], facts: list[Event], streamed: int) -> None:
            batches = [facts[:streamed], events]  # some of what always holds comes with the stream
            assert_as_oracle(system, self.run_plan(squall.plan(system), batches, facts[streamed:]), events, facts)

        self.for_all(law, system=systems(), events=event_streams(), facts=static_data(), streamed=st.integers(0, 3))

    def test_batches_do_not_matter(self) -> None:
        def law(system: System, events: list[Event], cuts: list[int]) -> None:
            outputs = self.run_plan(squall.plan(system), _cut(events, cuts))
            assert_as_oracle(system, outputs, events)

        self.for_all(law, system=systems(), events=event_streams(), cuts=st.lists(st.integers(0, 6), max_size=4))

    def test_order_within_an_instant_does_not_matter(self) -> None:
        def law(system: System, events: list[Event], data: st.DataObject) -> None:
            shuffled = sorted(data.draw(st.permutations(events)), key=lambda event: event.time)
            assert_as_oracle(system, self.run_plan(squall.plan(system), [[event] for event in shuffled]), events)

        self.for_all(law, system=systems(), events=event_streams(), data=st.data())

    def test_duplicates_do_not_matter(self) -> None:
        def law(system: System, events: list[Event]) -> None:
            doubled = [event for event in events for _ in range(2)]
            again = doubled[-1]._replace(facts=sum((event.facts for event in events), ())) if events else None
            repeated = [*doubled, again] if again else doubled
            assert_as_oracle(system, self.run_plan(squall.plan(system), [repeated]), events)

        self.for_all(law, system=systems(), events=event_streams())

    def test_a_shift_in_time_shifts_the_answer(self) -> None:
        def law(system: System, events: list[Event], shift: int) -> None:
            late = [event._replace(time=event.time + shift) for event in events]
            assert_as_oracle(system, self.run_plan(squall.plan(system), [late]), late)

        self.for_all(law, system=systems(), events=event_streams(), shift=st.integers(-(10**6), 10**13))

    def test_what_is_static_is_answered_once_and_first(self) -> None:
        system = System(subsystems=(COPY,))
        outputs = self.run_plan(squall.plan(system), [stream("1 :c :p :d\n1 :a :p :b")], static(":a :p :b"))
        assert [(out.time, out.fact) for out in outputs] == timed("always :a :q :b\n1 :c :q :d")

    def test_a_stream_may_begin_with_what_always_holds(self) -> None:
        rule = replace(COPY, predicates=(NotExists((_pattern((":b", ":r", ":a")),)),))
        system = System(subsystems=(rule,))
        events = [*static(":a :p :b"), *stream("1 :c :p :d\n2 :b :r :a")]
        outputs = self.run_plan(squall.plan(system), [events[:1], events[1:]])
        assert [(out.time, out.fact) for out in outputs] == timed("always :a :q :b\n1 :c :q :d")

    def test_a_late_event_changes_nothing_and_is_in_the_ledger(self) -> None:
        events = stream("5 :a :p :b\n3 :c :p :d\n5 :e :p :f\n6 :g :p :h")
        losses = Losses()
        actual = outputs(squall.plan(System(subsystems=(COPY,))), [events[:2], events[2:]], (), self.builder, losses)
        expected = timed("5 :a :q :b\n5 :e :q :f\n6 :g :q :h")
        assert not difference(((out.time, out.fact) for out in actual), expected)
        assert [cause for cause, _ in losses.found] == ["late"]

    def test_two_jobs_of_one_plan_share_no_state(self) -> None:
        plan = check(_transitive_closure())
        ((time, fact),) = timed("2 :a :p :c")
        for _ in range(2):
            assert self.run_plan(plan, [stream("1 :a :p :b\n2 :b :p :c")]) == [Output(fact, time, "r")]


# Systems


def _rule(name: str, body: Sequence[tuple[str, str, str]], heads: Sequence[tuple[str, str, str]]) -> System:
    return System(name, joinables=tuple(map(_pattern, body)), consequences=(Construct(tuple(map(_pattern, heads))),))


def _pattern(texts: tuple[str, str, str]) -> Pattern:
    subject, predicate, value = (Variable(text[1:]) if text.startswith("?") else term(text) for text in texts)
    return Pattern(subject, predicate, value)


COPY = _rule("copy", [("?x", ":p", "?y")], [("?x", ":q", "?y")])
"""``(?x :p ?y) -> (?x :q ?y)``"""


def _elsewhere(system: System) -> System:
    """Returns the same system with other origins."""
    origin = Origin("elsewhere", "text", 1, 1)
    restored = [
        replace(value, origin=origin) if isinstance(value, Pattern | AtomPattern | System) else value
        for value in system.joinables
    ]
    inner = [_elsewhere(rule) for rule in system.subsystems]
    return replace(system, joinables=tuple(restored), subsystems=tuple(inner), origin=origin)


def renamed(system: System) -> System:
    """Returns the system with every variable renamed, in another alphabetical order."""
    return cast(System, _mapped(system))


def _mapped(part: object) -> object:
    if isinstance(part, Variable):
        return Variable(f"{ord('z') - ord(part.name[0])}_{part.name}")
    if isinstance(part, tuple):
        return tuple(map(_mapped, part))
    if is_dataclass(part) and not isinstance(part, type | Origin):
        return type(part)(**{field.name: _mapped(getattr(part, field.name)) for field in fields(part)})
    return part


def permuted(system: System, data: st.DataObject) -> System:
    """Returns the system with its rules and their joinables in another order."""
    inner = [replace(rule, joinables=tuple(data.draw(st.permutations(rule.joinables)))) for rule in system.subsystems]
    return replace(system, subsystems=tuple(data.draw(st.permutations(inner))))


# Plans


def _ending(*nodes: Node, output: str = "istream") -> Plan:
    """Returns a plan of these nodes that outputs each fact of its Construct nodes once."""
    emits = tuple(Input(node.id, (0,)) for node in nodes if isinstance(node.op, ops.Construct))
    unique = Node("unique", Distinct(3), emits)
    return Plan((*nodes, unique, Node("deliver", Sink(output, sources=(Source(),)), (Input("unique", (0,)),))))


def _read(stream: str = "") -> Node:
    return Node("read", Scan(Source(stream)))


def _match(id: str, *cells: int | str | None) -> Node:
    return Node(id, Match(tuple(term(cell) if isinstance(cell, str) else cell for cell in cells)), (Input("read"),))


def _unary(id: str, op: Operator, input: str, columns: tuple[int, ...] | None = None) -> Node:
    return Node(id, op, (Input(input, columns),))


def _binary(id: str, op: Operator, left: str, right: str, by_left: tuple[int, ...], by_right: tuple[int, ...]) -> Node:
    return Node(id, op, (Input(left, by_left), Input(right, by_right)))


def _emit(input: str, *cells: int | str, id: str = "emit", rule: str = "r") -> Node:
    template: tuple[int | Term, ...] = tuple(term(cell) if isinstance(cell, str) else cell for cell in cells)
    return Node(id, ops.Construct(template, (rule,)), (Input(input),))


def _apply(name: str, *columns: int) -> Invoke:
    return Invoke(function_iri(name), tuple(map(Column, columns)))


def _transitive_closure() -> Plan:
    """Returns the recursive rule ``(?x :p ?y) (?y :p ?z) -> (?x :p ?z)``."""
    match = Node("m", Match((0, term(":p"), 1)), (Input("read"), Input("unique", feedback=True)))
    pairs = Node("pairs", Distinct(2), (Input("m", (0, 1)),))
    join = _binary("j", Join(((1, 0),), (0, 3)), "pairs", "pairs", (1,), (0,))
    return _ending(_read(), match, pairs, join, _emit("j", 0, ":p", 1))


def _cut(events: list[Event], cuts: list[int]) -> list[list[Event]]:
    """Splits the events into batches at these positions; a batch may be empty."""
    places = [0, *sorted(min(cut, len(events)) for cut in cuts), len(events)]
    return [events[begin:end] for begin, end in pairwise(places)]
