"""The translator of Jena rules. Every rule runs forward, whichever way its arrow points."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from hashlib import blake2b
from pathlib import PurePath

from squall.errors import TranslatorWarning, UsageError, raise_all
from squall.lexers.jena import Program, Rule, RuleSetSubstitution, StreamSource
from squall.model import Construct, Delete, Insert, Pattern, Source, System
from squall.model.systems import Stream
from squall.model.windowing import over_streams
from squall.model.windows import parse_window
from squall.translators.common import Scope
from squall.translators.jena import lists
from squall.translators.jena.bodies import Body, Notes
from squall.translators.jena.guards import without_guards
from squall.translators.jena.heads import Head, removals
from squall.translators.jena.terms import rename_apart
from squall.translators.jena.writing import written


def translator(program: Program) -> System:
    """Translates Jena rules to a system with one or several subsystems for each rule, each read by all.

    A rule without a name is named by its position: ``rule1``, ``rule2``. A rule in the head of another one has its own
    name or that of the other.

    Raises:
        TranslatorError: The program cannot be translated.
        Errors: There are several errors. All of a program's errors are raised at once.
    """
    notes = Notes()
    notes.warnings += map(_substitution_warning, program.substitutions)
    rules: list[System] = []
    for place, source_rule in enumerate(program.rules, 1):
        rule, guard_warnings = without_guards(source_rule)
        notes.warnings += guard_warnings
        name = rule.name or f"rule{place}"
        body = Body(Scope(partial(_key, rule), name), notes, rule.sources)
        rules += (_with_sources(system, rule.sources, notes) for system in _systems(rule, body))
    raise_all(notes.errors)
    split_rules = [part for rule in rules for part in notes.hidden.split(rule)]
    if any(map(_removes, split_rules)):
        split_rules = [_as_initial_facts(rule) for rule in split_rules]
    list_rules = [
        _with_sources(rule, sources, notes)
        for relation, sources in notes.list_relations.items()
        for rule in lists.rules(relation)
    ]
    streams = (Stream(source.iri, source.origin) for rule in program.rules for source in rule.sources)
    name = PurePath(program.name).stem
    return System(
        name=name,
        subsystems=(*split_rules, *notes.hidden.answer_rules(), *list_rules),
        streams=tuple(dict.fromkeys(streams)),
        warnings=tuple(notes.warnings),
    )


translator.written = written  # type: ignore[attr-defined]


def _with_sources(system: System, sources: Sequence[StreamSource], notes: Notes) -> System:
    """Returns a rule that reads some streams, if there are any."""
    streams = list[Source]()
    for source in sources:
        try:
            streams.append(Source(source.iri, parse_window(source.window)))
        except UsageError as error:
            notes.fail(error.message, source.origin, error.hint)
    return over_streams(system, streams) if streams else system


def _substitution_warning(substitution: RuleSetSubstitution) -> TranslatorWarning:
    message = (
        f"for `{substitution.name}` squall's rule set `{substitution.replacement}` is read, "
        "which does not conclude just the same"
    )
    hint = "to have Jena's own rules, include their file: `@include <owl-fb-mini.rules>`"
    return TranslatorWarning(message, substitution.origin, hint)


def _systems(rule: Rule, body: Body) -> Iterator[System]:
    """Yields the systems of a rule whose body continues this one, and of the rules in its head."""
    body.add(rule.body, removals(rule))
    bound, demanded = body.scope.bound[:], body.call_variables
    yield from Head(rule, body.scope.rule, body).systems()
    nested = [clause for clause in rule.head if isinstance(clause, Rule)]
    for place, inner in enumerate(nested, 1):
        if not inner.backward:
            hint = "write it `head <- body`"
            body.notes.fail("a rule in the head of a rule has to chain backward", inner.origin, hint)
            continue
        scope = Scope(partial(_nested_key, body.scope, place), inner.name or body.scope.rule, bound[:])
        yield from _systems(rename_apart(inner, bound, demanded, body.fresh), body.continued(scope))


def _removes(rule: System) -> bool:
    return any(isinstance(consequence, Delete) for consequence in rule.consequences)


def _as_initial_facts(rule: System) -> System:
    """Returns an axiom as an insertion, for a program that removes facts: its facts can be removed, too."""
    if rule.joinables or rule.predicates:
        return rule
    facts = tuple(
        _as_insert(consequence) if isinstance(consequence, Construct) else consequence
        for consequence in rule.consequences
    )
    return replace(rule, consequences=facts)


def _as_insert(construct: Construct) -> Construct | Insert:
    triples = tuple(fact for fact in construct.template if isinstance(fact, Pattern))
    return construct if construct.internal else Insert(triples)


def _key(rule: Rule) -> str:
    """Returns a digest of the rule with its streams, but without its name, the direction of its arrow and the names of
    its variables."""
    sources = map(str, rule.sources)
    text = " ".join((*sources, str(replace(rule.canonical, name=None, backward=False))))
    return blake2b(text.encode(), digest_size=16).hexdigest()


def _nested_key(outer: Scope, place: int) -> str:
    return f"{outer.key()} {place}"
