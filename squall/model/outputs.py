"""Output specifications: which rules of a program share an answer, and how that answer is output."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from squall.model.consequences import Construct, Insert
from squall.model.reports import CLOSE, Report
from squall.model.systems import System


@dataclass(frozen=True, eq=False)
class OutputSpec:
    """How the answer of some rules is output: their facts as a set, their solutions as a bag. It is compared by
    identity.

    Attributes:
        rules: The rules.
        output: The R2S operator; see `System`. A derived stream has no deletions: it inherits `changes` as `istream`.
        report: The report policy; see `System`.
        stream: The derived stream of the answer, or ``""``.
        name: The name under which all facts are output (a query). ``""``: each fact has the name of a rule that derives
            it.
        internal: Only the program reads the stream; see `System`.
    """

    rules: tuple[System, ...]
    output: str = "istream"
    report: Report = CLOSE
    stream: str = ""
    name: str = ""
    internal: bool = False

    @property
    def has_facts(self) -> bool:
        """Whether some rule derives facts that are part of the answer."""
        return any(map(_makes_facts, self.rules))


def output_specs(system: System) -> tuple[OutputSpec, ...]:
    """Returns the output specifications of a program, each with its rules.

    The program's own comes first. Then come those of the systems in it that have an output of their own or are streams,
    in the order of the program.
    """
    return tuple(_output_specs(system, OutputSpec(())))


def _output_specs(system: System, enclosing: OutputSpec, nested: bool = False) -> Iterator[OutputSpec]:
    own = tuple(_own_rules(system))
    names = {rule.name for rule in own if _makes_facts(rule)}
    name = names.pop() if nested and len(names) == 1 else ""
    inherited = "istream" if system.stream and enclosing.output == "changes" else enclosing.output
    spec = OutputSpec(
        own,
        system.output or inherited,
        system.report or enclosing.report,
        system.stream,
        name,
        system.internal,
    )
    yield spec
    for inner in _with_own_output(system):
        yield from _output_specs(inner, spec, True)


def _makes_facts(rule: System) -> bool:
    fact_consequences = (
        consequence for consequence in rule.consequences if isinstance(consequence, Construct | Insert)
    )
    return any(isinstance(consequence, Insert) or not consequence.internal for consequence in fact_consequences)


def has_own_output(system: System) -> bool:
    """Returns whether a system inside of another one has an answer of its own."""
    return bool(system.output or system.report or system.stream)


def _own_rules(system: System) -> Iterator[System]:
    if system.consequences:
        yield system
    for subsystem in system.subsystems:
        if not has_own_output(subsystem):
            yield from _own_rules(subsystem)


def _with_own_output(system: System) -> Iterator[System]:
    for subsystem in system.subsystems:
        if has_own_output(subsystem):
            yield subsystem
        else:
            yield from _with_own_output(subsystem)


def derived_streams(system: System) -> tuple[str, ...]:
    """Returns the IRIs (without brackets) of the streams that a program derives, each once, in the order of the
    program.
    """
    return tuple(dict.fromkeys(spec.stream for spec in output_specs(system) if spec.stream))
