"""A linter with a sense for streams: what is wrong with a program, and what its author hardly meant.

A check is a function of the entry-point group ``squall.checks``: it takes a `Program` and gives `Finding`s
(docs/check.md). It looks at systems, so that all languages share it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path

from squall import plugins, rulesets
from squall.checking.findings import ERROR, INFO, SEVERITIES, WARNING, Finding, arranged, told
from squall.checking.program import Check, Program
from squall.compiling import read_program, combine
from squall.errors import SquallError, UsageError
from squall.model import with_windows, warnings
from squall.model.profiles import by_name
from squall.model.stratification import stratify
from squall.model.windows import LANDMARK, Window, as_window
from squall.plan.cardinality import Statistics
from squall.planners.rete import identities
from squall.process.gc_tuning import no_collection
from squall.streams.sources.documents import check_streams

__all__ = ["ERROR", "INFO", "SEVERITIES", "WARNING", "Check", "Finding", "Program", "checks", "lint"]


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
    documents: Mapping[str, str] | None = None,
    profile: str = "default",
) -> tuple[Finding, ...]:
    """What is to be said of one or more programs that run together, in the order of their texts; nothing is run.

    programs, lexer, rules, window, windows, documents, profile: as for `squall.compile`; nothing is said of rule sets.
    streams: the IRIs of the streams that will bring events,
    static: of those with data that always hold (``""`` is the default one); None: nobody knows. graphs: whether
    these may bring named graphs. statistics: counts of the data, as for `squall.plan`.

    A program that is refused has errors, all of them, and nothing else is said of it. Raises UsageError as
    `squall.compile` does.
    """
    if not programs:
        raise UsageError("no program is given")
    texts = tuple(read_program(program, lexer) for program in programs)
    names = [text.name for text in texts]
    errors: list[SquallError] = []
    system = combine(texts, rules, errors, documents)
    if errors:
        return arranged((finding for error in errors for finding in told(error)), names)
    each = {stream: as_window(one) for stream, one in (windows or {}).items()}
    program = Program(
        with_windows(system, as_window(window), each),
        texts,
        given=None if streams is None else frozenset((*streams, *static)),
        growing=None if streams is None else frozenset(streams),
        graphs=graphs,
        statistics=Statistics.load(statistics) if isinstance(statistics, str | Path) else statistics,
        windows=(as_window(window), *each.values()),
    )
    sets = {str(rulesets.path(name)) for name in rules}
    found = (one for one in _found(program) if one.origin is None or one.origin.name not in sets)
    return arranged(_refused(program, profile) or found, names)


def checks() -> dict[str, Check]:
    """All checks that are installed, by the names of their entry points."""
    return {name: plugins.load(plugins.CHECKS, name) for name in plugins.names(plugins.CHECKS)}


def _refused(program: Program, profile: str = "default") -> list[Finding]:
    """Why a program that could be translated is refused nevertheless."""
    ordered = by_name(profile).system(program.system)
    refusing: tuple[tuple[str, Callable[[], object]], ...] = (
        ("not-stratified", lambda: stratify(ordered)),
        ("not-given", lambda: None if program.given is None else check_streams(program.system, program.given)),
        ("", lambda: identities(program.system)),
    )
    found: list[Finding] = []
    for code, refuse in refusing:
        try:
            refuse()
        except SquallError as error:
            found += told(error, code)
    return found


def _found(program: Program) -> Iterator[Finding]:
    for warning in warnings(program.system):
        yield from told(warning)
    for check in checks().values():
        yield from check(program)
