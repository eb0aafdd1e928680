"""A linter for rules and continuous queries: errors, and what an author hardly meant.

A check is a function of the entry-point group ``squall.checks``. It takes a `Program` and yields `Finding`s
(docs/check.md). Checks look at systems, so that all languages share them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path

from squall import arguments, plugins
from squall.checking.findings import ERROR, INFO, SEVERITIES, WARNING, Finding, Findings, as_findings, sorted_findings
from squall.checking.program import Check, Program
from squall.checking.schema_cycles import cycles
from squall.compiling import combine, read_program, rule_set
from squall.errors import SquallError, UsageError, single_errors
from squall.lexers.prefixes import Prefixes, as_prefixes
from squall.model import System, warnings, with_windows
from squall.model import rules as rules_of
from squall.model.profiles import by_name
from squall.model.stratification import stratify
from squall.model.windows import LANDMARK, Window, as_window
from squall.plan.cardinality import Statistics
from squall.planners.rete import identities
from squall.process.gc_tuning import no_collection
from squall.rdf import Event, Term, Triple
from squall.rdf.vocabulary import TYPE
from squall.reasoning import Ways, schema_reader, with_reasoning
from squall.streams.sources.documents import check_streams

__all__ = ["ERROR", "INFO", "SEVERITIES", "WARNING", "Check", "Finding", "Findings", "Program", "checks", "lint"]


OF_PLAIN_PATTERNS = ("never-fires", "unread")
"""The findings about patterns that read nothing but facts. There are none if patterns also read what is entailed."""


@no_collection()
def lint(
    *programs: str | Path,
    lexer: str | None = None,
    rules: Sequence[str] = (),
    window: str | Window = LANDMARK,
    windows: Mapping[str, str | Window] | None = None,
    streams: Collection[str] | None = None,
    static: Collection[str] = (),
    graphs: bool = True,
    statistics: Statistics | str | Path | None = None,
    sample: Sequence[Event] | None = None,
    documents: Mapping[str, str] | None = None,
    profile: str = "default",
    prefixes: Prefixes = None,
    entailment: str = "none",
    schema: Iterable[str | Path | Triple] | Callable[[System], Iterable[Triple]] = (),
    specialise: bool = False,
    lenient: bool = False,
    same_as: str | None = None,
    same_as_answers: str = "representatives",
    schema_changes: str = "error",
    tuples: Iterable[str] = (),
) -> Findings:
    """Checks one or more programs that run together, without running them.

    Args:
        programs: The programs. They, `lexer`, `rules`, `window`, `windows`, `documents`, `profile`, `prefixes`,
            `entailment`, `schema`, `specialise`, `lenient`, `same_as`, `same_as_answers` and `schema_changes` are those
            of `squall.compile`. Rule sets have no findings, and of ontologies there are only those of `_OF_BACKGROUND`.
        streams: The IRIs of the streams that will bring events. None means unknown.
        static: The IRIs of the streams with static data (``""`` is the default one).
        graphs: Whether these may bring named graphs.
        statistics: Counts of the data, as for `squall.plan`.
        tuples: The addresses of sources and static data whose quintuples become tuples (``valid=data``).
        sample: Events of the data. They are counted if there are no statistics, and show which classes have instances.

    Returns:
        The findings in the order of the texts. A program that is refused has all of its errors and no other finding.

    Raises:
        UsageError: As `squall.compile` does.
    """
    # In one piece: the steps of a check, in order.
    if not programs:
        raise UsageError("no program is given")
    arguments.check_programs(programs)
    arguments.check_prefixes(prefixes)
    texts = tuple(read_program(program, lexer) for program in programs)
    names = [text.name for text in texts]
    errors: list[SquallError] = []
    triples = schema_reader(schema, rules) if specialise else None
    try:
        system = combine(texts, rules, errors, documents, profile, as_prefixes(prefixes), lenient, triples, same_as)
    except UsageError:
        raise
    except SquallError as error:
        errors += single_errors(error)
    if errors:
        return sorted_findings((finding for error in errors for finding in as_findings(error)), names)
    windows_by_stream = {stream: as_window(item) for stream, item in (windows or {}).items()}
    program = Program(
        with_windows(system, as_window(window), windows_by_stream),
        texts,
        given=None if streams is None else frozenset((*streams, *static)),
        growing=None if streams is None else frozenset(streams),
        graphs=graphs,
        statistics=_statistics(statistics, sample),
        classes=None if sample is None else frozenset(_classes(sample)),
        windows=(as_window(window), *windows_by_stream.values()),
        tuples=tuple(tuples),
    )
    background = {rule_set(name).name for name in rules} | _background_names(system)
    try:
        ways = Ways(entailment, same_as, same_as_answers, schema_changes, specialise)
        entailed, closed_schema = with_reasoning(program.system, schema, ways)
    except SquallError as error:
        return sorted_findings(as_findings(error), names)
    findings = chain(cycles(system, closed_schema), _findings(program, entailed))
    ignored = OF_PLAIN_PATTERNS if entailed.fixed_schema or entailed.cliques else ()
    own_findings = (
        item
        for item in findings
        if item.code not in ignored
        and (item.origin is None or item.origin.name not in background or item.code in _OF_BACKGROUND)
    )
    return sorted_findings(_refused(program, profile) or own_findings, names)


_OF_BACKGROUND = ("inconsistent", "translation")
"""The codes of findings that rule sets and ontologies may have."""


def _background_names(system: System) -> set[str]:
    """Returns the names of the texts of rule sets and ontologies."""
    parts = (part for part in (system, *system.subsystems) if part.is_background)
    return {rule.origin.name for part in parts for rule in rules_of(part) if rule.origin is not None}


def _statistics(statistics: Statistics | str | Path | None, sample: Sequence[Event] | None) -> Statistics | None:
    if statistics is None and sample is not None:
        return Statistics.of(sample)
    return Statistics.load(statistics) if isinstance(statistics, str | Path) else statistics


def _classes(sample: Iterable[Event]) -> Iterator[Term]:
    facts = (fact for event in sample for fact in event.facts)
    return (fact.object for fact in facts if isinstance(fact, Triple) and fact.predicate == TYPE)


def checks() -> dict[str, Check]:
    """Returns all installed checks, by the names of their entry points."""
    return plugins.load_all(plugins.CHECKS)


def _refused(program: Program, profile: str = "default") -> list[Finding]:
    """Returns why a program that could be translated is refused nevertheless."""
    system = by_name(profile).system(program.system)
    refusing: tuple[tuple[str, Callable[[], object]], ...] = (
        ("not-stratified", lambda: stratify(system)),
        ("not-given", lambda: None if program.given is None else check_streams(program.system, program.given)),
        ("", lambda: identities(program.system)),
    )
    findings: list[Finding] = []
    for code, refuse in refusing:
        try:
            refuse()
        except SquallError as error:
            findings += as_findings(error, code)
    return findings


def _findings(program: Program, entailed: System) -> Iterator[Finding]:
    """Yields what translators and entailment warn of, and what the checks find."""
    for warning in warnings(entailed):
        yield from as_findings(warning)
    for check in checks().values():
        yield from check(program)
