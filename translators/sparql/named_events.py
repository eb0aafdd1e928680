"""Sequences of events by their names, as patterns over time: ``FILTER(SEQ(?a ; ?b))`` of CQELS-QL, and ``EVENT`` and
``MATCH`` of RSP-QL.

docs/languages/sequences.md has the definitions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import takewhile

from squall.errors import Origin, did_you_mean
from squall.lexers.sparql import tree as q
from squall.model import Variable
from squall.model.windows import duration
from squall.rdf import Term
from squall.translators.sparql.expressions import conjuncts
from squall.translators.sparql.state import Notes


def with_pattern(statement: q.Statement, notes: Notes) -> q.Statement:
    """Returns a statement whose query has, in place of events by their names, a pattern over time. Errors are recorded.

    A statement without events is returned as it is.
    """
    body = statement.body
    if not isinstance(body, q.SelectQuery | q.ConstructQuery | q.AskQuery | q.DescribeQuery):
        return statement
    if sequences := q.event_sequences(body):
        return replace(statement, body=_Sequencing(notes, sequences[0], body).query())
    if q.events(body):
        return replace(statement, body=_Matching(notes, body).query())
    return statement


# CQELS-QL


@dataclass
class _Event:
    """An event: the triples of which a variable is the subject, and the filters that are of these alone."""

    sequenced: q.SequencedEvent
    stream: q.Slot | None = None
    range: q.TimeRange | q.CountRange | q.SessionRange | None = None
    triples: list[q.TriplePattern] = field(default_factory=list)
    filters: list[q.Filter] = field(default_factory=list)

    @property
    def is_wanted(self) -> bool:
        """Whether it has to occur."""
        return self.sequenced.wanted

    @property
    def variables(self) -> frozenset[Variable]:
        return q.mentioned(tuple(self.triples))

    @property
    def step(self) -> q.Group:
        """The step: what its stream brings at an instant."""
        origin = self.triples[0].origin
        block = q.TriplesBlock(tuple(self.triples), origin)
        assert self.stream is not None
        return q.Group((q.StreamWindow(self.stream, None, q.Group((block, *self.filters), origin), origin),), origin)


@dataclass(frozen=True)
class _Block:
    """Where events are read: ``STREAM stream [window] { ... }``, or ``FROM STREAM stream [window]`` around all."""

    stream: q.Slot
    range: q.TimeRange | q.CountRange | q.SessionRange | None
    elements: tuple[q.Element, ...]
    is_of_query: bool = False


class _Sequencing:
    """Makes a pattern over time of the condition ``SEQ(...)`` of a query.

    A filter accepts a solution whatever other solutions there are, so that each sequence counts.
    """

    def __init__(self, notes: Notes, sequence: q.EventSequence, query: q.Query) -> None:
        self.notes = notes
        self.sequence = sequence
        self.statement = query
        self.streams = [clause for clause in query.dataset if isinstance(clause, q.FromStream)]
        self.events = {event.variable: _Event(event) for event in sequence.events}
        self.names = {step.name for call in q.step_calls(query) for step in call.steps}

    def query(self) -> q.Query:
        """Returns the query with the pattern in place of all that its events need."""
        query = self.statement
        for other in q.event_sequences(query)[1:]:
            hint = "register the matches of the first one as a stream, `REGISTER STREAM <s> AS CONSTRUCT ...`"
            self.notes.fail("a query has one `SEQ`", other.origin, hint)
        where = query.where or q.Group()
        block = next((element for element in where.elements if self._has_sequence(element)), None)
        if self._is_filtered(where):
            where = self._of_query(where)
        elif block is not None:
            pattern = self._of_block(block)
            where = replace(where, elements=tuple(pattern if part is block else part for part in where.elements))
        else:
            hint = "write `FILTER(SEQ(...))` into the group of the query, or of a `STREAM` in it"
            self.notes.fail("`SEQ` cannot be here", self.sequence.origin, hint)
        clauses = tuple(clause for clause in query.dataset if clause not in self.streams)
        return replace(query, where=where, dataset=clauses)

    def _is_filtered(self, group: q.Group) -> bool:
        """Returns whether a filter of a group has the sequence, alone or joined to others by ``&&``."""
        return any(
            condition is self.sequence
            for element in group.elements
            if isinstance(element, q.Filter)
            for condition in conjuncts(element.expression)
        )

    def _has_sequence(self, element: q.Element) -> bool:
        return isinstance(element, q.StreamWindow) and self._is_filtered(element.group)

    def _of_query(self, where: q.Group) -> q.Group:
        """Returns the group of a query, with the pattern of its sequence."""
        blocks: list[_Block] = []
        parts_beside: list[q.Element] = []
        plain = tuple(element for element in where.elements if isinstance(element, q.TriplesBlock))
        for clause in self.streams[1:]:
            hint = "write `STREAM <stream> [RANGE 10s] { ... }` around the events of each stream"
            self.notes.fail("`FROM STREAM` names the stream of all events, and there are two", clause.origin, hint)
        if self.streams:
            read = self.streams[0].range
            assert not isinstance(read, q.PastRange)  # the grammar has none here
            blocks.append(_Block(self.streams[0].stream, read, plain, is_of_query=True))
        else:
            parts_beside += plain
        filters: list[q.Filter] = []
        for element in where.elements:
            if isinstance(element, q.StreamWindow) and self._reads_events(element.group):
                inner = tuple(part for part in element.group.elements if not isinstance(part, q.Filter))
                filters += (part for part in element.group.elements if isinstance(part, q.Filter))
                blocks.append(_Block(element.name, element.range, inner))
            elif isinstance(element, q.Filter):
                filters.append(element)
            elif not isinstance(element, q.TriplesBlock):
                parts_beside.append(element)
        return self._group(blocks, filters, parts_beside, where)

    def _of_block(self, element: q.Element) -> q.Group:
        """Returns a group with the pattern of a sequence whose events are in the block of one stream."""
        assert isinstance(element, q.StreamWindow)
        for clause in self.streams:
            hint = "leave it out: `STREAM` names the stream and its window"
            self.notes.fail("`FROM STREAM` stands beside a `SEQ` that is inside of `STREAM`", clause.origin, hint)
        parts = element.group.elements
        filters = [part for part in parts if isinstance(part, q.Filter)]
        binds = [part for part in parts if isinstance(part, q.Bind)]
        inner = tuple(part for part in parts if not isinstance(part, q.Filter | q.Bind))
        return self._group([_Block(element.name, element.range, inner)], filters, binds, element.group)

    def _reads_events(self, group: q.Group) -> bool:
        blocks = (element for element in group.elements if isinstance(element, q.TriplesBlock))
        return any(triple.subject in self.events for block in blocks for triple in block.triples)

    def _group(
        self, blocks: Sequence[_Block], filters: Iterable[q.Filter], parts_beside: Iterable[q.Element], group: q.Group
    ) -> q.Group:
        """Returns the pattern of the events in these blocks, with what stands beside it."""
        for block in blocks:
            self._read(block)
        self._check_events()
        guards, filters_beside = [], []
        for condition in (part for element in filters for part in _split(element, self.sequence)):
            event = self._event_of(condition)
            if event is not None:
                event.filters.append(condition)
            elif self._is_guard(condition):
                guards.append(condition)
            else:
                filters_beside.append(condition)
        if self.notes.errors:
            return group
        return q.Group((self._pattern(guards), *parts_beside, *filters_beside), group.origin)

    # Events

    def _read(self, block: _Block) -> None:
        """Adds the triples of a block to their events."""
        for element in block.elements:
            if not isinstance(element, q.TriplesBlock):
                hint = "only triples and `FILTER` may stand beside events: write it into a `STREAM` of its own"
                self.notes.fail("this cannot stand among the events of `SEQ`", element.origin, hint)
                continue
            for triple in element.triples:
                event = self.events.get(triple.subject) if isinstance(triple.subject, Variable) else None
                if event is None:
                    hint = "write it into a `STREAM` of its own, or behind the braces if it is of static data"
                    if block.is_of_query:
                        hint = "write `STREAM <stream> [RANGE 10s] { ... }` around the events in place of `FROM STREAM`"
                    message = f"the subject `{q.slot(triple.subject)}` is no event of `SEQ`"
                    self.notes.fail(message, triple.origin, f"name it in `SEQ`; or {hint}")
                    continue
                if event.triples and event.stream != block.stream:
                    hint = "an event is what one stream brings at an instant: give the other one a name of its own"
                    self.notes.fail(f"`{triple.subject}` is read from two streams", triple.origin, hint)
                event.stream, event.range = block.stream, block.range
                event.triples.append(triple)

    def _check_events(self) -> None:
        """Records an error for each event that has no triples, or stands at a wrong place."""
        events = self.sequence.events
        for place, event in enumerate(events):
            name = event.variable
            if any(name == earlier.variable for earlier in events[:place]):
                self.notes.fail(f"`{name}` is twice in `SEQ`", event.origin, "give each event a name of its own")
            elif not self.events[name].triples:
                hint = f"write a triple of a stream that has it as its subject: `{name} <http://example.org/p> ?value`"
                self.notes.fail(f"no triple of a stream has `{name}` as its subject", event.origin, hint)
        for call in q.step_calls(self.statement):
            for step in call.steps:
                if step.variable in self.events and not self.events[step.variable].is_wanted:
                    hint = "only events that occur have times: leave the call out"
                    self.notes.fail(f"`{step}` must not occur, so that it has no times", step.origin, hint)
        for event in (events[0], events[-1]):
            if not event.wanted:
                hint = "write it between the two events between which it must not occur"
                self.notes.fail("`NOT` cannot be the first or last of `SEQ`", event.origin, hint)

    # Conditions

    def _event_of(self, condition: q.Filter) -> _Event | None:
        """Returns the event that alone a condition is about, or None."""
        variables = q.mentioned(condition)
        if not variables or _is_of_solutions(condition):
            return None
        events = sorted(self.events.values(), key=lambda event: not event.is_wanted)
        return next((event for event in events if variables <= event.variables), None)

    def _is_guard(self, condition: q.Filter) -> bool:
        """Returns whether a condition is about several events and nothing else."""
        variables = q.mentioned(condition)
        for event in self.events.values():
            if not event.is_wanted and not variables.isdisjoint(event.variables - self._bound):
                hint = "use one variable for what has to be equal in both"
                message = f"this is about something else than `{event.sequenced.variable}` alone, which must not occur"
                self.notes.fail(message, condition.origin, hint)
        return bool(variables) and variables <= self._bound and not _is_of_solutions(condition)

    @property
    def _bound(self) -> frozenset[Variable]:
        """The variables that the events bind that occur."""
        wanted = (event.variables for event in self.events.values() if event.is_wanted)
        return frozenset[Variable]().union(*wanted)

    # The pattern

    def _pattern(self, guards: Sequence[q.Filter]) -> q.TimePattern:
        """Returns the pattern. A condition on several events is one of the last of them."""
        first, *following = (event for event in self.events.values() if event.is_wanted)
        bound = first.variables
        links = []
        for event in following:
            earlier, bound = bound, bound | event.variables
            ready = [guard for guard in guards if q.mentioned(guard) <= bound and q.mentioned(guard) - earlier]
            occurrence = replace(self._occurrence(event), when=_all_of([guard.expression for guard in ready]))
            links.append(q.Link(occurrence, "EACH", self._absent_before(event), event.sequenced.origin))
        chain = q.Chain(self._occurrence(first), tuple(links), within=self._within(), origin=self.sequence.origin)
        return q.TimePattern((q.Conjunction((q.Conjunct(chain),)),), self.sequence.origin)

    def _occurrence(self, event: _Event) -> q.Occurrence:
        name = event.sequenced.variable.name
        is_named = name in self.names
        step_name = q.StepName(name, is_variable=True, origin=event.sequenced.origin) if is_named else None
        return q.Occurrence(event.step, step_name, origin=event.sequenced.origin)

    def _absent_before(self, event: _Event) -> tuple[q.Part, ...]:
        """Returns what must not be between an event and the one that has to occur before it."""
        events = list(self.events.values())
        before = takewhile(lambda other: not other.is_wanted, reversed(events[: events.index(event)]))
        return tuple(q.Part(other.step, False, other.sequenced.origin) for other in reversed(list(before)))

    def _within(self) -> int | None:
        """Returns the greatest length that the window of the events allows (integer ms), or None."""
        first, *following = self.events.values()
        for event in following:
            if event.range != first.range:
                hint = "read all events of `SEQ` through windows of one length"
                message = f"`{event.sequenced.variable}` has another window than `{first.sequenced.variable}`"
                self.notes.fail(message, event.sequenced.origin, hint)
        within = _greatest_length(first.range, self.sequence.origin, self.notes, "[RANGE 10s]")
        least = sum(event.is_wanted for event in self.events.values()) - 1
        if within is not None and within < least:
            message = (
                f"this never occurs: it takes {duration(least)} at least, and its window has {duration(within + 1)}"
            )
            self.notes.fail(message, self.sequence.origin, "give the stream a longer window")
        return within


def _greatest_length(range: q.Range | None, origin: Origin | None, notes: Notes, example: str) -> int | None:
    """Returns the greatest time (integer ms) between events that a window has together, or None.

    An error is recorded for a window that bounds no sequence.

    Args:
        range: The window. One of 1 ms, ``[NOW]``, is no bound (CQELS-QL_SPEC.md, section 7).
        origin: The place of the sequence.
        notes: The errors.
        example: A window that bounds a sequence, in the language of the query.
    """
    match range:
        case None | q.TimeRange(size=1, step=None):
            return None
        case q.TimeRange(size=size, step=None):
            return size - 1
        case q.TimeRange() | q.PastRange():
            message, hint = "a sequence is output when it ends, and not at steps", "leave the step out"
        case q.CountRange() | q.SessionRange():
            message, hint = "a number of triples or a session bounds no sequence", "bound it by a length of time"
    notes.fail(message, origin, f"{hint}: `{example}`")
    return None


def _split(element: q.Filter, sequence: q.EventSequence) -> Iterator[q.Filter]:
    """Yields the conditions of a filter, each as a filter, without the sequence."""
    for condition in conjuncts(element.expression):
        if condition is not sequence:
            yield replace(element, expression=condition)


def _is_of_solutions(condition: q.Filter) -> bool:
    """Returns whether a condition is tested on matches: it has a pattern or the times of events."""
    return bool(q.step_calls(condition)) or q.has_pattern(condition)


def _all_of(conditions: Sequence[q.Expression]) -> q.Expression | None:
    if len(conditions) > 1:
        return q.Call("&&", tuple(conditions))
    return conditions[0] if conditions else None


# RSP-QL


class _Matching:
    """Makes a pattern over time of the elements ``EVENT`` and ``MATCH`` of a query."""

    def __init__(self, notes: Notes, query: q.Query) -> None:
        self.notes = notes
        self.statement = query
        self.windows = {clause.name: clause for clause in query.dataset if isinstance(clause, q.FromWindow)}
        where = query.where or q.Group()
        self.events = {element.name.name: element for element in where.elements if isinstance(element, q.Event)}
        self.matched: list[q.Event] = []

    def query(self) -> q.Query:
        """Returns the query with the pattern in place of its events and its match."""
        where = self.statement.where or q.Group()
        own = [element for element in where.elements if isinstance(element, q.Event | q.Match)]
        self._check(own)
        matches = [element for element in own if isinstance(element, q.Match)]
        if not matches or self.notes.errors:
            return self.statement
        match = matches[0]
        chain = self._chain(match.chain)
        for event in self.events.values():
            if event not in self.matched:
                hint = f"name it in the `MATCH`, or read it by `WINDOW {event.on} {{ ... }}`"
                self.notes.fail(f"the event `{event.name}` is in no `MATCH`", event.name.origin, hint)
        chain = self._bounded(chain, match)
        pattern = q.TimePattern((q.Conjunction((q.Conjunct(chain),)),), match.origin)
        parts_beside = (element for element in where.elements if not isinstance(element, q.Event | q.Match))
        return replace(self.statement, where=q.Group((pattern, *parts_beside), where.origin), dataset=self._dataset())

    def _check(self, own: Sequence[q.Event | q.Match]) -> None:
        """Records an error for what is not in the group of the query, or stands there twice."""
        for element in q.events(self.statement):
            if not any(element is part for part in own):
                kind = "EVENT" if isinstance(element, q.Event) else "MATCH"
                hint = "write it into the group of the query; braces of events may have all of SPARQL"
                self.notes.fail(f"`{kind}` cannot be here", element.origin, hint)
        matches = [element for element in own if isinstance(element, q.Match)]
        for match in matches[1:]:
            hint = "write one sequence, or register the matches of the first one as a stream"
            self.notes.fail("a query has one `MATCH`", match.origin, hint)
        self._check_names([element for element in own if isinstance(element, q.Event)], bool(matches))

    def _check_names(self, events: Sequence[q.Event], is_matched: bool) -> None:
        for place, event in enumerate(events):
            if any(event.name == earlier.name for earlier in events[:place]):
                hint = "give each event a name of its own"
                self.notes.fail(f"two events have the name `{event.name}`", event.name.origin, hint)
        if events and not is_matched:
            hint = f"say what occurs: `MATCH {' SEQ '.join(str(event.name) for event in events)}`"
            self.notes.fail("there is no `MATCH` of these events", events[0].origin, hint)

    # Sequences

    def _chain(self, chain: q.EventChain) -> q.Chain:
        first, *following = chain.operands
        is_last = first.selection == "LAST"
        if first.selection and not (is_last and following):
            self._refuse(first, "`LAST ?a SEQ ?b`")
        start, links = self._occurrence(first), []
        for place, operand in enumerate(following):
            is_of_last = is_last and not place
            if operand.selection not in ("", "FIRST") or (is_of_last and operand.selection):
                self._refuse(operand, "`?a SEQ FIRST ?b`")
            selection = "LAST" if is_of_last else "NEAREST" if operand.selection else "EACH"
            links.append(q.Link(self._occurrence(operand), selection, origin=operand.origin))
        return q.Chain(start, tuple(links), within=chain.within, consumption=chain.consumption, origin=chain.origin)

    def _refuse(self, operand: q.EventOperand, example: str) -> None:
        """Records an error for a selection that is not one of the pairs of a sequence."""
        hint = f"write {example}: of one `SEQ` either the latest before, or the first after"
        if operand.selection == "EVERY":
            hint = "leave it out: without a word each occurrence takes part in all sequences that it fits"
        self.notes.fail(f"`{operand}` cannot be selected here", operand.origin, hint)

    def _occurrence(self, operand: q.EventOperand) -> q.Occurrence:
        if isinstance(operand.of, q.EventChain):
            chain = self._chain(operand.of)
            pattern = q.TimePattern((q.Conjunction((q.Conjunct(chain),)),), operand.origin)
            return q.Occurrence(q.Group((pattern,), operand.origin), origin=operand.origin)
        event = self.events.get(operand.of.name)
        if event is None:
            names = [str(name.name) for name in self.events.values()]
            hint = did_you_mean(str(operand.of), names) or f"write `EVENT {operand.of} ON <stream> {{ ... }}`"
            self.notes.fail(f"there is no event `{operand.of}`", operand.of.origin, hint)
            return q.Occurrence(q.Group())
        self.matched.append(event)
        step = q.StreamWindow(self._stream(event), None, event.group, event.origin)
        return q.Occurrence(q.Group((step,), event.group.origin), event.name, origin=operand.origin)

    # Windows

    def _stream(self, event: q.Event) -> Term:
        return self.windows[event.on].stream if event.on in self.windows else event.on

    def _bounded(self, chain: q.Chain, match: q.Match) -> q.Chain:
        """Returns a sequence with the bound that the windows of its events are."""
        first, *ranges = (self._range(event) for event in self.matched)
        for event, read in zip(self.matched[1:], ranges, strict=True):
            if read != first:
                message = f"`{event.name}` is on another window than `{self.matched[0].name}`, or one on none"
                hint = "have all events on streams, or on windows of one length"
                self.notes.fail(message, event.name.origin, hint)
        greatest = None if first is None else _greatest_length(first, match.origin, self.notes, "[RANGE PT10S]")
        bounds = [bound for bound in (chain.within, greatest) if bound is not None]
        return replace(chain, within=min(bounds, default=None))

    def _range(self, event: q.Event) -> q.Range | None:
        return self.windows[event.on].range if event.on in self.windows else None

    def _dataset(self) -> tuple[q.DatasetClause, ...]:
        """Returns the dataset without the windows that events alone read."""
        read = {window.name for window in q.windows(self.statement)}
        is_any_read = any(isinstance(name, Variable) for name in read)
        on = {event.on for event in self.matched}
        return tuple(
            clause
            for clause in self.statement.dataset
            if not isinstance(clause, q.FromWindow) or clause.name not in on or clause.name in read or is_any_read
        )
