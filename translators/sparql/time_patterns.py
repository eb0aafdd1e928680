"""Patterns over time as rules: the algebra that languages of event sequences are translated to.

A pattern *occurs* with a solution and an interval of instants (docs/semantics.md, "Patterns over time"). A step is
evaluated at each instant at which its streams bring something, and each of its solutions is an event of a derived
stream that only the program reads. Operators combine such streams: their joins store an occurrence for as long as the
bound on the whole pattern says, which is the window through which it is read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from itertools import count
from typing import Any

from squall.errors import Origin
from squall.functions.consumption import JOINED, MEMBER
from squall.functions.sparql.logic import COALESCE
from squall.model import (
    CLOSE,
    AtomPattern,
    Between,
    Bind,
    Construct,
    Consumption,
    Exists,
    Expression,
    Filter,
    Iteration,
    Joinable,
    NotExists,
    Occurrences,
    Optional,
    Pattern,
    Predicate,
    Select,
    SequenceJoin,
    Source,
    System,
    TableFunction,
    Temporal,
    Union,
    Variable,
    map_parts,
    variables,
    visible,
)
from squall.model.expressions import Call
from squall.model.sequences import Selection
from squall.model.windows import LANDMARK, ElementWindow, SlidingWindow, Window
from squall.rdf import XSD, iri, literal
from squall.translators.sparql import calls
from squall.translators.sparql.bodies import is_plain
from squall.translators.sparql.iterations import Measure, Run

OCCURRENCE = iri("urn:x-squall:occurrence")
"""The relation of the facts in the streams of occurrences."""
STREAMS = "urn:x-squall:occurrences/"
"""The beginning of the IRIs of these streams."""
UNBOUND = iri("urn:x-squall:unbound")
"""The term that stands for a variable without a value in such a fact."""


@dataclass(frozen=True)
class Step:
    """A graph pattern that occurs at an instant.

    Attributes:
        body: The pattern: sources, joinables, predicates, ... without consequences. Its sources have the window
            `ElementWindow`.
        name: The variable that names the occurrence, or None.
    """

    body: System
    name: Variable | None = None
    origin: Origin | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True)
class Part:
    """A pattern that is or must not be between two others."""

    pattern: Occurrence
    wanted: bool


@dataclass(frozen=True)
class Seq:
    """One pattern after another one.

    Attributes:
        left: The first pattern.
        right: The one behind it.
        selection: Which pairs count.
        min_gap: The least time between them (integer ms).
        max_gap: The greatest time between them, or None.
        condition: A condition on the variables of both, or None.
        between: What has to be, or must not be, between them.
    """

    left: Occurrence
    right: Occurrence
    selection: Selection = "nearest"
    min_gap: int = 1
    max_gap: int | None = None
    condition: Call | None = None
    between: tuple[Part, ...] = ()
    origin: Origin | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True)
class Both:
    """Two patterns in any order: compatible occurrences, with the hull of their intervals."""

    left: Occurrence
    right: Occurrence


@dataclass(frozen=True)
class Equals:
    """Two patterns over the same interval: compatible occurrences that begin and end together.

    Attributes:
        left: The first pattern.
        right: The other one.
        is_optional: Whether an occurrence of the first pattern without such a one of the other occurs alone.
    """

    left: Occurrence
    right: Occurrence
    is_optional: bool = False


@dataclass(frozen=True)
class Either:
    """One of several patterns."""

    branches: tuple[Occurrence, ...]


@dataclass(frozen=True)
class Without:
    """Occurrences of a pattern for which no compatible occurrence of another one has ended before, or ends then."""

    pattern: Occurrence
    without: Occurrence


@dataclass(frozen=True)
class Followed:
    """Occurrences behind which another pattern does not occur for some time: they end when that is certain.

    Attributes:
        pattern: The pattern.
        absent: The pattern of which no occurrence must lie in (end, end + within].
        within: The length of time (integer ms).
    """

    pattern: Occurrence
    absent: Occurrence
    within: int


@dataclass(frozen=True)
class Preceded:
    """Occurrences of a step before which a pattern has not occurred for some time.

    Attributes:
        pattern: The step.
        absent: The pattern of which no occurrence must lie in [start - within, start).
        within: The length of time (integer ms).
    """

    pattern: Step
    absent: Occurrence
    within: int


@dataclass(frozen=True)
class Within:
    """A pattern, with a bound on its length, a name, and conditions.

    Attributes:
        pattern: The pattern.
        within: The greatest time from its begin to its end (integer ms), or None.
        name: The variable that names the occurrence, or None.
        body: What is applied to the solutions: the predicates of this system. `OWN_START` and `OWN_END` are the times
            of the occurrence in them.
    """

    pattern: Occurrence
    within: int | None = None
    name: Variable | None = None
    body: System | None = None


@dataclass(frozen=True)
class Iterated:
    """A pattern several times, each time as the nearest occurrence behind the one before: a run.

    It occurs as each run that has so many occurrences, with the keys and the measures; all else that the pattern binds
    is known inside only.

    Attributes:
        pattern: The pattern.
        least: The least number of its occurrences (1 or more).
        most: The greatest number, or None.
        keys: The variables that all occurrences of a run have the same values of.
        condition: A condition on the variables of an occurrence and on those of the one before (`previous_of`), or
            None.
        is_consecutive: Whether no other occurrence with the same keys is between two of a run.
        measures: What is computed from a run.
    """

    pattern: Occurrence
    least: int
    most: int | None
    keys: tuple[Variable, ...]
    condition: Call | None = None
    is_consecutive: bool = False
    measures: tuple[Measure, ...] = ()
    origin: Origin | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True)
class Consumed:
    """A pattern whose occurrences of steps are part of one of its occurrences each, of that which ends first.

    Of those that end together, it is the one that begins first, and then the one whose steps are earlier.

    Attributes:
        pattern: The pattern.
        keys: The variables for each combination of whose values an occurrence of a step is part of one; None: an
            occurrence is part of one.
    """

    pattern: Occurrence
    keys: tuple[Variable, ...] | None = None


Occurrence = Step | Seq | Both | Equals | Either | Without | Followed | Preceded | Within | Iterated | Consumed

OWN_START, OWN_END = Variable("own start"), Variable("own end")
"""The times of an occurrence (xsd:integer ms) in the predicates of its `Within`."""


def start_of(name: Variable) -> Variable:
    """Returns the variable of the time at which the occurrence of this name begins (xsd:integer ms)."""
    return Variable(f"start of {name.name}")


def end_of(name: Variable) -> Variable:
    """Returns the variable of the time at which the occurrence of this name ends (xsd:integer ms)."""
    return Variable(f"end of {name.name}")


def compiled(pattern: Occurrence) -> tuple[tuple[System, ...], System]:
    """Returns the rules of a pattern over time, and a part with its matches, each at the instant at which it ends.

    Returns:
        The rules, each with a stream that only the program reads. The part, whose visible variables are those of the
        pattern and the times of its names (`start_of`, `end_of`).
    """
    compiler = _Compiler()
    match = compiler.occurrence(pattern, _Context())
    if not match.is_momentary:
        match = compiler.through_stream(match, _Context())
    names = tuple(name for name in visible(match.part) if is_shown(name))
    return tuple(compiler.rules), replace(match.part, consequences=(Select(names),))


def is_shown(name: Variable) -> bool:
    """Returns whether a variable of a pattern can be seen outside: one of the user's, or a time of a name."""
    return " " not in name.name or name.name.startswith(("start of ", "end of "))


