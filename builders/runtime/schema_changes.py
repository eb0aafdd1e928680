"""What sources say that is fixed before the run: of classes and properties, an error or dead letters; of the terms that
are the same, an error.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from operator import itemgetter

from squall.builders.runtime.zset import Boxes
from squall.errors import SourceError
from squall.model import Source
from squall.model.fixed_schema import FixedSchema
from squall.plan import Plan
from squall.plan.operators import Scan
from squall.rdf import DEFAULT_STREAM, Columns, Event, Triple
from squall.rdf.cliques import SAME_AS
from squall.rdf.vocabulary import TYPE

CAUSE = "schema"
"""The cause of dead letters."""
_SECOND = itemgetter(1)

SchemaChange = tuple[Event, Triple]
"""A triple that would change the schema, and its event."""


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
            raise schema_change_error(event, triple)


def refuse_other_cliques(source: Source, events: Iterable[Event]) -> None:
    """Raises SourceError if an event that a source reads would change the cliques of the source."""
    cliques = source.cliques
    if cliques is None or (isinstance(events, Columns) and SAME_AS not in events.predicates):
        return
    for event in events:
        triple = next(cliques.changes(chain(event.facts, event.removed)), None)
        if triple is not None and source.is_affected_by(event):
            origin = "static data say" if event.is_static else f"{_named_stream(event)} says at {event.time}"
            way = "with provenance" if cliques.keeps_terms else "by representative"
            message = f"{origin} what is fixed under owl:sameAs {way}: {triple}"
            hint = "give it before the run (`--schema`), or treat owl:sameAs by axioms (`--same-as axioms`)"
            raise SourceError(message, hint=hint)


def _named_stream(event: Event) -> str:
    return f"the stream `{event.stream}`" if event.stream else DEFAULT_STREAM


def schema_change_error(event: Event, triple: Triple) -> SourceError:
    """Returns the error for a triple that would change the schema."""
    origin = "static data say" if event.is_static else f"{_named_stream(event)} says at {event.time}"
    return SourceError(
        f"{origin} what the schema of the entailment does not: {triple}",
        hint="give it as a part of the schema (`--schema`), let a rule set read it (`--rules`, not `--specialise`), or "
        "put such triples among the dead letters (`--schema-changes dead-letters`)",
    )


def change_texts(event: Event, triple: Triple) -> tuple[str, str]:
    """Returns the reason and the text of the dead letter of a triple that would change the schema."""
    time = "-infinity" if event.is_static else event.time
    return "the schema of the entailment, which is fixed, does not have it", f"{time} {triple}"


class SchemaGuard:
    """Takes triples that would change a fixed schema out of events, where they are to be dead letters.

    Args:
        plan: The plan. Of one without such a schema nothing is taken out.
    """

    def __init__(self, plan: Plan) -> None:
        scans = (node.op for node in plan.nodes if isinstance(node.op, Scan))
        self._schemas = [
            (scan.source, scan.fixed_schema)
            for scan in scans
            if scan.fixed_schema is not None and scan.fixed_schema.drops_changes
        ]

    @property
    def is_needed(self) -> bool:
        """Whether the plan has such a schema."""
        return bool(self._schemas)

    def without_changes(self, events: Sequence[Event]) -> tuple[Sequence[Event], Sequence[SchemaChange]]:
        """Returns events without the triples that would change the schema, and these.

        An event of which nothing is left remains: its time has come.
        """
        if not self._schemas or (isinstance(events, Columns) and not self._describe(events)):
            return events, ()
        changes: list[SchemaChange] = []
        remaining: list[Event] = []
        for event in events:
            dropped = dict.fromkeys(self._changes(event))
            if dropped:
                changes += ((event, triple) for triple in dropped)
                facts, removed = (
                    tuple(fact for fact in part if fact not in dropped) for part in (event.facts, event.removed)
                )
                event = event._replace(facts=facts, removed=removed)
            remaining.append(event)
        return (remaining, changes) if changes else (events, ())

    def _changes(self, event: Event) -> Iterator[Triple]:
        for source, schema in self._schemas:
            changes = list(schema.changes(chain(event.facts, event.removed)))
            if changes and source.is_affected_by(event):
                yield from changes

    def _describe(self, columns: Columns) -> bool:
        """Returns whether some triples may be a part of schemas."""
        predicates = {*columns.predicates}
        return any(
            not schema.describing_predicates.isdisjoint(predicates)
            or (TYPE in predicates and not schema.classes.isdisjoint(columns.objects))
            for _, schema in self._schemas
        )
