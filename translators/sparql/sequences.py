"""Patterns over time (CT-SPARQL; `events` has what EP-SPARQL adds), as occurrences: steps, sequences and absences.

docs/languages/ctsparql.md has the definitions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from squall.errors import Origin
from squall.lexers.sparql import tree as q
from squall.lexers.sparql.expressions import FUNCTIONS
from squall.model import (
    GRAPH,
    AtomPattern,
    Bind,
    Call,
    Exists,
    Graph,
    Graphs,
    Pattern,
    Predicate,
    Select,
    Source,
    System,
    Union,
    Variable,
    visible,
)
from squall.model.sequences import Selection
from squall.model.walk import walk
from squall.model.windows import ElementWindow, duration
from squall.rdf import Term, iri_text
from squall.translators.sparql import time_patterns
from squall.translators.sparql.bodies import Body
from squall.translators.sparql.datasets import ActiveDataset
from squall.translators.sparql.expressions import Expressions, conjuncts
from squall.translators.sparql.iterations import MEASURES, Measure, previous_of
from squall.translators.sparql.state import State

EXAMPLE_OF_BOUND = 'FILTER(getDURATION() < "PT10S"^^xsd:duration)'
"""An example of a bound in EP-SPARQL."""
_BRACES = "write it into the braces of a step"


class GroupTranslator(Protocol):
    """The translator of the groups of steps."""

    @property
    def expressions(self) -> Expressions:
        """The translator of expressions."""
        ...

    def body(self, group: q.Group, reads: ActiveDataset) -> Body:
        """Returns the solutions of a group."""
        ...

    def check_bound(self, expression: q.Expression, origin: Origin | None, *bodies: Body) -> None:
        """Warns of variables of an expression that are unbound."""
        ...

    def bind(self, variable: Variable, expression: q.Expression, body: Body) -> Bind:
        """Returns a `Bind` of an expression's value."""
        ...


@dataclass(frozen=True)
class Built:
    """A pattern with what its parts need to know of it.

    Attributes:
        pattern: The pattern.
        bound: The variables that each of its occurrences binds, the times of names included.
        unbound: The variables that some of its occurrences bind.
        names: The names of its steps that can be seen around it.
        steps: The systems of its steps.
        least: The least time from its begin to its end (integer ms).
    """

    pattern: time_patterns.Occurrence
    bound: frozenset[Variable] = frozenset()
    unbound: frozenset[Variable] = frozenset()
    names: tuple[q.StepName, ...] = ()
    steps: tuple[System, ...] = ()
    least: int = 0

    @property
    def variables(self) -> frozenset[Variable]:
        return self.bound | self.unbound

    def joined(self, other: Built, pattern: time_patterns.Occurrence, least: int) -> Built:
        """Returns a pattern whose occurrences have the variables of two."""
        bound = self.bound | other.bound
        unbound = self.variables | other.variables
        names = tuple(dict.fromkeys((*self.names, *other.names)))
        return Built(pattern, bound, unbound - bound, names, (*self.steps, *other.steps), least)


def either(branches: Sequence[Built]) -> Built:
    """Returns a pattern that occurs as each of several ones."""
    bound = frozenset.intersection(*(branch.bound for branch in branches))
    return Built(
        time_patterns.Either(tuple(branch.pattern for branch in branches)),
        bound,
        frozenset[Variable]().union(*(branch.variables for branch in branches)) - bound,
        tuple(dict.fromkeys(name for branch in branches for name in branch.names)),
        tuple(step for branch in branches for step in branch.steps),
        min(branch.least for branch in branches),
    )


