"""The answers of a program: which of its rules are told together, and how."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from squall.model.consequences import Construct, Insert
from squall.model.systems import CLOSE, Report, System


@dataclass(frozen=True, eq=False)
class OutputSpec:
    """How the answer of some rules is told: what they derive as a set of facts, what they select as a bag of solutions.
    Told apart by identity.

    name: that of all of these rules (a query); ``""``: each fact is told under the name of a rule that makes it.
    output, report, stream: see `System`.
    """

    rules: tuple[System, ...]
    output: str = "istream"
    report: Report = CLOSE
    stream: str = ""
    name: str = ""

    @property
    def has_facts(self) -> bool:
        """Whether rules of it make facts that are part of the answer."""
        return any(map(_makes_facts, self.rules))


def output_specs(system: System) -> tuple[OutputSpec, ...]:
    """The answers of a program, each with its rules: its own, then those of the systems in it that say how they are
    told or are streams, in the order of the program."""
    return tuple(_output_specs(system, OutputSpec(())))


def _output_specs(system: System, around: OutputSpec, nested: bool = False) -> Iterator[OutputSpec]:
    own = tuple(_own_rules(system))
    names = {rule.name for rule in own if _makes_facts(rule)}
    name = names.pop() if nested and len(names) == 1 else ""
    found = OutputSpec(own, system.output or around.output, system.report or around.report, system.stream, name)
    yield found
    for inner in _told_inside(system):
        yield from _output_specs(inner, found, True)


def _makes_facts(rule: System) -> bool:
    made = (one for one in rule.consequences if isinstance(one, Construct | Insert))
    return any(isinstance(one, Insert) or not one.internal for one in made)


def is_told(system: System) -> bool:
    """Whether a system in another one has an answer of its own."""
    return bool(system.output or system.report or system.stream)


def _own_rules(system: System) -> Iterator[System]:
    if system.consequences:
        yield system
    for subsystem in system.subsystems:
        if not is_told(subsystem):
            yield from _own_rules(subsystem)


def _told_inside(system: System) -> Iterator[System]:
    for subsystem in system.subsystems:
        if is_told(subsystem):
            yield subsystem
        else:
            yield from _told_inside(subsystem)


def made_streams(system: System) -> tuple[str, ...]:
    """The IRIs (without brackets) of the streams that a program makes, each once, in its order."""
    return tuple(dict.fromkeys(telling.stream for telling in output_specs(system) if telling.stream))
