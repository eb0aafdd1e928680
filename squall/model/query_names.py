"""Names of queries: each query of a run has a name of its own, which its solutions and evaluations carry."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import count

from squall.errors import SquallError, TranslatorError
from squall.model.outputs import has_own_output
from squall.model.systems import System


def with_unique_names(programs: Sequence[System], errors: list[SquallError]) -> list[System]:
    """Returns the systems of programs with another name for each query whose name a query or rule has already.

    Only names that a translator gave are changed (`System.is_named`): ``alarms`` becomes ``alarms-2``. Queries that are
    registered as the same stream may have its name: they derive it together.

    Args:
        programs: The systems of programs, each with its queries and rules as subsystems.
        errors: A list to which an error is added for each query that is registered under the name of another query or
            of a rule.
    """
    systems = [system for program in programs for system in program.subsystems]
    names = dict.fromkeys((system.name for system in systems if not has_own_output(system)), "rule")
    for query in filter(has_own_output, systems):
        if query.is_named and names.get(query.name, "") not in ("", query.stream):
            other = "a rule" if names[query.name] == "rule" else "another query"
            message = f"the query has the same name as {other}: `{query.name}`"
            errors.append(TranslatorError(message, query.origin, "rename one of them: the outputs carry that name"))
        elif query.is_named:
            names[query.name] = query.stream or "query"
    names_in_use = set(names)
    return [replace(program, subsystems=tuple(_named_apart(program.subsystems, names_in_use))) for program in programs]


def _named_apart(systems: Iterable[System], names_in_use: set[str]) -> Iterator[System]:
    """Yields the systems, and notes the names of the queries among them."""
    for system in systems:
        if not has_own_output(system) or system.is_named:
            yield system
            continue
        name = next(name for name in _candidates(system.name) if name not in names_in_use)
        names_in_use.add(name)
        yield system if name == system.name else _renamed(system, system.name, name)


def _candidates(name: str) -> Iterator[str]:
    yield name
    yield from (f"{name}-{number}" for number in count(2))


def _renamed(system: System, old: str, new: str) -> System:
    return replace(
        system,
        name=new if system.name == old else system.name,
        stream=new if system.stream == old else system.stream,
        subsystems=tuple(_renamed(subsystem, old, new) for subsystem in system.subsystems),
    )
