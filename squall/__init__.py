"""Squall: rules and continuous queries over streams of RDF.

    system = squall.compile("family.jena")             # text to Translated Production System
    plan = squall.plan(system, planner="rete")         # to Planned Production System
    for out in squall.run(plan, events):               # out.fact, out.time, out.rule
        ...

Importing this module loads no engine and no grammar.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast, overload

from squall import plugins
from squall.compiling import read_program, combine
from squall.contracts import Builder, Job, Lexer, Options, Output, Planner, R
from squall.errors import SquallError, UsageError, raise_all
from squall.model import System, with_windows
from squall.model.windows import LANDMARK, Window, as_window
from squall.plan import Plan
from squall.plan.validation import check
from squall.process.gc_tuning import no_collection
from squall.rdf import ALWAYS, FOREVER, Atom, Columns, Event, Fact, Term, Triple

if TYPE_CHECKING:
    from squall.plan.cardinality import Statistics

__all__ = [
    "ALWAYS", "FOREVER", "Atom", "Event", "Fact", "Job", "Options", "Output", "Plan", "SquallError", "System", "Term",
    "Triple", "build", "compile", "parse", "plan", "run",
]  # fmt: skip

__version__ = "0.1.0"


def parse(program: str | Path, lexer: str | None = None) -> tuple[str, object]:
    """The name of the language of a program, and the program's tree. Arguments and errors as for `compile`."""
    text, name, language = read_program(program, lexer)
    lex = cast(Lexer, plugins.load("squall.lexers", language))
    return language, lex(text, name)


@no_collection()
def compile(
    *programs: str | Path,
    lexer: str | None = None,
    rules: Sequence[str] = (),
    window: str | Window = LANDMARK,
    windows: Mapping[str, str | Window] | None = None,
    removals: bool = False,
    documents: Mapping[str, str] | None = None,
    profile: str = "default",
) -> System:
    """The Translated Production System of one or more programs, each a path or (with `lexer`) a text.

    The language is told by the file's extension unless `lexer` names it. Several programs make one system in which
    each reads what the others derive.

    rules: names of rule sets (`squall.rulesets`) whose conclusions the programs read; what follows from them alone is
    part of the answer only where no program is given. window: through which streams are read whose window no program
    names: a window, or a text such as ``RANGE 10s`` (`squall.model.windows.parse_window`); windows: the same for each stream of its
    own, by IRI. removals: whether streams may carry removals (`Event.removed`). documents: the files of programs that
    programs import, by their IRIs. Documents of data that a program names are loaded by
    `squall.streams.sources.documents.load`. profile: by whose definition rules with negation can be put in order, if
    `squall.model.profiles.apply_profile` makes the system one of that engine.

    Raises UsageError (no such file, rule set or window, unknown extension), LexerError, TranslatorError, or Errors with
    all of a program's errors.
    """
    from squall.model.profiles import by_name
    from squall.model.stratification import stratify

    if not programs and not rules:
        raise UsageError("no program is given")
    errors: list[SquallError] = []
    system = combine([read_program(program, lexer) for program in programs], rules, errors, documents)
    raise_all(errors)
    stratify(system if profile == "default" else by_name(profile).system(system))
    each = {stream: as_window(one) for stream, one in (windows or {}).items()}
    return with_windows(system, as_window(window), each, removals)


@no_collection()
def plan(system: System, planner: str | Planner = "rete", statistics: Statistics | str | Path | None = None) -> Plan:
    """The Planned Production System, checked. `planner` is a name or a planner itself.

    statistics: what data the plan is for (`squall.plan.cardinality.Statistics.of`), or the file that holds them. Raises
    PlannerError, and UsageError if the planner has no use for statistics or the file does not hold any.
    """
    found = plugins.load("squall.planners", planner) if isinstance(planner, str) else planner
    make = cast(Callable[..., Plan], found)
    if statistics is None:
        return check(make(system))
    if "statistics" not in signature(make).parameters:
        raise UsageError(f"the planner `{planner}` has no use for statistics", hint="the planner `rete` has")
    return check(make(system, statistics=_loaded(statistics)))


def _loaded(statistics: Statistics | str | Path) -> Statistics:
    from squall.plan.cardinality import Statistics

    return statistics if isinstance(statistics, Statistics) else Statistics.load(statistics)


@no_collection()
def build(plan: Plan, builder: str | Builder = "iterator", options: Options | None = None) -> Job:
    """The plan made ready to run. `builder` is a name or a builder itself. Raises BuilderError."""
    from squall.plan.nesting_limit import limit_nesting
    from squall.rdf.compounds import MAX_NESTING_DEPTH

    make = cast(Builder, plugins.load("squall.builders", builder)) if isinstance(builder, str) else builder
    told = options or Options()
    return make(plan if told.max_depth == MAX_NESTING_DEPTH else limit_nesting(plan, told.max_depth), told)


@overload
def run(
    plan: Plan,
    events: Iterable[Event],
    builder: str | Builder = ...,
    static: Iterable[Event] = ...,
    options: Options | None = ...,
) -> Iterator[Output[Any]]: ...


@overload
def run(
    plan: Plan,
    events: Iterable[Event],
    builder: str | Builder = ...,
    static: Iterable[Event] = ...,
    options: Options | None = ...,
    *,
    of: type[R],
) -> Iterator[Output[R]]: ...


def run(
    plan: Plan,
    events: Iterable[Event],
    builder: str | Builder = "iterator",
    static: Iterable[Event] = (),
    options: Options | None = None,
    *,
    of: type[Any] | None = None,
) -> Iterator[Output[Any]]:
    """Runs a plan over events and yields its outputs in the order of time.

    Args:
        plan: The plan, from `plan`.
        events: Events in non-decreasing time. A list, a tuple or `squall.rdf.Columns` is one batch; of any other
            iterable each event is processed as it arrives.
        builder: The name of a builder, or a builder itself.
        static: Events whose facts always hold; they are read first.
        options: Options of the run.
        of: The type that each output must carry, such as `Triple` or `Solution`. It types the outputs.

    Raises:
        BuilderError: The builder cannot run the plan.
        UsageError: An output carries something else than `of`.
    """
    batches: Iterable[Sequence[Event]]
    batches = [events] if isinstance(events, list | tuple | Columns) else ([event] for event in events)
    outputs = build(plan, builder, options).run(batches, static)
    return outputs if of is None else _only(outputs, of)


def _only(outputs: Iterable[Output[Any]], of: type[R]) -> Iterator[Output[R]]:
    for output in outputs:
        if not isinstance(output.fact, of):
            kind = type(output.fact).__name__
            hint = "leave `of` out, or run that rule or query by itself"
            raise UsageError(f"`{output.rule}` gives a {kind}, and `of` is {of.__name__}", hint=hint)
        yield output
