"""Mutation tests: with a broken operator of any kind, a small program differs from the oracle."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, get_args

import pytest

import squall
from squall import functions
from squall.builders.local import job
from squall.builders.runtime import alpha, dataflow, layout
from squall.builders.runtime.multiway_join import with_multiway_joins
from squall.builders.runtime.operators import Operator, make_operator, stateless
from squall.builders.runtime.operators.count_window import CountWindowContent
from squall.builders.runtime.operators.distinct import AppendOnlyDistinct, DRedDistinct, RetractableDistinct
from squall.builders.runtime.operators.scan import ScanOperator
from squall.builders.runtime.operators.stateless import StatelessOperator
from squall.builders.runtime.tuning import Tuning
from squall.builders.runtime.zset import Delta
from squall.contracts import Output
from squall.functions.jena import function_iri
from squall.functions.ordering import descending
from squall.functions.sparql.names import FALSE, SPARQL, TRUE
from squall.functions.values import integer
from squall.model import (
    CLOSE,
    Aggregate,
    Ask,
    At,
    Bind,
    Call,
    Construct,
    Delete,
    Dilate,
    Erode,
    Exists,
    Grouping,
    Insert,
    NotExists,
    Optional,
    Order,
    Pattern,
    Report,
    Schedule,
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
from squall.model import Filter as Holds
from squall.model.windows import CountWindow, ElementWindow, HoppingWindow, SlidingWindow
from squall.plan import Input, Node, Plan
from squall.plan import operators as ops
from squall.plan.validation import check
from squall.rdf import FOREVER, Event, Term, iri
from squall.testing.check import assert_as_oracle
from squall.testing.streams import stream
from squall.translators.sparql.iterations import Measure
from squall.translators.sparql.time_patterns import Consumed, Iterated, Part, Seq, Step, Within, compiled

E = "http://example.org/"
X, Y, Z = map(Variable, "xyz")
Damage = Callable[[Any], None]
"""A function that breaks an operator."""


# Programs


def pattern(subject: Variable | str, predicate: str, object: Variable | str) -> Pattern:
    return Pattern(_slot(subject), iri(E + predicate), _slot(object))


def _slot(slot: Variable | str) -> Slot:
    return slot if isinstance(slot, Variable) else iri(E + slot)


P, Q, K = pattern(X, "p", Y), pattern(Y, "q", Z), Construct((pattern(X, "k", Y),))
ALL = Select((X, Y, Z))
STAR = (P, Q, pattern(Y, "p", Variable("more")))
"""Three patterns of one variable."""


def rule(*joinables: Any, then: Any = K, **parts: Any) -> System:
    return System(name="r", sources=(Source(),), joinables=joinables, consequences=(then,), **parts)


def part(*joinables: Any) -> System:
    return System(sources=(Source(),), joinables=joinables)


EITHER = Union((part(P), part(pattern(X, "q", Z))))
FIRST = rule(P, slice=Slice((Order(X, descending=True),), limit=1), then=Select((X, Y)))
COUNTED = rule(P, grouping=Grouping((X,), (Aggregate(Y, "count"),)), then=Select((X, Y)))


@functions.function("urn:test:both", languages=())
def _both(term: Term | None) -> Sequence[tuple[Term | None, Term]]:
    """A table function of two rows."""
    return [(term, iri("urn:one")), (term, iri("urn:two"))]


REACHES = System(
    subsystems=(
        replace(rule(P, then=Construct((pattern(X, "r", Y),))), name="r"),
        replace(rule(pattern(X, "r", Y), pattern(Y, "p", Z), then=Construct((pattern(X, "r", Z),))), name="r"),
    )
)
"""A recursion without negation."""
OPEN = System(
    subsystems=(
        replace(rule(P, predicates=(NotExists((pattern(X, "q", Y),)),)), name="open"),
        replace(rule(pattern(X, "k", Y), then=Construct((pattern(X, "r", Y),))), name="step"),
        replace(rule(pattern(X, "r", Y), pattern(Y, "k", Z), then=Construct((pattern(X, "r", Z),))), name="on"),
    )
)
"""A recursion above a negation."""
STREAMED = System(
    subsystems=(
        System(subsystems=(replace(rule(P), reentrant=False),), output="istream", stream="urn:s"),
        replace(
            rule(pattern(X, "k", Y), then=Construct((pattern(Y, "l", X),))),
            sources=(Source("urn:s", SlidingWindow(2)),),
        ),
    )
)
"""A query that derives a stream, and a rule that reads it."""
IN_GRAPH = System(
    subsystems=(
        rule(P, then=Insert((pattern(X, "q", Y),), iri(E + "g"))),
        replace(rule(pattern(X, "q", Y)), name="g", sources=(Source(E + "g"),)),
    )
)
"""A rule that reads facts which another rule inserts."""
CHAIN = "1 :a :p :b\n2 :b :q :c\n3 :b :p :c\n5 :c :q :d\n6 :a :p :b\n8 :e :p :e"
SHUT = "1 :a :p :b\n1 :b :p :c\n1 :c :p :b\n2 :a :q :b\n4 :a :p :d\n5 :b :q :c"


# Damages


def answering(change: Callable[[list[Delta]], list[Delta]]) -> Damage:
    """Changes the output of an operator."""

    def damage(op: Any) -> None:
        name = "step" if isinstance(op, StatelessOperator) else "apply"
        work = getattr(op, name)
        setattr(op, name, lambda *inputs: change(work(*inputs)))

    return damage


def changed_input(change: Callable[[int, Sequence[Delta]], Sequence[Delta]]) -> Damage:
    """Changes the deltas that the operator receives."""

    def damage(op: Any) -> None:
        apply = op.apply
        op.apply = lambda port, deltas: apply(port, change(port, deltas))

    return damage


def advancing(change: Callable[[list[Delta]], list[Delta]]) -> Damage:
    """Changes what the operator outputs for complete instants."""

    def damage(op: Any) -> None:
        advance = op.advance
        op.advance = lambda now: change(advance(now))

    return damage


def for_ever(deltas: Sequence[Delta]) -> list[Delta]:
    return [(*delta[:-2], FOREVER, delta[-1]) for delta in deltas]


def never_back(deltas: Sequence[Delta]) -> list[Delta]:
    return [delta for delta in deltas if delta[-1] > 0]


def once(deltas: Sequence[Delta]) -> list[Delta]:
    return list(dict.fromkeys(deltas))


def unlike(deltas: Sequence[Delta]) -> list[Delta]:
    """Returns deltas whose second cell is replaced by the first."""
    return [(delta[0], *delta[:1], *delta[2:]) for delta in deltas]


def works_as(kind: type[Operator]) -> Damage:
    """Makes an operator behave as one of another class, if it is an instance of that class."""

    def damage(op: Any) -> None:
        if type(op) in kind.__bases__:
            op.__class__ = kind

    return damage


def rewritten(**fields: Any) -> Damage:
    """Changes fields of the node of a sequence join."""

    def damage(op: Any) -> None:
        op.pairing.op = replace(op.pairing.op, **fields)

    return damage


def step(*joinables: Any) -> Step:
    """Returns a step of a pattern over time."""
    return Step(System(sources=(Source(window=ElementWindow()),), joinables=joinables))


def in_sequence(within: int | None = None, **parts: Any) -> System:
    """Returns a query for a :p and a later :q."""
    helpers, match = compiled(Within(Seq(step(P), step(Q), **parts), within))
    query = System("q", (), (match,), consequences=(ALL,), reentrant=False)
    return System(subsystems=(*helpers, query), output="rstream")


def in_iteration(within: int | None = None, least: int = 2, most: int | None = None) -> System:
    """Returns a query for runs of :p with one subject."""
    pattern = Iterated(
        step(P), least, most, (X,), None, False, (Measure(Z, "COUNT"), Measure(Variable("w"), "LAST", Y))
    )
    helpers, match = compiled(Within(pattern, within))
    query = System("q", (), (match,), consequences=(Select((X, Z, Variable("w"))),), reentrant=False)
    return System(subsystems=(*helpers, query), output="rstream")


def in_consumption(within: int | None = None, keys: tuple[Variable, ...] | None = None) -> System:
    """Returns a query for each :p, and the first :q of its object that no other match has."""
    helpers, match = compiled(Consumed(Within(Seq(step(P), step(Q), "each"), within), keys))
    query = System("q", (), (match,), consequences=(ALL,), reentrant=False)
    return System(subsystems=(*helpers, query), output="rstream")


PAIRED = "1 :a :p :b\n2 :c :p :b\n3 :b :q :c\n4 :b :q :d"
RISING = "1 :a :p :b\n2 :a :p :c\n4 :a :p :d"


def rewritten_iteration(op: Any) -> None:
    """Makes an iteration compare no keys."""
    op.pairing.left_key = op.pairing.right_key = lambda row: ()


def rewritten_window(**fields: int) -> Damage:
    """Returns the damage of an operator on validity that has other fields."""
    return lambda op: setattr(op, "op", replace(op.op, **fields))


def over_elements(*joinables: Any, then: Any) -> System:
    """Returns a rule whose patterns read what arrives at an instant."""
    return with_windows(System("r", (Source(),), joinables, consequences=(then,), output="dstream"), ElementWindow())


def windowed(kind: Any, length: int) -> System:
    """Returns a rule that reads :p through a window."""
    return over_elements(kind(System(joinables=(P,)), length), then=Construct((pattern(X, "k", Y),)))


def with_times(length: int) -> System:
    """Returns a rule that derives when :p was there."""
    return over_elements(At(System(joinables=(P,)), Z, length), then=Construct((pattern(X, "k", Z),)))


def scheduled() -> System:
    """Returns a rule that derives a fact 2 ms after each :p."""
    times = At(System(joinables=(P,)), Z, 0)
    when = Variable("when")
    later = System(joinables=(times,), predicates=(Bind(when, Call(SPARQL + "plus", (Z, integer(2)))),))
    return over_elements(Schedule(later, when), then=Construct((pattern(X, "k", Y),)))


class _Forgetful(dict[Any, Any]):
    """What stores nothing."""

    def __ior__(self, other: object) -> _Forgetful:  # type: ignore[misc]
        return self


class _Deaf(AppendOnlyDistinct):
    """A row that was valid once is known for good."""

    def apply(self, port: int, deltas: Sequence[Delta]) -> list[Delta]:
        return super().apply(port, [delta for delta in deltas if delta[: self.by] not in self.valid])


class _Hasty(RetractableDistinct):
    """A row is gone as soon as one of its reasons is."""

    def apply(self, port: int, deltas: Sequence[Delta]) -> list[Delta]:
        return [*super().apply(port, never_back(deltas)), *(delta for delta in deltas if delta[-1] < 0)]


class _Counting(DRedDistinct):
    """A row is valid while there is a reason for it, be it the row itself."""

    def apply(self, port: int, deltas: Sequence[Delta]) -> list[Delta]:
        return RetractableDistinct.apply(self, port, deltas)


def _falling(op: Any) -> None:
    """Reverses the order of a slice."""
    order = op.order
    op.order = lambda row: descending(order(row))


def _forgetful(op: Any) -> None:
    """Makes the operator forget what it has output."""
    flush = op.flush

    def flushed(now: int, instants: Sequence[int] = ()) -> list[Output]:
        outputs: list[Output] = flush(now, instants)
        op.valid_until.clear()
        return outputs

    op.flush = flushed


def _silent(op: Any) -> None:
    flush = op.flush
    op.flush = lambda now, instants=(): [out for out in flush(now, instants) if out.time % 2]


def _early(compute: Callable[[Any, int], Any]) -> Callable[[Any, int], Any]:
    return lambda row, time: compute(row, time + 1)


def _first_of(step: stateless.Step) -> stateless.Step:
    return lambda deltas: [result[0] for delta in deltas if (result := step([delta]))]


def _careless(deltas: Sequence[Delta]) -> list[Delta]:
    return [(delta[0], iri(E + "k"), delta[-4] or iri("urn:null"), "r", *delta[-3:]) for delta in deltas]


def _in_vain(demanded: Callable[[int], list[tuple[int, Any]]]) -> Callable[[int], list[tuple[int, Any]]]:
    return lambda now: demanded(now)[:0]


def _earlier(demanded: Callable[[int], list[tuple[int, Any]]]) -> Callable[[int], list[tuple[int, Any]]]:
    return lambda now: [(time - 1, fact) for time, fact in demanded(now)]


# What is broken


@dataclass(frozen=True)
class Case:
    """A program, and what is broken in the operators of one kind."""

    kind: type
    damage: Damage
    system: System
    events: str = CHAIN


CASES = {
    "a join that finds each pair twice": Case(ops.Join, answering(lambda deltas: deltas * 2), rule(P, Q, then=ALL)),
    "a join that takes in no left rows late": Case(
        ops.Join, changed_input(lambda port, deltas: [e for e in deltas if port or e[-3] < 2]), rule(P, Q, then=ALL)
    ),
    "a join whose rows never end": Case(
        ops.Join, answering(for_ever), with_windows(replace(rule(P, Q), output="dstream"), SlidingWindow(4)),
    ),
    "a multiway join that finds each row twice": Case(
        ops.MultiwayJoin, answering(lambda deltas: deltas * 2), rule(*STAR, then=ALL)
    ),
    "a multiway join that takes in no rows of its last input late": Case(
        ops.MultiwayJoin, changed_input(lambda port, deltas: [e for e in deltas if port < 2 or e[-3] < 2]),
        rule(*STAR, then=ALL),
    ),
    "a multiway join whose rows never end": Case(
        ops.MultiwayJoin, answering(for_ever),
        with_windows(replace(rule(*STAR), output="dstream"), SlidingWindow(4)),
    ),
    "a sequence join that pairs what is far apart": Case(
        ops.SequenceJoin, rewritten(max_gap=None), in_sequence(max_gap=1), "1 :a :p :b\n3 :b :q :c\n4 :b :q :d",
    ),
    "a sequence join that pairs all": Case(
        ops.SequenceJoin, rewritten(selection="each"), in_sequence(), "1 :a :p :b\n2 :b :q :c\n4 :b :q :d",
    ),
    "a sequence join that forgets what was between": Case(
        ops.SequenceJoin, changed_input(lambda port, deltas: deltas if port < 2 else []),
        in_sequence(between=(Part(step(pattern(Y, "p", Z)), wanted=False),)),
        "1 :a :p :b\n2 :b :p :c\n4 :b :q :c",
    ),
    "a sequence join whose rows never end": Case(
        ops.SequenceJoin, changed_input(lambda port, deltas: for_ever(deltas)),
        in_sequence(within=2), "1 :a :p :b\n6 :c :p :b\n7 :b :q :c",
    ),
    "a gate that never opens": Case(
        ops.Gate, changed_input(lambda port, deltas: [] if port else deltas),
        in_sequence(within=5), "1 :a :p :b\n3 :b :q :c",
    ),
    "a gate that closes at once": Case(
        ops.Gate, changed_input(lambda port, deltas: [(*delta[:-2], delta[-3] + 1, 1) for delta in deltas]),
        in_sequence(within=5), "1 :a :p :b\n3 :b :q :c",
    ),
    "an iteration that never goes on": Case(
        ops.Iteration, lambda op: setattr(op, "goes_on", lambda row, time: False), in_iteration(least=3), RISING
    ),
    "an iteration that does not stop": Case(
        ops.Iteration, lambda op: setattr(op, "goes_on", lambda row, time: True), in_iteration(most=2), RISING
    ),
    "an iteration whose occurrences do not agree": Case(
        ops.Iteration, rewritten_iteration, in_iteration(), "1 :a :p :b\n2 :b :p :c\n3 :a :p :d"
    ),
    "an iteration of the first values": Case(
        ops.Iteration, lambda op: setattr(op, "run_of", lambda pair, time: pair[: len(op.pairing.op.values)]),
        in_iteration(), RISING,
    ),
    "an iteration whose rows never end": Case(
        ops.Iteration, changed_input(lambda port, deltas: for_ever(deltas)), in_iteration(within=2),
        "1 :a :p :b\n7 :a :p :c",
    ),
    "a window that is too short": Case(
        ops.Dilate, rewritten_window(length=1), windowed(Dilate, 3), "1 :a :p :b\n2 :c :p :d",
    ),
    "a window that does not end": Case(
        ops.Dilate, changed_input(lambda port, deltas: for_ever(deltas)), windowed(Dilate, 3), "1 :a :p :b\n9 :c :p :d",
    ),
    "a box that is too short": Case(
        ops.Erode, rewritten_window(length=1), windowed(Erode, 2), "1 :a :p :b\n2 :a :p :b\n4 :a :p :b",
    ),
    "times in other units": Case(
        ops.At, rewritten_window(tick=2), with_times(1), "2 :a :p :b\n4 :a :p :b",
    ),
    "a fact that comes late": Case(
        ops.Schedule, rewritten_window(tick=2), scheduled(), "2 :a :p :b\n3 :a :p :b",
    ),
    "a consumption that forgets": Case(
        ops.Consume, lambda op: setattr(op, "consumed", _Forgetful()), in_consumption(), PAIRED
    ),
    "a consumption that knows no keys": Case(
        ops.Consume, lambda op: setattr(op, "op", replace(op.op, keys=())), in_consumption(keys=(Z,)), PAIRED
    ),
    "a consumption by the latest begin": Case(
        ops.Consume, lambda op: setattr(op, "_preference", lambda placed: (-placed[1][0][0],)), in_consumption(), PAIRED
    ),
    "a left join that has only pairs": Case(
        ops.LeftJoin, answering(lambda deltas: [e for e in deltas if None not in e]),
        rule(P, predicates=(Optional(part(Q)),), then=ALL),
    ),
    "a left join that has every row alone": Case(
        ops.LeftJoin, lambda op: setattr(op.anti_join, "_apply_right", lambda deltas: iter(())),
        replace(rule(P, predicates=(Optional(part(Q)),), then=ALL), output="dstream"),
    ),
    "an anti-join that looks at the left alone": Case(
        ops.AntiJoin, changed_input(lambda port, deltas: () if port else deltas),
        replace(rule(P, predicates=(NotExists((pattern(X, "q", Y),)),)), output="dstream"), SHUT,
    ),
    "an anti-join that never lets back": Case(
        ops.AntiJoin, changed_input(lambda port, deltas: for_ever(deltas) if port else deltas),
        with_windows(rule(P, predicates=(NotExists((Q,)),)), windows={"urn:s": SlidingWindow(2)}),
        "1 :a :p :b\n2 @<urn:s> :b :q :c\n9 :a :p :c",
    ),
    "a union of one row at a time": Case(
        ops.Union, answering(lambda deltas: deltas[:1]), rule(EITHER, then=ALL), "1 :a :p :b, :c"
    ),
    "a union of what is bound": Case(
        ops.Union, answering(lambda deltas: [e for e in deltas if None not in e]), rule(EITHER, then=ALL)
    ),
    "a projection to another column": Case(ops.Project, answering(unlike), rule(EITHER, then=ALL)),
    "a test that all pass": Case(
        ops.Filter, lambda op: setattr(op, "step", list),
        rule(P, predicates=(Holds(Call(function_iri("equal"), (X, Y))),)),
    ),
    "an extension by another value": Case(
        ops.Extend, answering(lambda deltas: [(*e[:-4], iri("urn:other"), *e[-3:]) for e in deltas]),
        rule(P, predicates=(Bind(Z, Y),), then=ALL),
    ),
    "an extension that keeps nothing without a value": Case(
        ops.Extend, answering(lambda deltas: [e for e in deltas if e[-4] is not None]),
        rule(P, predicates=(Bind(Z, Call(function_iri("sum"), (Y, Y)), keep_unbound=True),), then=ALL),
    ),
    "an extension by what is there where nothing is": Case(
        ops.Extend, answering(lambda deltas: [(*e[:-4], TRUE, *e[-3:]) for e in deltas]),
        rule(P, predicates=(Exists(Z, part(Q)),), then=ALL),
    ),
    "a set of all that is asked for": Case(
        ops.Distinct, answering(lambda deltas: [e for e in deltas if e[-3] < 2]),
        rule(P, predicates=(Exists(None, part(Q), True),), then=ALL),
    ),
    "a union of the cases in which something is unbound": Case(
        ops.Union, answering(lambda deltas: [e for e in deltas if None in e]),
        rule(P, predicates=(Optional(part(Q)), Optional(part(pattern(X, "q", Z)))), then=ALL),
    ),
    "an answer that is asked for and never true": Case(
        ops.Select, answering(lambda deltas: [(e[0], FALSE, *e[2:]) for e in deltas]), rule(P, then=Ask()),
    ),
    "a timed extension that takes another time": Case(
        ops.Extend, lambda op: setattr(op, "compute", _early(op.compute)),
        rule(P, predicates=(Bind(Z, Call(function_iri("now"), ())),), then=ALL),
    ),
    "a table of its first row": Case(
        ops.TableFunction, lambda op: setattr(op, "step", _first_of(op.step)),
        rule(
            P, predicates=(TableFunction((Z, Variable("w")), "urn:test:both", (Y,)),), then=Select((X, Variable("w")))
        ),
    ),
    "a growing set that knows a row for good": Case(
        ops.Distinct, works_as(_Deaf), with_windows(rule(P), SlidingWindow(2))
    ),
    "a growing set that is none": Case(
        ops.Distinct, lambda op: setattr(op, "apply", lambda port, deltas: list(deltas)),
        rule(P, then=Select((X,))), "1 :a :p :b\n2 :a :p :b",
    ),
    "a set that counts only once": Case(
        ops.Distinct, works_as(_Hasty), replace(with_windows(rule(P), CountWindow(2)), output="dstream"),
        "1 :a :p :b\n2 :a :p :b\n3 :a :p :c\n4 :c :p :d\n5 :e :p :f",
    ),
    "a set in a recursion that only counts": Case(
        ops.Distinct, works_as(_Counting),
        replace(OPEN, output="dstream"), SHUT,
    ),
    "a set in a recursion that derives nothing anew": Case(
        ops.Distinct, lambda op: setattr(op, "rederive", list) if isinstance(op, DRedDistinct) else None,
        OPEN, "1 :a :p :b\n1 :a :p :c\n1 :c :p :b\n1 :b :p :d\n2 :a :q :b\n3 :d :p :e",
    ),
    "a group that takes nothing back": Case(
        ops.Group, advancing(never_back), replace(COUNTED, output="dstream"), "1 :a :p :b\n2 :a :p :c",
    ),
    "a group that rows never leave": Case(
        ops.Group, changed_input(lambda port, deltas: for_ever(deltas)),
        with_windows(COUNTED, SlidingWindow(2)),
    ),
    "a group of nothing that is none": Case(
        ops.Group, advancing(lambda deltas: [e for e in deltas if e[-3] >= 0]),
        rule(P, grouping=Grouping((), (Aggregate(Y, "count"),)), then=Select((Y,))),
    ),
    "a slice in another order": Case(
        ops.Slice, _falling, rule(P, slice=Slice((Order(Y),), limit=1), then=Select((X, Y))), "1 :a :p :b\n1 :a :p :c",
    ),
    "a slice that keeps its choice": Case(
        ops.Slice, advancing(never_back), replace(FIRST, output="dstream"),
        "1 :a :p :b\n2 :c :p :c\n3 :b :p :b",
    ),
    "an answer that is a set": Case(
        ops.Select, answering(once), rule(P, Q, then=Select((Y,))), "1 :a :p :b\n1 :d :p :b\n2 :b :q :c",
    ),
    "an answer with its columns turned round": Case(
        ops.Select, answering(lambda deltas: [(e[0], e[2], e[1], *e[3:]) for e in deltas]),
        rule(P, then=Select((X, Y))),
    ),
    "a fact with its cells turned round": Case(ops.Construct, answering(unlike), rule(P)),
    "a fact of what is unbound": Case(
        ops.Construct, lambda op: setattr(op, "step", _careless),
        rule(P, predicates=(Optional(part(Q)),), then=Construct((pattern(X, "k", Z),))),
    ),
    "a rule of another name": Case(
        ops.Construct, answering(lambda deltas: [(*e[:-4], "nobody", *e[-3:]) for e in deltas]), rule(P)
    ),
    "a retraction that retracts nothing": Case(
        ops.Update, lambda op: setattr(op, "pop_graph_updates", _in_vain(op.pop_graph_updates)),
        replace(System(subsystems=(rule(P), replace(rule(P, Q, then=Delete((P,))), name="d"))), output="dstream"),
    ),
    "a retraction at once": Case(
        ops.Update, lambda op: setattr(op, "pop_graph_updates", _earlier(op.pop_graph_updates)),
        replace(System(subsystems=(rule(P), replace(rule(P, Q, then=Delete((P,))), name="d"))), output="dstream"),
    ),
    "an insertion that inserts nothing": Case(
        ops.Update, lambda op: setattr(op, "pop_graph_updates", _in_vain(op.pop_graph_updates)),
        rule(P, then=Insert((pattern(Y, "q", X),))),
    ),
    "an insertion into another graph": Case(
        ops.Update, lambda op: setattr(op, "quads", [(kind, (None, *quad[1:])) for kind, quad in op.quads]), IN_GRAPH,
    ),
    "a stream that does not move": Case(ops.DerivedStream, advancing(lambda deltas: []), STREAMED),
    "a stream that ends nothing": Case(
        ops.DerivedStream, advancing(for_ever), replace(STREAMED, output="dstream"), "1 :a :p :b\n5 :a :q :b",
    ),
    "a delivery that tells facts twice": Case(
        ops.Sink, _forgetful, with_windows(rule(P), SlidingWindow(4)), "1 :a :p :b\n5 :a :p :b"
    ),
    "a delivery that never ends what it tells": Case(
        ops.Sink, lambda op: op.queries.clear(),
        replace(rule(P, then=ALL), output="rstream", report=Report(empty=True)),
    ),
    "a delivery that leaves out": Case(ops.Sink, _silent, rule(P)),
    "a delivery of all that it counts": Case(
        ops.Sink, lambda op: setattr(op, "report", CLOSE),
        replace(rule(P), output="rstream", report=Report("change")), "1 :a :p :b\n2 :a :p :b",
    ),
}  # fmt: skip


# What is read and matched, and what is so from the start


def _endless(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ScanOperator, "_validity", lambda self, stream: lambda time: (time, FOREVER))


def _miscounted(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(CountWindowContent, "add", _late(CountWindowContent.add))


def _late(come: Callable[..., Iterator[Delta]]) -> Callable[..., Iterator[Delta]]:
    def late(self: CountWindowContent, fact: Any, time: int, graph: str) -> Iterator[Delta]:
        return ((*delta[:-3], delta[-3] + (delta[-1] < 0), *delta[-2:]) for delta in come(self, fact, time, graph))

    return late


def _nothing_removed(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ScanOperator, "_remove", lambda self, stream, fact, time, static: iter(()))


def _blind(patch: pytest.MonkeyPatch) -> None:
    """Makes the second occurrence of a variable match anything."""

    def loosened(cells: Sequence[ops.Cell], existing: Sequence[int] = (), *, rule: bool = True) -> stateless.Step:
        history = [isinstance(cell, int) and cell in cells[:place] for place, cell in enumerate(cells)]
        loose = tuple(None if again else cell for again, cell in zip(history, cells, strict=True))
        return stateless.match_step(loose, existing, rule=rule)

    patch.setattr(alpha, "match_step", loosened)


def _since_the_epoch(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(dataflow, "UNIT", (0, FOREVER, 1))


PATCHES: dict[str, tuple[type, Callable[[pytest.MonkeyPatch], None], System, str]] = {
    "a window that never ends": (
        ops.Scan,
        _endless,
        with_windows(replace(rule(P), output="dstream"), SlidingWindow(3)),
        CHAIN,
    ),
    "a step that never ends": (
        ops.Scan,
        _endless,
        with_windows(replace(rule(P), output="rstream"), HoppingWindow(4, 2)),
        CHAIN,
    ),
    "a count that lets go too late": (
        ops.Scan,
        _miscounted,
        with_windows(replace(rule(P), output="dstream"), CountWindow(2)),
        CHAIN,
    ),
    "a removal that removes nothing": (
        ops.Scan,
        _nothing_removed,
        with_windows(replace(rule(P), output="dstream"), removals=True),
        "1 :a :p :b\n4 - :a :p :b",
    ),
    "a match that compares nothing": (ops.Match, _blind, rule(pattern(X, "p", X), then=Select((X,))), CHAIN),
    "an axiom of yesterday": (ops.Unit, _since_the_epoch, rule(then=Construct((pattern("a", "p", "b"),))), CHAIN),
}


@pytest.fixture(autouse=True)
def _no_bulk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Turns off the snapshot dataflow, which has its own operators (tests/test_snapshot.py)."""
    monkeypatch.setattr(job, "fits", lambda plan: False)


