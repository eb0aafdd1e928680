"""Functions over compound terms (`squall.rdf.compounds`), for the rules of any language."""

from __future__ import annotations

from squall.errors import BuilderError
from squall.functions import Builtin, Function
from squall.functions.values import is_value, same
from squall.rdf import Term, Triple, iri_text, is_literal, parts
from squall.rdf.compounds import (
    ARGUMENTS,
    BUILD,
    CHARACTERS_PER_LEVEL,
    CLASH,
    DECOMPOSE,
    IS_RDF,
    JOIN,
    LIMIT,
    LIST,
    MAX_NESTING_DEPTH,
    MEMBERS,
    MEMBERS_PER_LEVEL,
    NO_SCHEMA,
    REDUCED,
    REPLACED,
    SAME_NAMES,
    SPLIT,
    UNKNOWN,
    VIOLATED,
    compound,
    depth,
    is_compound,
    parse_compound,
)
from squall.rdf.vocabulary import LIST_CELLS, is_schema_triple
from squall.wording import shortened

Maybe = Term | None
Rows = list[tuple[Term, ...]]


def _build(name: Term, *arguments: Maybe) -> Maybe:
    """Returns None if an argument is unbound."""
    bound = [argument for argument in arguments if argument is not None]
    return compound(name, bound) if len(bound) == len(arguments) else None


def _join(tail: Maybe, *members: Maybe) -> Maybe:
    """Returns the compound of a list, or None if the rest is no list."""
    compound_tail = parse_compound(tail) if tail is not None else None
    return _build(LIST, *members, *compound_tail.arguments) if compound_tail and compound_tail.name == LIST else None


def _take_apart(term: Maybe, name: Term, count: Term) -> Rows:
    parts = parse_compound(term) if term is not None else None
    fits = parts is not None and parts.name == name and len(parts.arguments) == _number(count)
    return [parts.arguments] if parts is not None and fits else []


def _split(term: Maybe, count: Term) -> Rows:
    parts = parse_compound(term) if term is not None else None
    first = _number(count)
    if parts is None or parts.name != LIST or len(parts.arguments) < first:
        return []
    return [(*parts.arguments[:first], compound(LIST, parts.arguments[first:]))]


def _arguments(term: Maybe) -> Rows:
    parts = parse_compound(term) if term is not None else None
    return [(argument,) for argument in dict.fromkeys(parts.arguments)] if parts else []


def _replaced(term: Term, old: Term, new: Term) -> Rows:
    """Yields, for each place of the old term in a compound, the compound with the new term there."""
    parts = parse_compound(term)
    arguments = parts.arguments if parts else ()
    places = [place for place, argument in enumerate(arguments) if argument == old != new]
    return [(compound(parts.name, (*arguments[:index], new, *arguments[index + 1 :])),) for index in places if parts]


def _reduced(term: Term, old: Term, new: Term) -> Rows:
    """Yields the same if the new term is nested no deeper than the old one."""
    return _replaced(term, old, new) if depth(new) <= depth(old) else []


def _members(left: Term, right: Term) -> Rows:
    """Yields the pairs of members in which two lists differ; nothing if one is no list."""
    left_parts, right_parts = parse_compound(left), parse_compound(right)
    if not (left_parts and right_parts and left_parts.name == right_parts.name == LIST):
        return []
    if len(left_parts.arguments) != len(right_parts.arguments):
        raise _inconsistent(left, right)
    pairs = zip(left_parts.arguments, right_parts.arguments, strict=True)
    return [pair for pair in dict.fromkeys(pairs) if pair[0] != pair[1]]


def _is_rdf(subject: Term, predicate: Term, object: Term) -> bool:
    return subject[0] != '"' and predicate[0] == "<" and not is_compound(object)


def _clash(left: Term, right: Term) -> bool:
    """Returns False. Raises BuilderError if the two are different values, which cannot be equal."""
    kinds = [_kind(term) for term in (left, right)]
    if sorted(kinds) == ["list", "value"] or (kinds == ["value", "value"] and not same(left, right)):
        raise _inconsistent(left, right)
    return False


def _kind(term: Term) -> str:
    """Returns the kind of a term: ``list``, ``value`` of a datatype, or ``other``."""
    parts = parse_compound(term)
    if parts is not None:
        return "list" if parts.name == LIST else "other"
    return "value" if is_literal(term) and is_value(term) else "other"


def _violated(rule: Term, who: Term) -> bool:
    """Raises BuilderError, always."""
    hint = "everything follows from that: mend the data, or import them under a profile that says less"
    name = iri_text(rule).rpartition(":")[2]
    raise BuilderError(f"the program is inconsistent: {shortened(who)} violates `{name}`", hint=hint)