@dataclass
class TimePatterns:
    """Translates the pattern over time of a query."""

    state: State
    groups: GroupTranslator
    reads: ActiveDataset = field(default_factory=ActiveDataset)

    def match(self, element: q.TimePattern, group: q.Group, reads: ActiveDataset) -> System:
        """Returns a part with the matches of a pattern, each at the instant at which it ends.

        The rules of the pattern are added to the state's.

        Args:
            element: The pattern.
            group: The group that it is an element of.
            reads: The dataset.
        """
        self.reads = replace(reads, window=ElementWindow())
        built = self._outermost(element, group)
        if self.state.notes.errors:
            return System(consequences=(Select(tuple(sorted(built.variables, key=str))),))
        rules, match = time_patterns.compiled(built.pattern)
        self.state.sequences += rules
        return match

    # Patterns

    def _outermost(self, element: q.TimePattern, group: q.Group) -> Built:
        """Returns the pattern of a query, which is an element of this group."""
        return self._pattern(element)

    def _pattern(self, element: q.TimePattern) -> Built:
        branches = [self._conjunction(branch) for branch in element.branches]
        return branches[0] if len(branches) == 1 else either(branches)

    def _conjunction(self, branch: q.Conjunction) -> Built:
        first, *others = branch.conjuncts
        result = self._chain(first.chain)
        for conjunct in sorted(others, key=lambda other: not other.wanted):
            other = self._chain(conjunct.chain)
            self._check_pair(result, other, conjunct.chain.origin, may_share_names=True)
            if conjunct.wanted:
                both = time_patterns.Both(result.pattern, other.pattern)
                result = result.joined(other, both, max(result.least, other.least))
            else:
                result = replace(result, pattern=time_patterns.Without(result.pattern, other.pattern))
        return result

    def _chain(self, chain: q.Chain) -> Built:
        result = previous = self._occurrence(chain.first)
        if chain.preceded is not None:
            result = self._preceded(result, chain.preceded)
        for link in chain.links:
            assert isinstance(link, q.Link)  # `events` has the operands of EP-SPARQL
            following = self._occurrence(link.to)
            result = self._sequence(result, previous, following, link)
            previous = following
        if chain.followed is not None:
            absent = self._absent(chain.followed)
            self._check_pair(result, absent, chain.followed.origin)
            pattern = time_patterns.Followed(result.pattern, absent.pattern, chain.followed.within)
            result = replace(result, pattern=pattern, least=result.least + chain.followed.within)
        if chain.within is not None:
            result = self._within(result, chain, chain.within)
        if chain.consumption is None or not chain.consumption.is_consumed:
            return result
        return self._consumed(result, chain, chain.consumption)

    def _within(self, result: Built, chain: q.Chain, within: int) -> Built:
        """Returns a pattern with the bound of its chain (integer ms)."""
        if result.least > within:
            hint = "a longer `WITHIN`, or shorter times between the steps"
            message = f"this never occurs: it takes {duration(result.least)} at least, and `WITHIN` allows "
            self.state.notes.fail(f"{message}{duration(within)}", chain.origin, hint)
        return replace(result, pattern=time_patterns.Within(result.pattern, within))

    def _consumed(self, result: Built, chain: q.Chain, consumption: q.Consumption) -> Built:
        """Returns a pattern whose occurrences of steps are part of one of its occurrences each."""
        first = chain.first
        if not (chain.links or first.iteration is not None or q.is_composite(first.group)):
            message = "`CONSUME` has no effect on a single step: each of its occurrences is one match"
            hint = "it belongs to the chain in front of it; of an `AND` or `OR` write `{ ... AND ... } CONSUME`"
            self.state.notes.fail(message, consumption.origin, hint)
        for key in consumption.keys or ():
            if key not in result.bound:
                problem = "may be unbound" if key in result.unbound else "nothing binds it"
                hint = "name variables that each match has"
                self.state.notes.fail(f"`{key}` is no key of `CONSUME`: {problem}", consumption.origin, hint)
        keys = None if consumption.keys is None else tuple(dict.fromkeys(consumption.keys))
        return replace(result, pattern=time_patterns.Consumed(result.pattern, keys))

    def _preceded(self, step: Built, absence: q.Absence) -> Built:
        absent = self._absent(absence)
        self._check_pair(step, absent, absence.origin)
        if not isinstance(step.pattern, time_patterns.Step):
            hint = "write it in front of the first step, inside of the braces"
            message = "`NOT ... WITHIN` stands in front of a step, and not of a pattern in braces"
            self.state.notes.fail(message, absence.origin, hint)
            return step
        return replace(step, pattern=time_patterns.Preceded(step.pattern, absent.pattern, absence.within))

    def _absent(self, absence: q.Absence) -> Built:
        """Returns what is absent before or behind a pattern."""
        absent = self._inside(absence.group, None)
        if absent.least >= absence.within:
            length, within = duration(absent.least), duration(absence.within)
            message = f"this is always absent: it takes {length} at least, and has to lie within {within}"
            self.state.notes.fail(message, absence.origin, "a longer `WITHIN` behind the braces of `NOT`")
        return absent

    def _sequence(self, before: Built, previous: Built, following: Built, link: q.Link) -> Built:
        self._check_pair(before, following, link.origin)
        parts = []
        for part in link.between:
            inner = self._inside(part.group, None)
            self._check_pair(before, inner, part.origin)
            self._check_pair(following, inner, part.origin)
            parts.append(time_patterns.Part(inner.pattern, part.wanted))
        if link.selection == "STRICT":
            anything = self._anything((*previous.steps, *following.steps))
            parts.append(time_patterns.Part(time_patterns.Step(anything), False))
        gap = max(1, link.to.after or 0)
        if link.to.before is not None and link.to.before < gap:
            message = f"`AFTER {duration(gap)}` and `BEFORE {duration(link.to.before)}` contradict each other"
            self.state.notes.fail(message, link.origin, "a step comes after the least time, and before the greatest")
        pattern = time_patterns.Seq(
            before.pattern,
            following.pattern,
            _SELECTIONS[link.selection],
            gap,
            link.to.before,
            None if link.to.when is None else self._condition(link.to.when, before, following, link.origin),
            tuple(parts),
            link.origin,
        )
        return before.joined(following, pattern, before.least + gap + following.least)

    def _condition(self, when: q.Expression, left: Built, right: Built, origin: Origin | None) -> Call:
        """Returns the condition of a WHEN, over the variables of this and earlier steps."""
        return self._tested(when, left.variables | right.variables, "WHEN", origin)

    def _tested(self, test: q.Expression, names: Iterable[Variable], word: str, origin: Origin | None) -> Call:
        """Returns the condition behind a word, over these variables."""
        body = self._body_of(names)
        self.groups.check_bound(test, origin, body)
        condition = self.groups.expressions.condition(test, body)
        self._check_predicates(body.predicates, word, origin)
        return condition

    def _anything(self, steps: Iterable[System]) -> System:
        """Returns a step that occurs whenever a stream of other steps brings something."""
        sources = dict.fromkeys(
            source for step in steps for source in _sources(step, self.state) if self._is_stream(source)
        )
        subject, predicate, object, graph = (self.state.fresh(f"any {slot}") for slot in ("s", "p", "o", "g"))
        plain = tuple(source for source in sources if not isinstance(source, Graphs))
        named = tuple(source for source in sources if isinstance(source, Graphs))
        triple = Pattern(subject, predicate, object, exact=True)
        in_graph = AtomPattern(GRAPH, (graph, subject, predicate, object), exact=True)
        nothing = (Select(()),)
        parts = [
            System(sources=read, joinables=(pattern,), distinct=True, consequences=nothing)
            for read, pattern in ((plain, triple), (named, in_graph))
            if read
        ]
        joinable = parts[0] if len(parts) == 1 else Union(tuple(parts))
        return System(sources=self.reads.sources, joinables=(joinable,))

    # Steps, and patterns in braces

    def _occurrence(self, occurrence: q.Occurrence) -> Built:
        if occurrence.iteration is None:
            return self._inside(occurrence.group, occurrence.name)
        built = self._iterated(self._inside(occurrence.group, None), occurrence.iteration)
        return self._named(self._conditioned(built, (), occurrence.origin, occurrence.name), occurrence.name)

    def _inside(self, group: q.Group, name: q.StepName | None) -> Built:
        """Returns the pattern of a group: a step, or the pattern over time in it with its filters and binds."""
        built = self._composite(group, name) if q.is_composite(group) else self._step(group, name)
        return self._named(built, name)

    def _named(self, built: Built, name: q.StepName | None) -> Built:
        """Returns a pattern whose times have this name."""
        if name is None:
            return built
        self._check_names(built.names, (name,))
        times = {time_patterns.start_of(name.variable), time_patterns.end_of(name.variable)}
        return replace(built, bound=built.bound | times, names=(*built.names, name))

    # Iterations

    def _iterated(self, inner: Built, iteration: q.Iteration) -> Built:
        """Returns the runs of a pattern."""
        shown = frozenset(name for name in inner.variables if " " not in name.name and not name.name.startswith("_:"))
        keys = tuple(sorted(shown, key=str)) if iteration.keys is None else tuple(dict.fromkeys(iteration.keys))
        self._check_keys(keys, inner, iteration)
        previous = map(previous_of, shown)
        condition = None
        if iteration.condition is not None:
            condition = self._tested(iteration.condition, {*shown, *previous}, "WHILE", iteration.origin)
        names = set(shown)
        measures = []
        for measure in iteration.measures:
            if measure.variable in names:
                hint = "give the measure a name of its own"
                self.state.notes.fail(f"`{measure.variable}` has a value already", measure.origin, hint)
            names.add(measure.variable)
            measures.append(self._measure(measure, shown))
        pattern = time_patterns.Iterated(
            inner.pattern,
            iteration.least,
            iteration.most,
            keys,
            condition,
            iteration.is_consecutive,
            tuple(measures),
            iteration.origin,
        )
        return Built(
            pattern,
            frozenset(keys),
            frozenset(measure.variable for measure in measures),
            steps=inner.steps,
            least=iteration.least * (inner.least + 1) - 1,
        )

    def _check_keys(self, keys: Iterable[Variable], inner: Built, iteration: q.Iteration) -> None:
        for key in keys:
            if key not in inner.variables:
                hint = "name variables of what is in the braces"
                self.state.notes.fail(f"`{key}` is no key of the run: nothing binds it", iteration.origin, hint)
            elif key in inner.unbound:
                message = f"`{key}` is a key of the run, and may be unbound"
                hint = f"filter the step by `BOUND({key})`, or name other keys: `{iteration.quantifier} BY ?key`"
                self.state.notes.fail(message, iteration.origin, hint)

    def _measure(self, measure: q.Measure, names: Iterable[Variable]) -> Measure:
        aggregate, body = measure.aggregate, self._body_of(names)
        if aggregate.kind not in MEASURES or aggregate.distinct:
            kind = f"{aggregate.kind}(DISTINCT ...)" if aggregate.distinct else aggregate.kind
            hint = f"measures are {', '.join(MEASURES)}, without `DISTINCT`"
            self.state.notes.fail(f"`{kind}` is no measure of a run", aggregate.origin, hint)
            return Measure(measure.variable, "COUNT")
        if aggregate.expression is None:
            return Measure(measure.variable, "COUNT")
        self.groups.check_bound(aggregate.expression, aggregate.origin, body)
        value = self.groups.expressions.value(aggregate.expression, body)
        self._check_predicates(body.predicates, "MEASURES", aggregate.origin)
        return Measure(measure.variable, aggregate.kind, value)

    # Steps

    def _step(self, group: q.Group, name: q.StepName | None) -> Built:
        body = self.groups.body(group, self.reads)
        system = body.system(origin=group.origin)
        if not any(self._is_stream(source) for source in _sources(system, self.state)):
            hint = "a step needs a pattern of a stream; what always holds can stand beside the pattern over time"
            self.state.notes.fail("this step reads no stream, so that it has no time", group.origin, hint)
        bound = time_patterns.bound_in(system) | frozenset(_required(group.elements))
        names = frozenset(visible(system))
        step = time_patterns.Step(system, None if name is None else name.variable, group.origin)
        return Built(step, names & bound, names - bound, steps=(system,))

    def _is_stream(self, source: Source) -> bool:
        """Returns whether a source reads streams, and not only what always holds."""
        is_document = isinstance(source, Graph) and not source.within and source.iri in self.state.documents
        return not is_document and any(not window.is_empty for window in source.all_windows)

    def _composite(self, group: q.Group, name: q.StepName | None) -> Built:
        element, conditions = divided(group)
        return self._conditioned(self._element(element), conditions, group.origin, name)

    def _conditioned(
        self,
        built: Built,
        conditions: Iterable[q.Element],
        origin: Origin | None,
        name: q.StepName | None,
        further: Iterable[Variable] = (),
    ) -> Built:
        """Returns a pattern with the filters and binds of its group, and a name.

        Args:
            built: The pattern.
            conditions: The other elements of its group.
            origin: The place of the group.
            name: The name, or None.
            further: What the conditions may use besides, though the pattern does not bind it.
        """
        body = self._body_of({*built.variables, *further, time_patterns.OWN_START, time_patterns.OWN_END})
        filters = []
        for element in conditions:
            match element:
                case q.Filter():
                    filters.append(element)
                case q.Bind(expression=expression, variable=variable):
                    self.groups.check_bound(expression, element.origin, body)
                    body.add(self.groups.bind(variable, expression, body))
                case _:
                    message = "beside a pattern over time that is a part of another one, only FILTER and BIND may stand"
                    self.state.notes.fail(message, element.origin, _BRACES)
        for filter in filters:
            self.groups.check_bound(filter.expression, filter.origin, body)
            self.groups.expressions.filter(filter.expression, body)
        self._check_predicates(body.predicates, "FILTER", origin)
        binds = frozenset(part.variable for part in body.predicates if isinstance(part, Bind))
        required = frozenset(_required(conditions))
        predicates = System(sources=self.reads.sources, predicates=tuple(body.predicates)) if body.predicates else None
        if name is None and predicates is None:
            return built
        return replace(
            built,
            pattern=time_patterns.Within(built.pattern, None, None if name is None else name.variable, predicates),
            bound=built.bound | ((built.unbound | binds) & required),
            unbound=(built.unbound | binds) - required,
        )

    def _element(self, element: q.Element) -> Built:
        if isinstance(element, q.TimePattern):
            return self._pattern(element)
        assert isinstance(element, q.Group)
        return self._composite(element, None)

    def _body_of(self, names: Iterable[Variable]) -> Body:
        """Returns a body whose solutions have these variables, for the expressions of a pattern."""
        return Body(self.reads, [System(consequences=(Select(tuple(sorted(names, key=str))),))])

    # Checks

    def _check_predicates(self, predicates: Iterable[Predicate], word: str, origin: Origin | None) -> None:
        """Records an error for an EXISTS where the pattern has no instant at which it could be evaluated."""
        for predicate in predicates:
            if isinstance(predicate, Exists):
                message = f"`EXISTS` cannot be in the {word} of a part of a pattern over time"
                self.state.notes.fail(message, predicate.origin or origin, _BRACES)

    def _check_pair(self, left: Built, right: Built, origin: Origin | None, *, may_share_names: bool = False) -> None:
        """Records an error for each variable of both patterns that may be unbound in one, and each name of both.

        The chains of a conjunction may share names: then it is of those that have the same occurrences.
        """
        if not may_share_names:
            self._check_names(left.names, right.names)
        for name in sorted((left.unbound & right.variables) | (left.variables & right.unbound), key=str):
            hint = f"filter the step by `BOUND({name})`, or give the variables different names"
            message = f"`{name}` joins two steps, and may be unbound in one of them"
            if time_patterns.is_time(name):
                step = name.name.rpartition(" ")[2]
                message = f"the name `?{step}` joins two patterns, and one of them may occur without it"
                hint = "name a step of each branch of the `OR`, or give the steps different names"
            elif " " in name.name:
                continue
            self.state.notes.fail(message, origin, hint)

    def _check_names(self, names: Iterable[q.StepName], others: Iterable[q.StepName]) -> None:
        for name in others:
            if name in names:
                message = f"two steps have the name `{name}`"
                self.state.notes.fail(message, name.origin, "give each step a name of its own")