@dataclass(frozen=True)
class _Context:
    """How a pattern is read by what it is a part of.

    Attributes:
        window: The window through which its occurrences are read, from their end on; None: at their end only.
        within: The bound on the pattern that it is a part of (integer ms), or None.
        delay: By how much later than they occur its occurrences are read (integer ms).
        is_consumed: Whether the occurrences of the steps that it is made of are known outside.
    """

    window: Window | None = None
    within: int | None = None
    delay: int = 0
    is_consumed: bool = False

    @property
    def stored(self) -> _Context:
        """The context of the parts of a pattern whose occurrences have to be stored."""
        window = LANDMARK if self.within is None else SlidingWindow(self.within + 1)
        return self if self.window is not None else replace(self, window=window)

    @property
    def momentary(self) -> _Context:
        """The context of a part that is read at the end of its occurrences only."""
        return replace(self, window=None)

    @property
    def beside(self) -> _Context:
        """The context of what must not occur, or is between two steps: it is no part of a match."""
        return replace(self, is_consumed=False)


@dataclass(frozen=True)
class _Occurring:
    """A part with the occurrences of a pattern.

    Attributes:
        part: The part. It is valid from the end of an occurrence on.
        start: The variable of the time at which one begins.
        end: The variable of the time at which it ends.
        is_momentary: Whether the part is valid at the end of an occurrence only.
        is_bounded: Whether the part is valid no longer than the bound on the whole pattern allows, from its start on.
        members: The variable of the occurrences of steps that one is made of, if they are known.
    """

    part: System
    start: Variable
    end: Variable
    is_momentary: bool = False
    is_bounded: bool = True
    members: Variable | None = None

    @property
    def is_instant(self) -> bool:
        """Whether each occurrence begins and ends at one instant."""
        return self.start == self.end


