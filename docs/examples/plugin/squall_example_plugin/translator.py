"""Arrows: the tree to what it means."""

from __future__ import annotations

from squall.errors import TranslatorError, did_you_mean, raise_all
from squall.model import Construct, Pattern, Slot, System, Variable
from squall.rdf import RDF, iri
from squall_example_plugin.lexer import Atom, Program, Rule, Word

NAMESPACE = "http://example.org/"
"""What names stand in."""


def translator(program: Program) -> System:
    """Returns the system of a program with a rule per line. Raises TranslatorError, or Errors if there are several."""
    raise_all([error for rule in program.rules for error in _unbound(rule)])
    return System(subsystems=tuple(map(_rule, program.rules)))


def _unbound(rule: Rule) -> list[TranslatorError]:
    """Returns an error for each variable of the head that the body does not have."""
    bound = {word for atom in rule.body for word in atom.arguments}
    return [
        TranslatorError(
            f"`{word}` is in the head only",
            word.origin,
            did_you_mean(word.text, [candidate.text for candidate in bound]),
        )
        for atom in rule.head
        for word in atom.arguments
        if _is_variable(word) and word not in bound
    ]


def _rule(rule: Rule) -> System:
    return System(
        name=f"line{rule.origin.line}",
        joinables=tuple(map(_pattern, rule.body)),
        consequences=(Construct(tuple(map(_pattern, rule.head))),),
        origin=rule.origin,
    )


def _pattern(atom: Atom) -> Pattern:
    name = iri(NAMESPACE + atom.name.text)
    if len(atom.arguments) == 1:
        return Pattern(_slot(atom.arguments[0]), iri(RDF + "type"), name, atom.name.origin)
    subject, value = map(_slot, atom.arguments)
    return Pattern(subject, name, value, atom.name.origin)


def _slot(word: Word) -> Slot:
    return Variable(word.text) if _is_variable(word) else iri(NAMESPACE + word.text)


def _is_variable(word: Word) -> bool:
    return word.text[0].isupper()