_SELECTIONS: dict[str, Selection] = {
    "": "nearest", "NEAREST": "nearest", "STRICT": "nearest", "EACH": "each", "LAST": "last",
}  # fmt: skip


def divided(group: q.Group) -> tuple[q.Element, tuple[q.Element, ...]]:
    """Returns the first element of a group that is over time, and all others."""
    pattern = next(filter(q.is_over_time, group.elements))
    return pattern, tuple(element for element in group.elements if element is not pattern)


def _sources(step: System, state: State) -> Iterator[Source]:
    """Yields the sources that the patterns of a step read, also those of the relations of its property paths."""
    visited = set[Term]()
    pending = [step]
    while pending:
        for part in walk(pending.pop()):
            if not isinstance(part, System):
                continue
            for pattern in part.joinables:
                if isinstance(pattern, AtomPattern) and pattern.relation in state.relations:
                    if pattern.relation not in visited:
                        visited.add(pattern.relation)
                        pending += state.relations[pattern.relation]
                elif isinstance(pattern, Pattern | AtomPattern):
                    yield from part.sources


_STRICT = (q.OPERATORS - {"||", "&&"}) | (FUNCTIONS.keys() - {"COALESCE", "IF", "BNODE", "CONCAT"})
"""The functions that have no value where an argument has none; and `BOUND`, which is false then."""