class _Compiler:
    def __init__(self) -> None:
        self.rules: list[System] = []
        self.numbers = count(1)

    def occurrence(self, pattern: Occurrence, context: _Context) -> _Occurring:
        # In one piece: a flat match, the translation of each kind of pattern.
        match pattern:
            case Step(body=body, name=name):
                return _named(self._step(body, context), name)
            case Seq():
                return self._sequence(pattern, context.stored)
            case Both(left=left, right=right):
                sides = [self.occurrence(side, context.stored) for side in (left, right)]
                return self._with_members(self._hull(sides, context), sides)
            case Equals():
                return self._equals(pattern, context)
            case Either(branches=branches):
                if context.window is None:  # through a stream, since occurrences are a set
                    return self.through_stream(
                        self._either([self._at_end(part, context) for part in branches]), context
                    )
                return self._either([self.occurrence(branch, context) for branch in branches])
            case Without(pattern=inner, without=without):
                occurring = self._at_end(inner, context)
                beside = context.stored.beside
                other = self.occurrence(without, beside)
                other = other if other.is_instant else self.through_stream(other, beside)
                return self.through_stream(_without(occurring, other.part), context)
            case Followed():
                return self._followed(pattern, context)
            case Preceded(pattern=step, absent=absent, within=within):
                occurring = self._at_end(step, context)
                before = self._absent(absent, replace(context, window=SlidingWindow(within, 1)), within)
                return self.through_stream(_without_within(occurring, before, within), context)
            case Within():
                return self._within(pattern, context)
            case Iterated():
                return self._iterated(pattern, context.stored)
            case Consumed():
                return self._consumed(pattern, context)

    def through_stream(
        self, occurring: _Occurring, context: _Context, shift: int = 0, consumption: Consumption | None = None
    ) -> _Occurring:
        """Returns occurrences as they are read from a stream of their own, which a rule derives.

        What holds at one instant only is in the stream at each instant at which it does, and what is stored when it
        begins to hold, with its times.

        Args:
            occurring: The occurrences.
            context: How they are read.
            shift: By how much the times in them are too late (integer ms).
            consumption: Which of them are in the stream; None: all.
        """
        number = next(self.numbers)
        carried = _Carried(occurring.part, tuple(name for name in visible(occurring.part) if is_shown(name)), number)
        end = Variable(f"end {number}")
        start = end if occurring.is_instant else Variable(f"start {number}")
        times = [] if occurring.is_momentary else [(occurring.end, end)]
        times += [] if occurring.is_instant else [(occurring.start, start)]
        members = None
        if context.is_consumed and occurring.members is not None:
            members = Variable(f"members {number}")
            times.append((occurring.members, members))
        body, arguments = _shifted(carried.part, (*(own for own, _ in times), *carried.cells), shift)
        body = replace(body, consumption=consumption)
        stream = self._derive(body, arguments, "rstream" if occurring.is_momentary else "istream")
        columns = (end, *(read for _, read in times), *carried.cells)
        part = _read(stream, columns, carried, context)
        return _Occurring(part, start, end, context.window is None, occurring.is_instant, members)

    def _derive(self, body: System, arguments: tuple[Variable, ...], output: str) -> str:
        """Adds the rule that derives a stream of occurrences, and returns the stream. Equal rules, also those of other
        queries, have one stream, and different ones have different streams, whatever the queries are called.
        """
        plain_body, plain_arguments = _with_plain_names(body, arguments)
        digest = _digest(plain_body, plain_body.consumption, plain_arguments, output)
        self._add_rule(plain_body, plain_arguments, digest, output)
        return STREAMS + digest

    def _add_rule(self, body: System, arguments: tuple[Variable, ...], digest: str, output: str) -> None:
        rule = replace(
            body,
            name=f"occurrence {digest}",
            consequences=(Construct((AtomPattern(OCCURRENCE, arguments, exact=True),)),),
            output=output,
            report=CLOSE,
            stream=STREAMS + digest,
            internal=True,
            reentrant=False,
        )
        if rule not in self.rules:
            self.rules.append(rule)

    def _step(self, body: System, context: _Context) -> _Occurring:
        """Returns the occurrences of a graph pattern: its solutions at each instant at which its streams bring
        something. Equal patterns share a stream, also those of other queries."""
        number = next(self.numbers)
        step = _StepRule(_delayed(body, context.delay), number)
        self._add_rule(step.rule, step.arguments, step.digest, "rstream")
        end, cells = Variable(f"end {number}"), step.carried.cells
        part = _read(STREAMS + step.digest, (end, *cells), step.carried, context)
        if not context.is_consumed:
            return _Occurring(part, end, end, context.window is None)
        members, pattern = Variable(f"members {number}"), _StepRule(body, number).digest
        delay = literal(str(context.delay), XSD + "integer")
        time = calls.call("-", (end, delay)) if context.delay else end
        bind = Bind(members, calls.by_iri(MEMBER.iri, (literal(pattern), time, *cells)))
        part = replace(part, predicates=(*part.predicates, bind))
        return _Occurring(part, end, end, context.window is None, members=members)

    def _with_members(self, occurring: _Occurring, sides: Iterable[_Occurring]) -> _Occurring:
        """Returns occurrences with the occurrences of steps that their sides are made of."""
        parts = [side.members for side in sides if side.members is not None]
        if not parts:
            return occurring
        members = Variable(f"members {next(self.numbers)}")
        bind = Bind(members, calls.by_iri(JOINED.iri, parts))
        part = replace(occurring.part, predicates=(*occurring.part.predicates, bind))
        return replace(occurring, part=part, members=members)

    def _consumed(self, pattern: Consumed, context: _Context) -> _Occurring:
        inner = pattern.pattern
        occurring = self._at_end(inner, replace(context, is_consumed=True))
        assert occurring.members is not None
        names = tuple(sorted(filter(is_shown, visible(occurring.part)), key=str))
        within = inner.within if isinstance(inner, Within) and inner.within is not None else context.within
        retention = None if within is None else within + context.delay + 1
        keys = _shared(inner) if pattern.keys is None else pattern.keys
        steps = tuple(dict.fromkeys(name for name, _ in _steps(inner)))
        consumption = Consumption(
            tuple(sorted(keys, key=str)), occurring.start, occurring.members, steps, names, retention
        )
        return self.through_stream(replace(occurring, is_momentary=True), context, consumption=consumption)

    def _sequence(self, pattern: Seq, context: _Context) -> _Occurring:
        left, right = self.occurrence(pattern.left, context), self.occurrence(pattern.right, context)
        between = []
        for interposed in pattern.between:
            inner = self.occurrence(interposed.pattern, context.beside)
            between.append(Between(inner.part, inner.start, inner.end, interposed.wanted))
        tests = [] if pattern.condition is None else [pattern.condition]
        if context.within is not None and not left.is_bounded:
            tests.append(_is_within(left.start, right.end, context.within))
        join = SequenceJoin(
            left.part,
            right.part,
            left.end,
            right.start,
            right.end,
            pattern.selection,
            pattern.min_gap,
            pattern.max_gap,
            calls.all_of(tests),
            tuple(between),
            pattern.origin,
        )
        part = System(sources=(), joinables=(join,))
        occurring = _Occurring(part, left.start, right.end, is_bounded=left.is_bounded)
        return self._with_members(occurring, (left, right))

    def _iterated(self, pattern: Iterated, context: _Context) -> _Occurring:
        occurring = self.occurrence(pattern.pattern, context)
        run = Run(pattern.keys, pattern.measures, next(self.numbers), occurring.members)
        tests = [] if pattern.condition is None else [run.compared(pattern.condition)]
        if context.within is not None and not occurring.is_bounded:
            tests.append(_is_within(run.start, run.of_next(occurring.end), context.within))
        part = run.runs(
            occurring.part,
            (occurring.start, occurring.end),
            (pattern.least, pattern.most),
            calls.all_of(tests),
            pattern.is_consecutive,
            pattern.origin,
        )
        return _Occurring(part, run.start, run.end, is_bounded=occurring.is_bounded, members=run.members)

    def _hull(self, sides: Iterable[_Occurring], context: _Context) -> _Occurring:
        """Returns the joined occurrences, from the first begin to the last end."""
        left, right = sides
        number = next(self.numbers)
        start, end = Variable(f"start {number}"), Variable(f"end {number}")
        first = calls.call("IF", (calls.call("<", (left.start, right.start)), left.start, right.start))
        last = calls.call("IF", (calls.call("<", (left.end, right.end)), right.end, left.end))
        part = System(sources=(), joinables=(left.part, right.part), predicates=(Bind(start, first), Bind(end, last)))
        is_bounded = left.is_bounded and right.is_bounded
        occurring = _Occurring(part, start, end, is_bounded=is_bounded)
        if context.within is None or is_bounded:
            return occurring
        return _filtered(occurring, [Filter(_is_within(start, end, context.within))])

    def _equals(self, pattern: Equals, context: _Context) -> _Occurring:
        """Returns the occurrences with the same interval: read at their ends only, they end together."""
        left, right = self._at_end(pattern.left, context), self._at_end(pattern.right, context)
        other = right.part
        if not (left.is_instant and right.is_instant):
            other = System(sources=(), joinables=(other,), predicates=(Bind(left.start, right.start),))
        if pattern.is_optional:
            part = System(sources=(), joinables=(left.part,), predicates=(Optional(other),))
        else:
            part = System(sources=(), joinables=(left.part, other))
        occurring = _Occurring(part, left.start, left.end, is_momentary=True)
        return self.through_stream(self._with_members(occurring, (left, right)), context)

    def _either(self, branches: Sequence[_Occurring]) -> _Occurring:
        number = next(self.numbers)
        start, end = Variable(f"start {number}"), Variable(f"end {number}")
        members = None if branches[0].members is None else Variable(f"members {number}")
        own = (start, end) if members is None else (start, end, members)
        parts = []
        for branch in branches:
            values = (branch.start, branch.end, branch.members)
            binds = tuple(Bind(name, value) for name, value in zip(own, values, strict=False) if value is not None)
            shown = Select((*(name for name in visible(branch.part) if is_shown(name)), *own))
            parts.append(System(sources=(), joinables=(branch.part,), predicates=binds, consequences=(shown,)))
        is_momentary = all(branch.is_momentary for branch in branches)
        is_bounded = all(branch.is_bounded for branch in branches)
        part = System(sources=(), joinables=(Union(tuple(parts)),))
        return _Occurring(part, start, end, is_momentary, is_bounded, members)

    def _at_end(self, pattern: Occurrence, context: _Context) -> _Occurring:
        """Returns the occurrences of a pattern at their ends only. Those of a bounded one are stored no longer."""
        occurring = self.occurrence(pattern, context.momentary)
        return occurring if occurring.is_momentary else self.through_stream(occurring, context.momentary)

    def _followed(self, pattern: Followed, context: _Context) -> _Occurring:
        later = replace(context, delay=context.delay + pattern.within)
        occurring = self._at_end(pattern.pattern, later)
        behind = self._absent(pattern.absent, replace(context, window=SlidingWindow(pattern.within)), pattern.within)
        start = Variable(f"start {next(self.numbers)}")
        part = _without_within(occurring, behind, pattern.within - 1).part
        part = replace(part, predicates=(*part.predicates, Bind(start, occurring.start)))
        momentary = _Occurring(part, start, occurring.end, is_momentary=True, members=occurring.members)
        return self.through_stream(momentary, context, shift=pattern.within)

    def _absent(self, pattern: Occurrence, context: _Context, within: int) -> _Occurring:
        """Returns the occurrences of what must not lie in an interval of this length (integer ms)."""
        bounded = pattern if isinstance(pattern, Step) else Within(pattern, within)
        return self.occurrence(bounded, replace(context.beside, within=None))

    def _within(self, pattern: Within, context: _Context) -> _Occurring:
        inner, is_own = context, pattern.within is not None
        if is_own:
            inner = replace(context, window=None, within=pattern.within)
        occurring = self.occurrence(pattern.pattern, inner.stored if is_own else inner)
        if is_own and not occurring.is_bounded:
            assert pattern.within is not None
            occurring = _filtered(occurring, [Filter(_is_within(occurring.start, occurring.end, pattern.within))])
        body = pattern.body
        if body is not None:
            body = _with_times(body, occurring)
        if body is not None and body.joinables:
            occurring = self.through_stream(occurring, context.momentary)
            beside = _delayed(replace(body, predicates=()), context.delay)
            part = System(sources=(), joinables=(occurring.part, beside), predicates=body.predicates)
            occurring = replace(occurring, part=part)
        elif body is not None:
            occurring = _filtered(occurring, body.predicates)
        occurring = _named(occurring, pattern.name)
        if context.window is None or (not is_own and not occurring.is_momentary):
            return occurring
        return self.through_stream(occurring, context)


