"""Compilation: reads programs by path or by text and translates them to systems, gathering all errors."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from squall import plugins
from squall.errors import Origin, SquallError, TranslatorError, UsageError, raise_all, single_errors
from squall.model import Construct, Source, System
from squall.model import rules as rules_of
from squall.model.query_names import with_unique_names
from squall.model.systems import Stream
from squall.model.timers import timer_errors
from squall.model.windowing import over_streams, reads_all_streams
from squall.model.windows import parse_window
from squall.plugins import PluginWarning
from squall.rdf import Triple
from squall.rdf.vocabulary import is_schema_triple
from squall.reasoning.names import Names, misspelt_names, names_in, names_of
from squall.reasoning.pragma import pragmas_of
from squall.reasoning.rule_set_streams import unseen_conclusions
from squall.reasoning.same_as_mode import AXIOMS, mode_of

if TYPE_CHECKING:
    from squall.reasoning.specialise import Report


class Program(NamedTuple):
    """A program.

    Attributes:
        text: Its text.
        name: A name for the text, such as its path.
        language: The name of its language.
        streams: The only streams that it reads, if its address names one (`with_streams`).
    """

    text: str
    name: str
    language: str
    streams: tuple[Source, ...] = ()


def combine(
    programs: Sequence[Program],
    rules: Sequence[str],
    errors: list[SquallError],
    documents: Mapping[str, str] | None = None,
    profile: str = "default",
    prefixes: Mapping[str, str] | None = None,
    lenient: bool = False,
    schema: Callable[[System], Iterable[Triple]] | None = None,
    same_as: str | None = None,
) -> System:
    """Returns one system of several programs and rule sets, in which each reads what the rules of all derive.

    The rule sets, and programs that are background knowledge (ontologies), are part of the answer only if there is no
    other program. Those that read all streams are marked as such (`System.is_background`), so that there is an instance
    of them for each data set that the others read (`squall.model.entailment`).

    Args:
        programs: The programs.
        rules: The rule sets (`rule_set`).
        errors: A list to which errors are added; see `translate_program`.
        documents: See `translate_program`.
        profile: See `translate_program`.
        prefixes: See `translate_program`. Rule sets do not use them.
        lenient: See `translate_program`.
        schema: Returns the schema for the system of all, by which the rule sets are specialised
            (`squall.reasoning.specialise`). None: they read the schema while they run.
        same_as: How programs that do not say it treat owl:sameAs (`squall.reasoning.same_as_mode`). By axioms there is
            one more rule set.

    Raises:
        UsageError: There is no rule set of a name, or one that cannot be specialised; or programs treat owl:sameAs in
            different ways.
    """
    # In one piece: the steps from programs to a system, in order; most conditions are whether there are errors.
    own_systems = [translate_program(program, errors, documents, profile, prefixes, lenient) for program in programs]
    mode = "none" if errors else mode_of(own_systems, same_as)
    if mode != "none" and schema is not None:
        message = "rule sets that are specialised by a schema do not go with another way to treat owl:sameAs"
        raise UsageError(message, hint=f"leave out `--specialise`, or `--same-as {mode}`")
    systems = rule_set_systems((*rules, AXIOMS) if mode == "axioms" else rules, errors, bool(programs))
    are_ontologies = [system.is_background for system in own_systems]
    has_others = not all(are_ontologies)
    own_systems = [
        _background(system, program, has_others) if system.is_background else system
        for program, system in zip(programs, own_systems, strict=True)
    ]
    own_systems = _checked_streams(own_systems, are_ontologies, systems)
    ontology_names = names_of(system for system in own_systems if system.is_background)
    own_systems = _checked_names(own_systems, ontology_names, "ontology")
    own_systems = list(with_unique_names(own_systems, errors))
    if schema is not None and not errors:
        from squall.reasoning.specialise import specialised

        triples = tuple(schema(System(subsystems=(*systems, *own_systems))))
        own_systems = _checked_names(own_systems, names_in(filter(is_schema_triple, triples)), "schema")
        result = specialised(systems, triples, own_systems)
        parts = (*result.systems, *own_systems)
        return System(subsystems=parts, fixed_schema=result.schema, warnings=result.warnings)
    systems += own_systems
    return systems[0] if len(systems) == 1 else System(subsystems=tuple(systems))


def specialised_rules(
    ontologies: Sequence[str],
    rules: Sequence[str],
    programs: Sequence[str] = (),
    prefixes: Mapping[str, str] | None = None,
    lenient: bool = False,
) -> tuple[System, Report]:
    """Returns the rules that rule sets become with ontologies, as a program, and what became of each rule.

    Blank nodes of the ontologies are IRIs in them (`squall.reasoning.specialise.with_names_for_blanks`).

    Args:
        ontologies: The addresses of data that describe classes and properties.
        rules: The rule sets (`rule_set`).
        programs: The paths of programs. If there are any, rules are left out whose conclusions none of them reads.
        prefixes: See `translate_program`.
        lenient: See `translate_program`.

    Raises:
        SquallError: A file or a program is wrong, or a rule set cannot be specialised.
    """
    from squall.model.slicing import slice_rules
    from squall.reasoning import schema_reader
    from squall.reasoning.specialise import specialised, with_names_for_blanks

    errors: list[SquallError] = []
    sets = rule_set_systems(rules, errors, has_programs=False)
    readers = [translate_program(read_program(path), errors, None, "default", prefixes, lenient) for path in programs]
    raise_all(errors)
    schema = schema_reader(ontologies, rules)(System())
    result = specialised(sets, schema, readers, has_guards=False)
    systems = slice_rules(result.systems, readers) if readers else result.systems
    return with_names_for_blanks(System(subsystems=tuple(systems))), result.report


def rule_set_systems(rules: Sequence[str], errors: list[SquallError], has_programs: bool) -> list[System]:
    """Returns the systems of rule sets (`rule_set`).

    Args:
        rules: The rule sets.
        errors: A list to which errors are added; see `translate_program`.
        has_programs: Whether programs read them: then nothing that they derive is part of the answer.

    Raises:
        UsageError: There is no rule set of a name.
    """
    sets = [rule_set(item) for item in rules]
    systems = [translate_program(item, errors) for item in sets]
    errors += [error for system, item in zip(systems, sets, strict=True) for error in _queries(system, item)]
    return [_background(system, item, has_programs) for system, item in zip(systems, sets, strict=True)]


def _queries(system: System, program: Program) -> Iterator[SquallError]:
    """Yields an error for each member of a rule set that derives no facts for others."""
    for rule in rules_of(system):
        if not rule.reentrant or not all(isinstance(part, Construct) for part in rule.consequences):
            hint = f"give `{program.name}` as a program"
            yield TranslatorError(
                f"`{rule.name}` derives nothing that others read: no rule set has it", rule.origin, hint
            )


def rule_set(address: str) -> Program:
    """Returns the rule set of a name, or of a file that has one, in any language.

    It may be followed by the stream that it reads, as in `with_streams`.

    Raises:
        UsageError: There is no rule set of that name, and no file, or the stream is wrong.
    """
    from squall import rulesets

    name, streams = with_streams(address)
    is_own = os.path.isfile(name) and name not in rulesets.names()
    return read_program(name if is_own else rulesets.path(name))._replace(streams=streams)


def _checked_streams(
    systems: Sequence[System], are_ontologies: Sequence[bool], rule_sets: Iterable[System]
) -> list[System]:
    """Returns programs with a warning if they see nothing of rule sets and ontologies that read one stream.

    Args:
        systems: The programs.
        are_ontologies: For each of them, whether it is an ontology.
        rule_sets: The rule sets.
    """
    ontologies = [system for system, is_ontology in zip(systems, are_ontologies, strict=True) if is_ontology]
    with_stream = [rule_set for rule_set in (*rule_sets, *ontologies) if not rule_set.is_background]
    return [
        system
        if is_ontology or not with_stream
        else replace(system, warnings=(*system.warnings, *unseen_conclusions(system, with_stream)))
        for system, is_ontology in zip(systems, are_ontologies, strict=True)
    ]


def _checked_names(systems: Iterable[System], names: Names, owner: str) -> list[System]:
    """Returns programs with a warning for each name that the ontologies or the schema beside them have almost.

    Args:
        systems: The programs. Ontologies stay as they are.
        names: The names that there are.
        owner: ``schema`` or ``ontology``.
    """
    return [
        system
        if system.is_background
        else replace(system, warnings=(*system.warnings, *misspelt_names(system, names, owner)))
        for system in systems
    ]


def _background(system: System, program: Program, has_others: bool) -> System:
    """Returns the system of a rule set or an ontology, beside other programs or without them.

    A rule without a place (of an ontology in RDF) has that of its text.
    """
    from squall import rulesets

    whole_text = Origin(program.name, program.text, 1, 1)
    prepared = rulesets.prepared(system, has_others)
    placed = tuple(replace(rule, origin=rule.origin or whole_text) for rule in prepared.subsystems)
    return replace(prepared, subsystems=placed, is_background=not program.streams)


def with_streams(address: str) -> tuple[str, tuple[Source, ...]]:
    """Splits the address of a program or a rule set into what is in front of the question mark, and its streams.

    ``NAME?stream=IRI&window=RANGE 10s`` reads that stream only, and what rules derive. Without a window it is that
    which the run gives to the stream.

    Raises:
        UsageError: The address has other options, or a window without a stream.
    """
    from squall.streams.address import parse

    place, mark, _ = address.partition("?")
    if not mark:
        return address, ()
    parsed = parse(address, "program")
    parsed.only("stream", "window")
    if not (stream := parsed.get("stream")):
        raise UsageError(f"`{address}` has a window without a stream", hint="write `?stream=IRI&window=RANGE 10s`")
    return place, (Source(stream, parse_window(parsed.get("window"))),)


def translate_program(
    program: Program,
    errors: list[SquallError],
    documents: Mapping[str, str] | None = None,
    profile: str = "default",
    prefixes: Mapping[str, str] | None = None,
    lenient: bool = False,
) -> System:
    """Returns the system of one program.

    Args:
        program: The program.
        errors: A list to which errors are added: those of the text, and those of what could be read of it nevertheless.
        documents: The files of documents that it imports, by IRI, for translators that take them.
        profile: The name of the profile (`squall.model.profiles`), for translators that take it.
        prefixes: Prefixes from outside, for lexers and translators that take them.
        lenient: Whether what cannot be translated is left out with a warning, for translators that take it.
    """
    parse = parser(program, prefixes)
    translate: Callable[..., System] = plugins.load(plugins.TRANSLATORS, program.language)
    arguments = {"documents": documents or {}, "profile": profile, "prefixes": prefixes or {}, "lenient": lenient}
    keywords = _accepted(translate, arguments)
    try:
        tree = parse()
    except SquallError as error:
        errors += single_errors(error)
        tree = error.partial
    values = pragmas_of(program.text, program.name, errors)
    if tree is None:
        return System()
    try:
        system = translate(tree, **keywords)
        regime, same_as = values.get("entailment", system.entailment), values.get("same-as", system.same_as)
        system = replace(system, entailment=regime, same_as=same_as)
        errors += timer_errors(system)
        return _over_streams(system, program) if program.streams else system
    except SquallError as error:
        errors += single_errors(error)
        return System()


def _over_streams(system: System, program: Program) -> System:
    """Returns the system of a program that reads its streams only.

    Raises:
        UsageError: The program says itself what it reads.
    """
    if not reads_all_streams(system):
        hint = "leave out `?stream=`; queries have `FROM STREAM` or the like, and Jena rules `@source`"
        raise UsageError(f"the program `{program.name}` says itself which streams and graphs it reads", hint=hint)
    streams = tuple(Stream(source.iri) for source in program.streams)
    return replace(over_streams(system, program.streams), streams=(*system.streams, *streams))


def parser(program: Program, prefixes: Mapping[str, str] | None = None) -> Callable[[], Any]:
    """Returns a function that parses a program. It warns of a language that takes no prefixes, if there are any."""
    text, name, language, _ = program
    lex: Callable[..., Any] = plugins.load(plugins.LEXERS, language)
    keywords = _accepted(lex, {"prefixes": prefixes} if prefixes else {})
    if prefixes and not keywords:
        message = f"the language `{language}` takes no prefixes from outside: they do not hold in `{name}`"
        warnings.warn(PluginWarning(message), stacklevel=2)
    return partial(lex, text, name, **keywords)


def _accepted(stage: Callable[..., Any], arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the arguments that a stage has parameters for."""
    parameters = signature(stage).parameters
    return {name: value for name, value in arguments.items() if name in parameters}


