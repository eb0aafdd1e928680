"""Writes systems as RIF documents, as far as RIF-BLD can say what they mean."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from decimal import Decimal

from squall.errors import SquallError, single_errors
from squall.functions.values import DAY_TIME, Duration, duration_literal
from squall.lexers.rif import tree
from squall.model import (
    AtomPattern,
    Bind,
    Call,
    Construct,
    Expression,
    Filter,
    Joinable,
    Pattern,
    Predicate,
    System,
    Variable,
)
from squall.rdf import LANG_STRING, Term, iri_text, is_blank, is_iri, is_literal, parts
from squall.translators.rif import terms
from squall.translators.rif.windows import NAMESPACE
from squall.translators.valid_time import windowed_pattern
from squall.translators.writing import cannot_write, plain_rules, templates

LANGUAGE = terms.LANGUAGE


def written(system: System, translate: Callable[[tree.Document], System]) -> tree.Document:
    """Returns a system as a RIF document, from which a system with the same meaning is read.

    Each rule is translated again. One that comes back otherwise has parts that RIF-BLD does not have.

    Args:
        system: The system.
        translate: The translator of RIF.

    Raises:
        UsageError: A rule cannot be written.
    """
    return tree.Document(group=tree.Group(tuple(_checked_sentences(system, translate))))


def _checked_sentences(system: System, translate: Callable[[tree.Document], System]) -> Iterator[tree.Sentence]:
    for rule in plain_rules(system, LANGUAGE):
        sentences = tuple(_sentences(rule))
        try:
            translated = translate(tree.Document(group=tree.Group(sentences)))
        except SquallError as error:
            message = single_errors(error)[0].message
            raise cannot_write(rule, f"what RIF refuses: {message}", LANGUAGE) from error
        if _meaning((rule,)) != _meaning(translated.subsystems):
            raise cannot_write(rule, "a meaning that RIF would give otherwise", LANGUAGE)
        yield from sentences


def _meaning(rules: tuple[System, ...]) -> set[Hashable]:
    """Returns what distinguishes rules: for each fact that one derives the body, and whether it is a relation that is
    no part of the answer."""
    return {
        (
            frozenset(windowed_pattern(part) or part for part in rule.joinables),
            frozenset(rule.predicates),
            fact,
            internal and isinstance(fact, AtomPattern),
        )
        for rule in rules
        for fact, internal in _facts(rule)
    }


def _facts(rule: System) -> Iterator[tuple[Pattern | AtomPattern, bool]]:
    for consequence in rule.consequences:
        if isinstance(consequence, Construct):
            yield from ((fact, consequence.internal) for fact in consequence.template)


def _sentences(rule: System) -> Iterator[tree.Sentence]:
    """Yields a rule as a sentence, and an axiom as a sentence for each fact."""
    meta = tree.Meta(tree.Const(rule.name, tree.LOCAL))
    facts = tuple(_atomic(rule, fact) for fact in templates(rule, LANGUAGE))
    formulas = (
        *(_joined(rule, joinable) for joinable in rule.joinables),
        *(_condition(rule, predicate) for predicate in rule.predicates),
    )
    if not formulas:
        yield from (_with_meta(fact, meta) for fact in facts)
        return
    conclusion = facts[0] if len(facts) == 1 else tree.And(facts)
    implication = tree.Implies(conclusion, formulas[0] if len(formulas) == 1 else tree.And(formulas))
    variables = tuple(dict.fromkeys(part for part in tree.parts(implication) if isinstance(part, tree.Var)))
    if variables:
        yield tree.Forall(variables, implication, meta=meta)
    else:
        yield tree.Implies(implication.conclusion, implication.condition, meta=meta)


def _with_meta(fact: tree.Atom | tree.Frame, meta: tree.Meta) -> tree.Atom | tree.Frame:
    if isinstance(fact, tree.Atom):
        return tree.Atom(fact.op, fact.arguments, meta=meta)
    return tree.Frame(fact.object, fact.slots, meta=meta)


def _joined(rule: System, joinable: Joinable) -> tree.Formula:
    """Returns a pattern of the body, which may have a window or times."""
    part = windowed_pattern(joinable)
    if part is None:
        return _atomic(rule, joinable)
    match _atomic(rule, part.pattern):
        case tree.Frame(object=about, slots=((attribute, value),)):
            content: tuple[tree.Term, ...] = (about, attribute, value)
        case tree.Atom(op=op, arguments=arguments):
            content = (tree.Expr(op, arguments),)
        case other:
            raise cannot_write(rule, f"`{other}` in a window", LANGUAGE)
    lengths = [part.length, part.step] if part.step else [part.length]
    times = [tree.Var(name.name) for name in part.names]
    arguments = (*content, *times, *(map(_duration, lengths) if part.mode in ("in", "always", "at") else ()))
    return tree.External(tree.Atom(tree.Const(f"{NAMESPACE}{part.mode}", tree.IRI), arguments))


def _duration(milliseconds: int) -> tree.Const:
    lexical, datatype, _ = parts(duration_literal(Duration(0, Decimal(milliseconds) / 1000), DAY_TIME))
    return tree.Const(lexical, datatype)


def _atomic(rule: System, part: object) -> tree.Atom | tree.Frame:
    """Returns a pattern or a template as a frame (of triples) or an atom (of other relations)."""
    match part:
        case Pattern(exact=False):
            subject, predicate, object = (_term(rule, slot) for slot in part.slots)
            return tree.Frame(subject, ((predicate, object),))
        case AtomPattern(relation=relation, arguments=arguments, exact=False):
            return tree.Atom(_constant(rule, relation), tuple(_term(rule, argument) for argument in arguments))
        case Pattern() | AtomPattern():
            raise cannot_write(rule, "a pattern that reads literals by term and not by value", LANGUAGE)
        case _:
            raise cannot_write(rule, f"`{type(part).__name__}`", LANGUAGE)


def _condition(rule: System, predicate: Predicate) -> tree.Formula:
    match predicate:
        case Filter(expression=Call(function=function, arguments=arguments)):
            operands = tuple(_term(rule, argument) for argument in arguments)
            return tree.External(tree.Atom(tree.Const(function, tree.IRI), operands))
        case Bind(variable=variable, expression=expression, keep_unbound=False):
            return tree.Equal(tree.Var(variable.name), _term(rule, expression))
        case _:
            raise cannot_write(rule, f"`{type(predicate).__name__}`", LANGUAGE)


def _term(rule: System, slot: Expression) -> tree.Term:
    match slot:
        case Variable(name=name):
            return tree.Var(name)
        case Call(function=function, arguments=arguments):
            operands = tuple(_term(rule, argument) for argument in arguments)
            return tree.External(tree.Expr(tree.Const(function, tree.IRI), operands))
        case _:
            return _constant(rule, slot)


def _constant(rule: System, term: Term) -> tree.Const:
    if is_iri(term):
        return tree.Const(iri_text(term), tree.IRI)
    if is_blank(term) or not is_literal(term):
        raise cannot_write(rule, f"`{term}` as a term", LANGUAGE)
    lexical, datatype, language = parts(term)
    return tree.text_constant(lexical, language) if datatype == LANG_STRING else tree.Const(lexical, datatype)