class _StepRule:
    """The rule that derives the stream of a step.

    Attributes:
        carried: The variables of the step in the facts of the stream.
        rule: The rule, with plain names of variables.
        arguments: The arguments of its facts.
        digest: The name of the step: equal patterns have equal names, whatever their variables are called.
    """

    def __init__(self, body: System, number: int) -> None:
        part = body if is_plain(body) else System(sources=(), joinables=(body,))
        self.names = tuple(name for name in visible(part) if is_shown(name))
        self.carried = _Carried(part, self.names, number)
        self.rule, self.arguments = _with_plain_names(self.carried.part, self.carried.cells)
        self.digest = _digest(self.rule, self.arguments)


_Places = dict[Variable, int]


def _shared(pattern: Occurrence) -> frozenset[Variable]:
    """Returns variables that each occurrence of a step of a pattern binds, at one place in equal steps: occurrences
    that differ in them are different, so that no match depends on those with another value."""
    steps = list(_steps(pattern))
    places: dict[str, _Places] = {}
    for digest, own in steps:
        before = places.setdefault(digest, own)
        places[digest] = {name: place for name, place in own.items() if before.get(name) == place}
    return frozenset.intersection(*(frozenset(own) for own in places.values()))


def _steps(pattern: Occurrence) -> Iterator[tuple[str, _Places]]:
    """Yields for each step of a pattern its name, and the places of its variables that have a value outside, too."""
    match pattern:
        case Step(body=body):
            step = _StepRule(body, 0)
            bound = bound_in(body)
            yield step.digest, {name: place for place, name in enumerate(step.names) if name in bound}
        case Seq(left=left, right=right) | Both(left=left, right=right) | Equals(left=left, right=right):
            yield from (*_steps(left), *_steps(right))
        case Either(branches=branches):
            yield from (step for branch in branches for step in _steps(branch))
        case Iterated(pattern=inner, keys=keys):
            for digest, places in _steps(inner):
                yield digest, {name: place for name, place in places.items() if name in keys}
        case Without() | Followed() | Preceded() | Within() | Consumed():
            yield from _steps(pattern.pattern)