def run(plan: Plan, system: System, events: Sequence[Event]) -> None:
    """Runs the program event by event, so that operators store state in between."""
    assert_as_oracle(system, list(squall.build(plan).run([event] for event in events)), events)


def planned(kind: type, system: System) -> Plan:
    plan = squall.plan(system, "greedy")
    plan = with_multiway_joins(plan) if kind is ops.MultiwayJoin else plan  # no planner makes them
    assert any(isinstance(node.op, kind) for node in plan.nodes), "the plan has to have what is broken"
    return plan


def break_(patch: pytest.MonkeyPatch, kind: type, damage: Damage) -> None:
    """Breaks all operators of a kind that are made from now on."""

    def broken(node: Node, plan: Plan, tuning: Tuning) -> Operator:
        op = make_operator(node, plan, tuning)
        if isinstance(node.op, kind):
            damage(op)
        return op

    patch.setattr(dataflow, "make_operator", broken)


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_a_broken_operator_is_noticed(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    plan, events = planned(case.kind, case.system), stream(case.events)
    run(plan, case.system, events)
    break_(monkeypatch, case.kind, case.damage)
    with pytest.raises(AssertionError, match=r"the oracle misses|made by"):
        run(plan, case.system, events)


@pytest.mark.parametrize(("kind", "patch", "system", "text"), PATCHES.values(), ids=PATCHES.keys())
def test_broken_reading_is_noticed(
    kind: type, patch: Callable[[pytest.MonkeyPatch], None], system: System, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan, events = planned(kind, system), stream(text)
    run(plan, system, events)
    patch(monkeypatch)
    with pytest.raises(AssertionError, match="the oracle misses"):
        run(plan, system, events)


def by_hand(*nodes: Node) -> Plan:
    """Returns a plan of operators that planners rarely use; each reads the one before it."""
    before = ("read", *(node.id for node in nodes))
    joined = (replace(node, inputs=(Input(last),)) for node, last in zip(nodes, before, strict=False))
    return check(Plan((Node("read", ops.Scan(Source())), *joined, Node("end", ops.Sink(), (Input(before[-1]),)))))


PATHS = by_hand(
    Node("match", ops.Match((0, iri(E + "p"), 1))),
    Node("closure", ops.TransitiveClosure()),
    Node("emit", ops.Construct((0, iri(E + "r"), 1), rules=("r",))),
)
"""The meaning of `REACHES` as a plan with a transitive closure."""
SWITCHED = by_hand(
    Node("match", ops.Match((0, 1, 2))),
    Node("where", ops.ConstantFilter(1, iri(E + "p"))),
    Node("emit", ops.Construct((0, iri(E + "k"), 2), rules=("r",))),
)
"""The meaning of `rule(P)` as a plan that tests the predicate last."""


def _single_steps(patch: pytest.MonkeyPatch) -> None:
    break_(patch, ops.TransitiveClosure, lambda op: setattr(op, "apply", lambda port, deltas: list(deltas)))


def _forgotten_paths(patch: pytest.MonkeyPatch) -> None:
    break_(
        patch,
        ops.TransitiveClosure,
        lambda op: setattr(op, "apply", lambda port, deltas: type(op)().apply(port, deltas)),
    )


def _anywhere(patch: pytest.MonkeyPatch) -> None:
    def everything(column: int, terms: Iterable[Term], rows: Sequence[Delta]) -> dict[Term, Sequence[Delta]]:
        return dict.fromkeys(terms, rows)

    patch.setattr(layout, "_take_constructs", lambda plan, filters, targets: iter(()))
    patch.setattr(dataflow, "by_constant", everything)


def _whatever_it_is(patch: pytest.MonkeyPatch) -> None:
    def first(
        column: int, emits: Sequence[tuple[str, ops.Construct]], width: int, unbound: Sequence[int]
    ) -> stateless.Step:
        return stateless.construct_step(emits[0][1].template, emits[0][1].rules, width, unbound)

    patch.setattr(stateless, "construct_by_constant_step", first)


BY_HAND: dict[str, tuple[Plan, System, Callable[[pytest.MonkeyPatch], None]]] = {
    "a closure of single steps": (PATHS, REACHES, _single_steps),
    "a closure of what comes together": (PATHS, REACHES, _forgotten_paths),
    "a switch that all pass": (SWITCHED, rule(P), _anywhere),
    "a table of rules that looks nothing up": (SWITCHED, rule(P), _whatever_it_is),
}


@pytest.mark.parametrize(("plan", "system", "patch"), BY_HAND.values(), ids=BY_HAND.keys())
def test_broken_operators_of_handmade_plans_are_noticed(
    plan: Plan, system: System, patch: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    events = stream(CHAIN)
    run(plan, system, events)
    patch(monkeypatch)
    with pytest.raises(AssertionError, match="the oracle misses"):
        run(plan, system, events)


def test_there_is_a_broken_operator_of_each_kind() -> None:
    broken = (
        {case.kind for case in CASES.values()}
        | {kind for kind, *_ in PATCHES.values()}
        | {ops.TransitiveClosure, ops.ConstantFilter}
    )
    assert broken == set(get_args(ops.Operator))