def _required(elements: Iterable[q.Element]) -> Iterator[Variable]:
    """Yields the variables without which no solution passes the filters of a group with these elements."""
    for element in elements:
        if isinstance(element, q.Filter):
            for conjunct in conjuncts(element.expression):
                yield from _needed(conjunct)


def _needed(expression: q.Expression) -> Iterator[Variable]:
    match expression:
        case Variable():
            yield expression
        case q.Call(function=function, arguments=arguments) if function in _STRICT:
            for argument in arguments:
                yield from _needed(argument)


# Where patterns over time may stand


def check(statement: q.Statement, state: State) -> None:
    """Records the errors of a statement that has a pattern over time, and the names of its steps in the state."""
    patterns = q.time_patterns(statement.body)
    if not patterns or isinstance(statement.body, q.Operation):
        return
    query = statement.body
    notes = state.notes
    is_of_events = isinstance(patterns[0], q.EventPattern)
    state.steps.update({name.name: name for name in q.step_names(query)})
    state.documents = {iri_text(clause.graph) for clause in query.dataset if isinstance(clause, q.From | q.FromNamed)}
    for clause in query.dataset:
        if isinstance(clause, q.FromStream) and clause.range is not None:
            bound = f"`{EXAMPLE_OF_BOUND}`" if is_of_events else "`WITHIN`"
            hint = (
                f"leave the window out: `FROM STREAM {clause.stream}`; {bound} bounds the length of a pattern, "
                "and facts of several instants are several steps: `{ { ... } AND { ... } }`"
            )
            notes.fail("a step reads what arrives at an instant, and no window", clause.origin, hint)
    if statement.registration is not None:
        _check_registration(statement.registration, state)
    for word, origin in _misplaced(query):
        hint = "write it into the group of the query, and what belongs to it into the braces of its steps"
        notes.fail(f"a pattern over time cannot be in {word}", origin, hint)
    where = query.where or q.Group()
    for element in [*_in_group(where)][1:]:
        notes.fail("a group has one pattern over time", element.origin, "combine the two by `AND`")
    _check_timestamps(query, state, is_of_events)
    _check_variables(query, state)