def _is_within(start: Variable, end: Variable, within: int) -> Call:
    """Returns the test that an interval is no longer than a length of time (integer ms)."""
    length = calls.call("-", (end, start))
    return calls.condition(calls.call("<=", (length, literal(str(within), XSD + "integer"))))


def _read(stream: str, columns: tuple[Variable, ...], carried: _Carried, context: _Context) -> System:
    """Returns the part that reads a stream of occurrences."""
    window = ElementWindow() if context.window is None else context.window
    atom = AtomPattern(OCCURRENCE, columns, exact=True)
    return System(sources=(Occurrences(stream, window),), joinables=(atom,), predicates=carried.binds)


def _digest(*parts: object) -> str:
    return sha256(repr(parts).encode()).hexdigest()[:10]


def _with_plain_names(body: System, arguments: tuple[Variable, ...]) -> tuple[System, tuple[Variable, ...]]:
    """Returns a body, and the arguments of its facts, with variables that are numbered in the order of the text."""
    names: dict[Variable, Variable] = {}

    def numbered(part: Any) -> Any:
        if isinstance(part, Variable):
            return names.setdefault(part, Variable(f"v{len(names)}"))
        return map_parts(part, numbered)

    renamed: tuple[System, tuple[Variable, ...]] = numbered((body, arguments))
    return renamed