def is_file(program: str | Path) -> bool:
    """Returns whether a program is the path of a file, which a stream may follow (`with_streams`)."""
    return os.path.isfile(program) or os.path.isfile(str(program).partition("?")[0])


def read_program(program: str | Path, lexer: str | None = None) -> Program:
    """Reads a program by its path, or (with `lexer`) takes its text.

    A path may be followed by a stream (`with_streams`).

    Raises:
        UsageError: There is no such file, or no language for it.
    """
    if lexer is not None and isinstance(program, str) and not is_file(program):
        return Program(program, "<text>", lexer)
    streams: tuple[Source, ...] = ()
    if not os.path.isfile(program):
        program, streams = with_streams(str(program))
    path = Path(program)
    if not os.path.isfile(path):
        raise UsageError(f"the program `{program}` does not exist", hint="to compile a text, name its `lexer`")
    language = lexer or _language(path)
    try:
        return Program(path.read_text(encoding="utf-8"), str(path), language, streams)
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"the program `{path}` cannot be read: {error}") from error


def _language(path: Path) -> str:
    """Returns the language of a program by its ending. Raises UsageError, for data with the way to give them."""
    try:
        return plugins.by_extension(path)
    except UsageError:
        from squall.streams.formats import of_path

        if of_path(str(path), mapped=True) is None:
            raise
        hint = f"data are a source: `--source {path}`, or `--static {path}` if they always hold"
        raise UsageError(f"`{path}` has data, and no program", hint=hint) from None