def _unknown(who: Term) -> bool:
    """Raises BuilderError, always."""
    hint = "say of which, since rules do not reason by cases; or import the ontology under RDFS, which has no unions"
    raise BuilderError(
        f"{shortened(who)} is in a union of classes (owl:unionOf), and not known to be in one", hint=hint
    )


def _no_schema(rule: Term, subject: Term, predicate: Term, object: Term) -> bool:
    """Returns True. Raises BuilderError if the triple describes classes or properties."""
    if is_schema_triple(Triple(subject, predicate, object)) and predicate not in LIST_CELLS:
        triple = shortened(f"{subject} {predicate} {object}")
        message = f"the rule `{parts(rule).lexical}` derives what the schema says, which is fixed: {triple}"
        raise BuilderError(message, hint=_OF_SCHEMA)
    return True


def _same_names(left: Term, right: Term) -> bool:
    """Raises BuilderError, always."""
    message = (
        f"two names of the schema, which is fixed, are equal by the data: {shortened(left)} and {shortened(right)}"
    )
    raise BuilderError(message, hint=_OF_SCHEMA)


_OF_SCHEMA = "say so in the schema (`--schema`), or leave out `--specialise`"


def _inconsistent(left: Term, right: Term) -> BuilderError:
    hint = "everything follows from that: mend the data, or the rules that conclude equations"
    return BuilderError(
        f"the program is inconsistent: {shortened(left)} and {shortened(right)} come to be equal", hint=hint
    )


def _limit(rule: Term, term: Maybe, most: Maybe = None) -> Maybe:
    deepest = MAX_NESTING_DEPTH if most is None else _number(most)
    if term is None:
        return None
    if len(term) > CHARACTERS_PER_LEVEL * deepest:
        raise _endless(rule, f"makes a term of more than {CHARACTERS_PER_LEVEL * deepest} characters", term)
    if depth(term) > deepest:
        raise _endless(rule, f"nests terms more than {deepest} levels deep", term)
    parts = parse_compound(term)
    if parts and len(parts.arguments) > MEMBERS_PER_LEVEL * deepest:
        raise _endless(rule, f"makes a list of more than {MEMBERS_PER_LEVEL * deepest} members", term)
    return term


def _endless(rule: Term, does: str, term: Term) -> BuilderError:
    hint = "it may go on for ever; if it does not, allow more with `--max-depth`"
    return BuilderError(f"the rule `{parts(rule).lexical}` {does}: {shortened(term)}", hint=hint)


def _number(term: Term) -> int:
    return int(parts(term).lexical)


FUNCTIONS: tuple[Function | Builtin, ...] = (
    Function(BUILD, _build, 1, None, doc="the compound term of a name and arguments"),
    Function(JOIN, _join, 1, None, doc="the list of some members and those of another list, which is given first"),
    Function(DECOMPOSE, _take_apart, 3, 3, doc="the arguments of a compound of this name and number, as a row"),
    Function(SPLIT, _split, 2, 2, doc="so many first members of a list and the list of the others, as a row"),
    Function(ARGUMENTS, _arguments, 1, 1, doc="the arguments of a compound, each once, as rows"),
    Function(
        REPLACED, _replaced, 3, 3, doc="the compound with one of its arguments replaced, for each such place a row"
    ),
    Function(REDUCED, _reduced, 3, 3, doc="the same, where the new term is nested no deeper than the one it replaces"),
    Function(MEMBERS, _members, 2, 2, doc="the members in which two lists differ, in pairs, as rows"),
    Function(IS_RDF, _is_rdf, 3, 3, truth=True, doc="whether three terms are an RDF triple, and none is compound"),
    Function(CLASH, _clash, 2, 2, truth=True, doc="false; an error, where the two are values that cannot be equal"),
    Function(VIOLATED, _violated, 2, 2, truth=True, doc="an error: a rule is violated by something"),
    Function(
        NO_SCHEMA, _no_schema, 4, 4, truth=True, pure=False, doc="true; an error, where a rule derives schema triples"
    ),
    Function(SAME_NAMES, _same_names, 2, 2, truth=True, pure=False, doc="an error: two names of a schema are equal"),
    Function(UNKNOWN, _unknown, 1, 1, truth=True, doc="an error: it is not known in which class of a union it is"),
    Function(
        LIMIT,
        _limit,
        2,
        3,
        doc="the term, if it is not nested too deep, nor too long a list: else an error that names the rule",
    ),
)
"""The functions of the entry point `compounds` of the group ``squall.functions``."""