def _check_registration(registration: q.Registration, state: State) -> None:
    if registration.period is not None:
        hint = "leave `COMPUTED EVERY` out"
        state.notes.fail("a pattern over time is output at the instant at which it ends", registration.origin, hint)
    if registration.kind in ("DSTREAM", "CHANGES"):
        hint = f"leave `{registration.kind}` out: each match is output once, when it ends"
        state.notes.fail("a match never ceases to hold", registration.origin, hint)


def _in_group(group: q.Group) -> Iterator[q.TimePattern]:
    """Yields the patterns over time of a group, and of the groups in it."""
    for element in group.elements:
        if isinstance(element, q.TimePattern):
            yield element
            for inner in element.groups():
                yield from [*_in_group(inner)][1:]
        elif isinstance(element, q.Group):
            yield from _in_group(element)


def _misplaced(query: q.Query) -> Iterator[tuple[str, Origin | None]]:
    """Yields for each pattern over time at a place where it cannot stand the word of the place, and its origin."""
    if query.where is not None:
        yield from _misplaced_in(query.where)
    outside = replace(query, where=q.Group())
    yield from (("`EXISTS`", pattern.origin) for pattern in q.time_patterns(outside))


def _misplaced_in(group: q.Group) -> Iterator[tuple[str, Origin | None]]:
    for element in group.elements:
        match element:
            case q.TimePattern():
                for inner in element.groups():
                    yield from _misplaced_in(inner)
                for step in (step for conjunct in element.chains for step in conjunct.chain.occurrences):
                    expressions = (step.when, step.iteration)
                    yield from (("`EXISTS`", pattern.origin) for pattern in q.time_patterns(expressions))
            case q.Group():
                yield from _misplaced_in(element)
            case _:
                for pattern in q.time_patterns(element)[:1]:
                    yield _PLACES[type(element)], pattern.origin