def _filtered(occurring: _Occurring, tests: Iterable[Predicate]) -> _Occurring:
    part = System(sources=(), joinables=(occurring.part,), predicates=tuple(tests))
    return replace(occurring, part=part)


def _with_times(body: System, occurring: _Occurring) -> System:
    """Returns a body with the variables of an occurrence's times in place of `OWN_START` and `OWN_END`."""
    times = {OWN_START: occurring.start, OWN_END: occurring.end}

    def renamed(part: Any) -> Any:
        return times.get(part, part) if isinstance(part, Variable) else map_parts(part, renamed)

    result: System = renamed(body)
    return result


def _named(occurring: _Occurring, name: Variable | None) -> _Occurring:
    """Returns the occurrences with their times under a name."""
    if name is None:
        return occurring
    binds = (Bind(start_of(name), occurring.start), Bind(end_of(name), occurring.end))
    part = System(sources=(), joinables=(occurring.part,), predicates=binds)
    return replace(occurring, part=part)


def _without(occurring: _Occurring, other: System) -> _Occurring:
    """Returns the occurrences with which none of some others is compatible."""
    part = System(sources=(), joinables=(occurring.part,), predicates=(NotExists((other,)),))
    return replace(occurring, part=part)


def _without_within(occurring: _Occurring, other: _Occurring, within: int) -> _Occurring:
    """Returns the momentary occurrences with which none of some others is compatible that began no longer than some
    time ago (integer ms)."""
    if other.is_instant:
        return _without(occurring, other.part)
    recent = System(
        sources=(), joinables=(other.part,), predicates=(Filter(_is_within(other.start, occurring.end, within)),)
    )
    part = System(sources=(), joinables=(occurring.part,), predicates=(Exists(None, recent, False),))
    return replace(occurring, part=part)


