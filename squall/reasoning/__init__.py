"""Reasoning over streams: what is known before the run of schemas and of equal terms, compiled into programs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from squall.errors import ArgumentError, TranslatorWarning, UsageError, did_you_mean
from squall.model import System
from squall.model import rules as rules_of
from squall.rdf import Triple
from squall.reasoning.regimes import NONE, regime_of
from squall.reasoning.same_as_mode import FOLLOW, check_answers, check_following, mode_of
from squall.reasoning.schema import REGIMES, Schema


class Ways(NamedTuple):
    """How patterns reason: what `squall.compile` gets.

    Attributes:
        entailment: The entailment regime of programs that name none.
        same_as: How programs that do not say it treat owl:sameAs.
        answers: What answers have of terms that are the same.
        schema_changes: What becomes of a triple in a source that would change the schema or the cliques of owl:sameAs:
            ``error``, ``dead-letters``, or ``follow``: what it says of owl:sameAs changes how facts are read.
        specialise: Whether rule sets have been specialised by the schema.
    """

    entailment: str = NONE
    same_as: str | None = None
    answers: str = "representatives"
    schema_changes: str = "error"
    specialise: bool = False

    @property
    def drops_changes(self) -> bool:
        """Whether a triple in a source that would change the schema is a dead letter. Otherwise it is an error."""
        return self.schema_changes == "dead-letters"


def with_reasoning(
    system: System, schema: Iterable[str | Path | Triple] | Callable[[System], Iterable[Triple]], ways: Ways
) -> tuple[System, Schema | None]:
    """Returns the system whose patterns read what follows from their sources, and the schema of its entailment regime.

    Args:
        system: The system, with all windows. Its rule sets are the subsystems that are background knowledge.
        schema: See `squall.compile`.
        ways: How its patterns reason.

    Raises:
        UsageError: Options exclude each other, or there is no such value of one.
        SourceError: The schema cannot be read, or says what is impossible.
        TranslatorError: A rule derives what has to be known before the run.
    """
    from squall.model.entailment import with_entailment_by_window

    regime, mode = regime_of(system, ways.entailment), mode_of([system], ways.same_as)
    check_answers(mode, ways.answers)
    check_following(mode, ways.answers, ways.schema_changes)
    if regime == mode == NONE:
        if not ways.specialise:
            check_no_schema(schema)
        return with_guarded_sources(with_entailment_by_window(system), ways.drops_changes), None
    if regime != NONE and mode == "axioms":
        message = "the axioms of owl:sameAs are a rule set: they and an entailment regime exclude each other"
        raise UsageError(message, hint="treat owl:sameAs by representative")
    triples = list(_triples(schema(system) if callable(schema) else schema))
    if mode == "axioms":
        from squall.reasoning.same_as import with_axioms

        return with_entailment_by_window(with_axioms(system, triples)), None
    if mode in ("representative", "provenance"):
        return _by_cliques(system, triples, regime, mode == "provenance", ways)
    closed = read_schema(triples, regime)
    return with_entailment(system, closed, ways.entailment, ways.drops_changes), closed


def _by_cliques(
    system: System, triples: list[Triple], regime: str, has_provenance: bool, ways: Ways
) -> tuple[System, Schema | None]:
    """Returns the system over cliques, under an entailment regime or behind rule sets; and its schema."""
    from squall.model.entailment import with_entailment_by_window
    from squall.reasoning import same_as
    from squall.reasoning.members import with_members
    from squall.reasoning.provenance import all_names, with_provenance

    cliques = same_as.read_cliques(triples, system)
    cliques = cliques.dropping_changes if ways.drops_changes else cliques
    closed = None
    if has_provenance:
        system = with_provenance(system, cliques, as_sets=regime != NONE)
        cliques = cliques.with_terms
    else:
        system = same_as.with_representatives(system, cliques)
    if regime != NONE:
        facts = all_names(triples, cliques) if has_provenance else cliques.facts(triples)
        closed = read_schema((fact for fact in facts if isinstance(fact, Triple)), regime)
        system = with_entailment(system, closed, ways.entailment, ways.drops_changes)
    if ways.schema_changes == FOLLOW:
        if regime == NONE:
            system = with_entailment_by_window(system)
        return same_as.with_links(system, cliques), closed
    system = same_as.with_cliques_as_facts(system, cliques)
    if regime == NONE:
        system = with_entailment_by_window(system)
    if ways.answers == "members":
        system = with_members(system, cliques)
    return same_as.with_cliques(system, cliques), closed


def read_schema(data: Iterable[str | Path | Triple], regime: str) -> Schema:
    """Returns the schema of some data, closed under an entailment regime.

    Args:
        data: Files (addresses of static data), and triples. What they say of individuals is left out.
        regime: The name of the regime, ``rhodf`` or ``rdfs``.

    Raises:
        UsageError: There is no such regime, or it cannot be compiled with this schema.
        SourceError: A file cannot be read.
    """
    if regime not in REGIMES:
        hint = did_you_mean(regime, (NONE, *REGIMES)) or f"there is {', '.join((NONE, *REGIMES))}"
        raise UsageError(f"there is no entailment regime `{regime}`", hint=hint)
    return Schema(_triples(data), regime)


def _triples(data: Iterable[str | Path | Triple]) -> Iterator[Triple]:
    from squall.reasoning.schema_files import schema_in

    for item in data:
        if isinstance(item, Triple):
            yield item
            continue
        if not isinstance(item, str | Path):
            raise ArgumentError(f"`{item!r}` in `schema` is neither a file nor a Triple")
        yield from schema_in(str(item))


def schema_reader(
    schema: Iterable[str | Path | Triple] | Callable[[System], Iterable[Triple]], rules: Sequence[str]
) -> Callable[[System], Iterable[Triple]]:
    """Returns a function that returns the triples by which rule sets are specialised, for a system.

    Raises:
        UsageError: There is no rule set.
    """
    if not rules:
        raise UsageError("there is no rule set to specialise", hint='name one: `rules=["rhodf"]`, or `--rules rhodf`')
    return schema if callable(schema) else lambda _: _triples(schema)


def with_guarded_sources(system: System, drops_changes: bool = False) -> System:
    """Returns a system in which no source that rules read may change the schema, if it has a fixed one.

    Args:
        system: The system, with all windows and instances of its rule sets.
        drops_changes: Whether a triple that would change it is a dead letter. Otherwise it is an error.
    """
    from squall.model.walk import walk

    if system.fixed_schema is None:
        return system
    parts = (part for rule in rules_of(system) for part in walk(rule) if isinstance(part, System))
    sources = dict.fromkeys(source for part in parts for source in part.sources if source.is_plain)
    schema = replace(system.fixed_schema, sources=tuple(sources), drops_changes=drops_changes)
    return replace(system, fixed_schema=schema)


def check_no_schema(schema: object) -> None:
    """Raises UsageError if there is a schema, which no pattern uses. A function that would return one is not called."""
    if not callable(schema) and schema != ():
        hint = 'name it: `entailment="rhodf"`, specialise a rule set: `specialise=True`, or `same_as="representative"`'
        raise UsageError("a schema is given without an entailment regime", hint=hint)


def with_entailment(system: System, schema: Schema, default: str, drops_changes: bool = False) -> System:
    """Returns the system in which patterns have the solutions that they have under entailment (see `patterns`).

    Args:
        system: The system, with all windows.
        schema: The schema, closed under the regime of the system (`regime_of`).
        default: The regime of programs that name none.
        drops_changes: Whether a triple in a source that would change the schema is a dead letter, and no error.

    Raises:
        UsageError: The system has rule sets or ontologies.
        TranslatorError: A rule derives schema triples, or depends on itself through a negation.
    """
    from squall.model.stratification import stratify
    from squall.reasoning import patterns

    if any(part.is_background for part in (system, *system.subsystems)):
        message = "rule sets (and ontologies) and an entailment regime exclude each other"
        raise UsageError(message, hint="leave one of them out")
    entailed = patterns.with_entailment(system, schema, default)
    if entailed.fixed_schema is not None:
        entailed = replace(entailed, fixed_schema=replace(entailed.fixed_schema, drops_changes=drops_changes))
    if not schema.triples:
        hint = "give what is known of classes and properties by `--schema` or `--static` (in Python: `schema=`)"
        warning = TranslatorWarning("the schema has no triples, so that nothing follows by it", None, hint)
        entailed = replace(entailed, warnings=(*entailed.warnings, warning))
    stratify(entailed)
    return entailed
