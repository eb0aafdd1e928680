"""The translator of LARS programs: each rule is a system, whose windows are operators on the validity of its patterns.

docs/languages/lars.md has the meaning. An atom of two arguments is a triple, one of one argument the type of something;
any other stays an atom.
"""

from __future__ import annotations

from pathlib import PurePath

from squall.errors import SquallError, raise_all
from squall.lexers.lars import tree
from squall.model import System
from squall.translators.lars.rules import RuleTranslator, pattern_of
from squall.translators.lars.times import Times


def translator(program: tree.Program) -> System:
    """Translates a program to a system with one subsystem for each rule: ``rule1``, ``rule2``.

    Raises:
        TranslatorError: A rule has no meaning, such as one with an unsafe variable.
        Errors: There are several errors.
    """
    errors: list[SquallError] = []
    times = Times(program.tick)
    heads = [pattern_of(rule.head) for rule in program.rules]
    rules = [
        RuleTranslator(f"rule{number}", rule, times, heads, errors).system()
        for number, rule in enumerate(program.rules, 1)
    ]
    raise_all(errors)
    return System(name=PurePath(program.name).stem, subsystems=tuple(rules))