def _delayed(body: System, delay: int) -> System:
    """Returns a graph pattern that reads what its streams brought some time ago (integer ms)."""
    if not delay:
        return body

    def later(part: Any) -> Any:
        if isinstance(part, Source):
            windows = tuple((stream, window.delayed_by(delay)) for stream, window in part.windows)
            return replace(part, window=part.window.delayed_by(delay), windows=windows)
        return map_parts(part, later)

    delayed: System = later(body)
    return delayed


def _shifted(part: System, arguments: tuple[Variable, ...], shift: int) -> tuple[System, tuple[Variable, ...]]:
    """Returns a part, and the arguments of its facts, with all times earlier (integer ms)."""
    if not shift:
        return part, arguments
    length = literal(str(shift), XSD + "integer")
    times = {name: Variable(f"{name.name} earlier") for name in arguments if is_time(name)}
    binds = tuple(
        Bind(new, calls.call("COALESCE", (calls.call("-", (old, length)), old))) for old, new in times.items()
    )
    return (
        replace(part, predicates=(*part.predicates, *binds)),
        tuple(times.get(name, name) for name in arguments),
    )


def is_time(name: Variable) -> bool:
    """Returns whether a variable holds a time of an occurrence."""
    return name.name.startswith(("start ", "end "))


class _Carried:
    """The variables of an occurrence in a fact, which has a value for each of them.

    Attributes:
        part: The occurrences, with a term for each variable that may be unbound.
        cells: The variables of the fact.
        binds: What makes them unbound again where the fact is read.
    """

    def __init__(self, part: System, names: tuple[Variable, ...], number: int) -> None:
        bound = bound_in(part)
        renaming = {name: Variable(f"{name.name} in {number}") for name in names if name not in bound}
        fills = tuple(Bind(new, calls.call("COALESCE", (name, UNBOUND))) for name, new in renaming.items())
        self.part = replace(part, predicates=(*part.predicates, *fills)) if fills else part
        self.cells = tuple(renaming.get(name, name) for name in names)
        self.binds = tuple(Bind(name, _or_unbound(new), keep_unbound=True) for name, new in renaming.items())