_PLACES: dict[type, str] = {
    q.Optional: "`OPTIONAL`", q.Minus: "`MINUS`", q.Graph: "`GRAPH`", q.Union: "`UNION`", q.SubSelect: "a sub-query",
    q.Filter: "`EXISTS`", q.Bind: "`EXISTS`", q.Service: "`SERVICE`",
}  # fmt: skip


def _check_timestamps(query: q.Query, state: State, is_of_events: bool) -> None:
    for origin in q.timestamp_places(query):
        hint = "write `start(?e)` or `end(?e)`, of a step or event with a name"
        hint = "write `getSTARTTIME()` or `getENDTIME()`" if is_of_events else hint
        state.notes.fail("`timestamp` is not supported beside a pattern over time", origin, hint)


def _check_variables(query: q.Query, state: State) -> None:
    """Records an error for each name of a step that is used as a variable."""
    outside = replace(query, items=()) if isinstance(query, q.SelectQuery) else query
    variables = q.mentioned(outside)
    items = (query.items or ()) if isinstance(query, q.SelectQuery) else ()
    for name in (name for name in state.steps.values() if not name.is_variable):
        origins = [item.origin for item in items if name.variable in q.mentioned(item)]
        if name.variable in variables:
            origins.append(name.origin)
        for origin in origins[:1]:
            hint = f"its times are `start({name})` and `end({name})`; what it binds are the variables in its braces"
            state.notes.fail(f"`{name}` is the name of a step, which has no value", origin, hint)
