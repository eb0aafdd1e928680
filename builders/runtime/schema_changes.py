"""What sources say that is fixed before the run, of classes and properties or of the terms that are the same: an error,
or dead letters.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from operator import itemgetter
from typing import NamedTuple

from squall.builders.runtime.zset import Boxes
from squall.errors import SourceError
from squall.model import Source
from squall.model.fixed_schema import FixedSchema
from squall.plan import Plan
from squall.plan.operators import Scan
from squall.rdf import DEFAULT_STREAM, Columns, Event, Triple
from squall.rdf.cliques import SAME_AS, Cliques
from squall.rdf.vocabulary import TYPE

CAUSE = "schema"
"""The cause of dead letters."""
_SECOND = itemgetter(1)


class SchemaChange(NamedTuple):
    """A triple that would change what is fixed before a run.

    Attributes:
        event: Its event.
        triple: The triple.
        fixed: What it would change: a schema, or the cliques of owl:sameAs.
    """

    event: Event
    triple: Triple
    fixed: FixedSchema | Cliques

    @property
    def error(self) -> SourceError:
        """The error, where such triples are no dead letters."""
        event = self.event
        stream = f"the stream `{event.stream}`" if event.stream else DEFAULT_STREAM
        origin = "static data say" if event.is_static else f"{stream} says at {event.time}"
        if isinstance(self.fixed, FixedSchema):
            message = f"{origin} what the schema does not: {self.triple}"
            remedy = (
                "give it as a part of the schema (`--schema`), let a rule set read it (`--rules`, not `--specialise`)"
            )
        elif self.fixed.may_change:
            message = f"{origin} of two terms what cannot be the same: {self.triple}"
            remedy = "literals, terms of RDF, RDFS and OWL, and terms that programs name are never the same as others"
            return SourceError(message, hint=f"{remedy}; dead letters keep such triples, if there is a file for them")
        else:
            way = "with provenance" if self.fixed.keeps_terms else "by representative"
            message = f"{origin} what is fixed under owl:sameAs {way}: {self.triple}"
            remedy = "give it before the run (`--schema`), treat owl:sameAs by axioms (`--same-as axioms`)"
        return SourceError(
            message, hint=f"{remedy}, or put such triples among the dead letters (`--schema-changes dead-letters`)"
        )

    @property
    def texts(self) -> tuple[str, str]:
        """The reason and the text of the dead letter."""
        time = "-infinity" if self.event.is_static else self.event.time
        of_schema = isinstance(self.fixed, FixedSchema)
        if isinstance(self.fixed, Cliques) and self.fixed.may_change:
            return "literals, vocabulary and terms that programs name are not the same", f"{time} {self.triple}"
        name = "the schema" if of_schema else "what is the same by owl:sameAs"
        return f"{name}, which is fixed, does not have it", f"{time} {self.triple}"


def describe_schema(boxes: Boxes, schema: FixedSchema) -> bool:
    """Returns whether some triples, by predicate, are a part of schemas."""
    types = map(_SECOND, boxes.get(TYPE, ()))
    return not (schema.describing_predicates.isdisjoint(boxes) and schema.classes.isdisjoint(types))


def refuse_schema_change(schema: FixedSchema | None, source: Source, events: Iterable[Event]) -> None:
    """Raises SourceError if an event that a source reads would change the schema that is compiled into the plan."""
    if schema is None:
        return
    for event in events:
        triple = next(schema.changes(chain(event.facts, event.removed)), None)
        if triple is not None and source.is_affected_by(event):
            raise SchemaChange(event, triple, schema).error


def refuse_other_cliques(source: Source, events: Iterable[Event]) -> None:
    """Raises SourceError if an event that a source reads would change the cliques of the source."""
    cliques = source.cliques
    if cliques is None or (isinstance(events, Columns) and SAME_AS not in events.predicates):
        return
    for event in events:
        triple = next(cliques.changes(chain(event.facts, event.removed)), None)
        if triple is not None and source.is_affected_by(event):
            raise SchemaChange(event, triple, cliques).error


class SchemaGuard:
    """Takes triples that would change what is fixed before the run out of events, where they are to be dead letters.

    Args:
        plan: The plan. Of one in which nothing is fixed, nothing is taken out.
    """

    def __init__(self, plan: Plan) -> None:
        self._fixed = [
            (node.op.source, fixed)
            for node in plan.nodes if isinstance(node.op, Scan)
            for fixed in (node.op.fixed_schema, node.op.source.cliques)
            if fixed is not None and fixed.drops_changes
        ]  # fmt: skip

    @property
    def is_needed(self) -> bool:
        """Whether the plan has something that is fixed, and is not to be changed."""
        return bool(self._fixed)

    def without_changes(self, events: Sequence[Event]) -> tuple[Sequence[Event], Sequence[SchemaChange]]:
        """Returns events without the triples that would change what is fixed, and these.

        An event of which nothing is left remains: its time has come.
        """
        if not self.is_needed or (isinstance(events, Columns) and not self._describe(events)):
            return events, ()
        changes: list[SchemaChange] = []
        remaining: list[Event] = []
        for event in events:
            dropped = {change.triple: change for change in self._changes(event)}
            if dropped:
                changes += dropped.values()
                facts, removed = (
                    tuple(fact for fact in part if fact not in dropped) for part in (event.facts, event.removed)
                )
                event = event._replace(facts=facts, removed=removed)
            remaining.append(event)
        return (remaining, changes) if changes else (events, ())

    def _changes(self, event: Event) -> Iterator[SchemaChange]:
        for source, fixed in self._fixed:
            changes = list(fixed.changes(chain(event.facts, event.removed)))
            if changes and source.is_affected_by(event):
                yield from (SchemaChange(event, triple, fixed) for triple in changes)

    def _describe(self, columns: Columns) -> bool:
        """Returns whether some triples may be a part of what is fixed."""
        predicates = {*columns.predicates}
        return any(
            SAME_AS in predicates
            if isinstance(fixed, Cliques)
            else not fixed.describing_predicates.isdisjoint(predicates)
            or (TYPE in predicates and not fixed.classes.isdisjoint(columns.objects))
            for _, fixed in self._fixed
        )