def _or_unbound(name: Variable) -> Expression:
    """Returns the value of a variable, or an error if it holds `UNBOUND`."""
    is_unbound = calls.call("SAMETERM", (name, UNBOUND))
    return calls.call("IF", (is_unbound, Variable("nothing"), name))


def bound_in(part: Joinable) -> frozenset[Variable]:
    """Returns the variables that each solution of a part binds."""
    # In one piece: a case for each kind of joinable.
    match part:
        case System(grouping=None, joinables=joinables, predicates=predicates):
            bound = frozenset[Variable]().union(*map(bound_in, joinables))
            for predicate in predicates:
                bound |= frozenset(_bound_by(predicate, bound))
            return bound & frozenset(visible(part))
        case System(grouping=grouping):
            inner = bound_in(replace(part, grouping=None, consequences=()))
            counts = {item.variable for item in grouping.aggregates if item.kind == "count"} if grouping else set()
            return (inner | counts) & frozenset(visible(part))
        case Union(branches=branches):
            return frozenset.intersection(*map(bound_in, branches))
        case Iteration(left=left, values=values):
            return bound_in(left) - {name for name, value in values if isinstance(value, Call)}
        case SequenceJoin(left=left, right=right):
            return bound_in(left) | bound_in(right)
        case Temporal():
            return frozenset(variables(part))
        case Pattern() | AtomPattern():
            return frozenset(slot for slot in part.slots if isinstance(slot, Variable))


def _bound_by(predicate: Predicate, bound: frozenset[Variable]) -> Iterator[Variable]:
    """Yields the variables that a predicate binds in each solution that has these variables."""
    match predicate:
        case Bind(variable=variable, expression=expression, keep_unbound=keep_unbound):
            if not keep_unbound or _has_value(expression, bound):
                yield variable
        case TableFunction(variables=variables):
            yield from variables
        case Exists(variable=Variable() as variable):
            yield variable


def _has_value(expression: object, bound: frozenset[Variable]) -> bool:
    """Returns whether an expression certainly has a value, where these variables have."""
    match expression:
        case Call(function=function, arguments=arguments):
            return function == COALESCE and any(_has_value(argument, bound) for argument in arguments)
        case Variable():
            return expression in bound
        case str():
            return True
        case _:
            return False
