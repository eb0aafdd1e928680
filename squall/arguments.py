"""Checks of what users pass to the Python API, so that a slip ends in a message and not deep inside."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterable, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from operator import attrgetter, itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from squall.contracts import HasDigests, Interval, Options
from squall.errors import ArgumentError
from squall.model import Report, System
from squall.model.windows import Window
from squall.plan import Plan
from squall.rdf import ALWAYS, FOREVER, Atom, Columns, Event, Triple, time_hint
from squall.streams.mappings.model import Mapping as RecordMapping
from squall.streams.sources.files import Source
from squall.streams.sources.merge import Sources

if TYPE_CHECKING:
    from typing_extensions import TypeIs

SCHEMA_CHANGES = ("error", "dead-letters", "follow")
"""What can be done with a triple in a source that would change the schema of an entailment."""
_TEXT = "a text"
_EVENT_HINT = "write `squall.rdf.Event(1000, (triple,))`, or `squall.rdf.events(facts, time=1000)`"
_TERM_STARTS = set('<_"')


def check_compile(programs: Sequence[Any], arguments: Mapping[str, Any]) -> None:
    """Checks the arguments of `squall.compile`. Raises ArgumentError."""
    check_programs(programs)
    _check(arguments["lexer"], str | None, "`lexer`", "the name of a language", "languages: `squall list lexers`")
    rules = arguments["rules"]
    if isinstance(rules, str):
        raise ArgumentError("`rules` is a sequence of names", hint=f'write `rules=["{rules}"]`')
    _check(rules, Collection, "`rules`", "a sequence of names", 'write `rules=["rdfs"]`')
    for name in rules:
        _check(name, str, "a rule set", "a name", "names: `squall list rule-sets`")
    _check(arguments["window"], str | Window, "`window`", "a window", 'write `window="RANGE 10s"`')
    windows = arguments["windows"]
    _check(windows, Mapping | None, "`windows`", "a mapping", 'write `windows={"http://example.org/s": "RANGE 10s"}`')
    for stream, window in (windows or {}).items():
        check_stream(stream)
        _check(window, str | Window, f"the window of `{stream}`", "a window", 'write `"RANGE 10s"`')
    documents = arguments["documents"]
    _check(documents, Mapping | None, "`documents`", "a mapping of IRIs to files", "leave it out if there are none")
    check_prefixes(arguments["prefixes"])
    _check(arguments["profile"], str, "`profile`", "the name of a profile", "profiles: `squall list profiles`")
    _check(arguments["output"], str | None, "`output`", _TEXT, "one of istream, dstream, rstream and changes")
    _check(arguments["report"], str | Report | None, "`report`", "a report policy", 'write `report="periodic:5s"`')
    _check(arguments["entailment"], str, "`entailment`", "the name of a regime", "one of none, rhodf and rdfs")
    _check(arguments["specialise"], bool, "`specialise`", "True or False", "write `specialise=True`")
    if arguments["schema_changes"] not in SCHEMA_CHANGES:
        message = f"`schema_changes` is `{arguments['schema_changes']}`"
        raise ArgumentError(message, hint="it is `error`, `dead-letters` or `follow`")
    _check(arguments["same_as"], str | None, "`same_as`", _TEXT, "one of none, axioms, representative and provenance")
    _check(arguments["same_as_answers"], str, "`same_as_answers`", _TEXT, "one of representatives and members")
    schema, hint = arguments["schema"], 'write `schema=["zoo.ttl"]`'
    if isinstance(schema, str | Path):
        raise ArgumentError("`schema` is a sequence of files and triples", hint=f'write `schema=["{schema}"]`')
    _check(schema, Iterable | Callable, "`schema`", "a sequence of files and triples", hint)


def check_prefixes(prefixes: Any) -> None:
    """Checks prefixes from outside. Raises ArgumentError."""
    hint = 'write `prefixes={"ex": "http://example.org/"}`'
    _check(prefixes, Mapping | str | Path | None, "`prefixes`", "a mapping of prefixes to IRIs, or a file", hint)
    if isinstance(prefixes, Mapping):
        for prefix, namespace in prefixes.items():
            _check(prefix, str, "a prefix", _TEXT, hint)
            _check(namespace, str, f"the IRI of `{prefix}:`", _TEXT, hint)


def check_programs(programs: Iterable[Any]) -> None:
    """Checks that programs are texts or paths. Raises ArgumentError."""
    for program in programs:
        _check(program, str | Path, "a program", "a path or a text", "give programs one by one: `compile(a, b)`")


def check_system(system: Any) -> None:
    """Checks that a system is one. Raises ArgumentError."""
    _check(system, System, "the system", "a System", "compile it first: `squall.plan(squall.compile(program))`")


def check_callable(stage: Any, kind: str) -> None:
    """Checks that a planner or a builder is a name or can be called. Raises ArgumentError."""
    _check(stage, str | Callable, f"the {kind}", "a name or a function", f"names: `squall list {kind}s`")


def check_plan(plan: Any) -> None:
    """Checks that a plan is one. Raises ArgumentError."""
    plans_first = "plan it first: `squall.plan(system)`"
    program = "compile and plan it first: `squall.plan(squall.compile(program))`"
    _check(plan, Plan, "the plan", "a Plan", program if isinstance(plan, str | Path) else plans_first)


def check_options(options: Any) -> None:
    """Checks the options of a run. Raises ArgumentError."""
    _check(options, Options | None, "`options`", "`Options`", "write `options=squall.Options(...)`")
    if options is None:
        return
    hint = 'write `checkpoint=pathlib.Path("state")`'
    _check(options.checkpoint, Path | None, "`checkpoint`", "a path", hint)
    hint = "write `Interval(milliseconds=5000)`, of `squall.contracts`"
    _check(options.checkpoint_interval, Interval, "`checkpoint_interval`", "an Interval", hint)
    if not isinstance(options.conf, tuple) or not all(isinstance(pair, tuple) for pair in options.conf):
        raise ArgumentError("`conf` is a tuple of pairs", hint='write `conf=(("key", "value"),)`')
    _check_positive(options.memory_limit, "memory_limit", "bytes")
    _check_positive(options.batch_interval, "batch_interval", "milliseconds")
    check_moment(options.now)
    check_seed(options.seed)


def _check_positive(value: Any, name: str, unit: str) -> None:
    """Checks an amount that may be left out. Raises ArgumentError."""
    if value is not None and (type(value) is not int or value < 1):
        raise ArgumentError(f"`{name}` is no number of {unit}: `{value!r}`", hint=f"write `{name}=5_000_000`")


def check_moment(now: Any) -> None:
    """Checks a time that a user gives for ``NOW()``. Raises ArgumentError."""
    if now is not None and type(now) is not int:
        raise ArgumentError(f"`now` is not an integer: `{now!r}`", hint=time_hint(now))


def check_seed(seed: Any) -> None:
    """Checks a seed. Raises ArgumentError."""
    if seed is not None and (type(seed) is not int or seed < 0):
        raise ArgumentError(f"`seed` is no integer from 0 on: `{seed!r}`", hint="write `seed=1`")


def check_type(of: Any) -> None:
    """Checks the type of outputs. Raises ArgumentError."""
    _check(of, type | None, "`of`", "a type", "one of `Triple`, `Solution` and the other types of outputs")


def check_batches(batches: Any) -> None:
    """Checks that events can be read from something. Raises ArgumentError.

    The events themselves are checked by `check_events`.
    """
    kind = type(batches).__name__
    if is_source(batches):
        return
    if isinstance(batches, Sources):
        raise ArgumentError("sources give batches of events", hint="write `squall.build(plan).run(sources)`")
    if isinstance(batches, Event):
        raise ArgumentError("a single event is given where events are", hint="put it into a list: `[event]`")
    if isinstance(batches, str | bytes | Path):
        hint = "open it: `squall.build(plan).run(Sources([open_source(path)]))`, of `squall.streams`"
        raise ArgumentError(f"`{batches!r}` is no event", hint=hint)
    if isinstance(batches, AsyncIterable):
        hint = "write `async for output in squall.arun(plan, events)`"
        raise ArgumentError(f"events of the asynchronous {kind} cannot be read", hint=hint)
    if is_frame(batches):
        hint = "make a source of it: `squall.from_dataframe(frame, map=...)`"
        raise ArgumentError(f"events are expected, and not a {kind}", hint=hint)
    if isinstance(batches, Triple | Atom | Mapping) or not isinstance(batches, Iterable):
        raise ArgumentError(f"events are expected, and not a {kind}", hint=_EVENT_HINT)
    if type(batches).__module__.startswith(("rdflib", "pyoxigraph")):
        hint = "its triples always hold: `squall.run(plan, [], static=squall.rdf.events(graph))`"
        raise ArgumentError(f"events are expected, and not a {kind}", hint=hint)


_FRAMES = {"pandas": ("DataFrame", "Series"), "polars": ("DataFrame", "LazyFrame", "Series"),
           "pyarrow": ("Table", "RecordBatch", "RecordBatchReader"), "pyspark": ("DataFrame",)}  # fmt: skip
"""The classes of DataFrames by library."""


def is_frame(value: Any) -> bool:
    """Returns whether something is a DataFrame of some library."""
    return type(value).__name__ in _FRAMES.get(type(value).__module__.partition(".")[0], ())


def is_spark_frame(value: Any) -> bool:
    """Returns whether something is a DataFrame of Spark."""
    return is_frame(value) and type(value).__module__.startswith("pyspark")


def is_source(value: Any) -> TypeIs[Source]:
    """Returns whether something is a source that has been opened."""
    return isinstance(value, Source)


def check_from_dataframe(map: Any, time: Any, stream: Any, name: Any) -> None:
    """Checks the arguments of `squall.from_dataframe`. Raises ArgumentError."""
    hint = 'write `map="readings.map"`, or the text of a mapping'
    _check(map, str | Path | RecordMapping | None, "`map`", "a mapping", hint)
    if isinstance(time, bool):
        raise ArgumentError(f"`time` is a column or a time, and not `{time}`", hint='write `time="at"`')
    hint = 'write `time="at"` for a column, or `time=1000` for all rows'
    _check(time, str | int | None, "`time`", "the name of a column, or a time (integer ms)", hint)
    check_stream(stream)
    _check(name, str, "`name`", _TEXT, 'write `name="readings"`')


def addresses_and_sources(sources: Any) -> list[str | Source]:
    """Returns the addresses and the sources that one or several values are; none if they are something else."""
    values = sources if isinstance(sources, list | tuple) else [sources]
    if all(isinstance(value, str | Path) or is_source(value) for value in values):
        return [value if is_source(value) else str(value) for value in values]
    return []


def addresses(sources: Any) -> list[str]:
    """Returns the addresses that one or several texts or paths are; none if the sources are something else."""
    if isinstance(sources, str | Path):
        return [str(sources)]
    if isinstance(sources, list | tuple) and sources and all(isinstance(source, str | Path) for source in sources):
        return [*map(str, sources)]
    return []


def checked(events: Iterable[Event]) -> Iterator[Event]:
    """Yields events, each checked (`check_events`)."""
    for event in events:
        check_events((event,))
        yield event


def checked_static(events: Iterable[Event]) -> Iterable[Event]:
    """Returns events of static data, each checked (`check_events`): a list or tuple at once, others as they come.

    What a source has read needs no check, and stays what a checkpoint recognises by its digests.
    """
    if isinstance(events, HasDigests):
        return events
    checked_events = _checked_static(events)
    if not isinstance(events, list | tuple):
        return checked_events
    deque(checked_events, maxlen=0)
    return events


def _checked_static(events: Iterable[Event]) -> Iterator[Event]:
    for event in checked(events):
        if event.time != ALWAYS:
            raise ArgumentError(
                f"static data always hold, and `{event}` has the time {event.time}",
                hint="leave `time` out of `squall.rdf.events` or `squall.from_dataframe` (and the column `time`), or "
                "write `Event(squall.ALWAYS, ...)`",
            )
        yield event


def check_events(events: Sequence[Any]) -> None:
    """Checks a batch of events, in a few passes of which none is a loop of Python. Raises ArgumentError."""
    if isinstance(events, Columns):
        return  # its constructor says that it checks nothing
    try:
        facts = list(chain.from_iterable(map(_FACTS, events)))
        facts += chain.from_iterable(map(_REMOVED, events))
        times = list(map(_TIME, events))
        is_right = (  # one condition of passes, each of them in C: a function for each would cost a call per batch
            set(map(type, events)) <= _EVENT_TYPES
            and set(map(type, times)) <= _TIME_TYPES
            and (not times or (min(times) >= ALWAYS and max(times) <= FOREVER))
            and set(map(type, map(_FACTS, events))) <= _FACTS_TYPES
            and set(map(type, facts)) <= _FACT_TYPES
            and set(map(_FIRST, chain.from_iterable(facts))) <= _TERM_STARTS
        )
    except (TypeError, AttributeError, IndexError, KeyError):
        is_right = False
    if not is_right:
        for event in events:
            _check_event(event)
    for stream in _distinct(map(_STREAM, events)):
        check_stream(stream)
    for graph in _distinct(map(_GRAPH, events)):
        _check_graph(graph)


def _check_graph(graph: Any) -> None:
    if graph != "" and not (_is_term(graph) and graph[0] != '"'):
        hint = f'write `squall.rdf.iri("{graph}")`'
        raise ArgumentError(f"`{graph!r}` is not the term of a named graph", hint=hint)


def _distinct(values: Iterable[Any]) -> Iterable[Any]:
    """Returns the different values, or all of them if some have no hash."""
    listed_values = list(values)
    try:
        return set(listed_values)
    except TypeError:
        return listed_values


_FACTS, _REMOVED, _TIME = attrgetter("facts"), attrgetter("removed"), attrgetter("time")
_STREAM, _GRAPH, _FIRST = attrgetter("stream"), attrgetter("graph"), itemgetter(0)
_EVENT_TYPES, _TIME_TYPES = {Event}, {int}
_FACTS_TYPES, _FACT_TYPES = {tuple, list}, {Triple, Atom}


def check_stream(stream: Any) -> None:
    """Checks the name of a stream. Raises ArgumentError."""
    _check(stream, str, "a stream", "the text of its IRI", 'write `stream="http://example.org/s"`')
    if stream.startswith("<"):
        hint = f"leave the angle brackets out: `{stream.strip('<>')}`"
        raise ArgumentError(f"`{stream}` is not the IRI of a stream", hint=hint)


def _check_event(event: Any) -> None:
    """Checks one event. Raises ArgumentError."""
    if not isinstance(event, Event):
        raise ArgumentError(f"`{event!r}` is a {type(event).__name__} and not an event", hint=_EVENT_HINT)
    if type(event.time) is not int:
        raise ArgumentError(f"the time `{event.time!r}` is not an integer", hint=time_hint(event.time))
    if not ALWAYS <= event.time <= FOREVER:
        raise ArgumentError(f"the time {event.time} is out of range", hint="times are milliseconds since 1970")
    parts: tuple[tuple[str, Any], ...] = (("facts", event.facts), ("removed", event.removed))
    for name, facts in parts:
        if isinstance(facts, Triple | Atom):
            hint = f"put it into a tuple: `Event({event.time}, (triple,))`"
            raise ArgumentError(f"the {name} of an event are a tuple, and not a single fact: `{facts}`", hint=hint)
        if not isinstance(facts, tuple | list):
            hint = f"write `Event({event.time}, tuple(facts))`"
            raise ArgumentError(f"the {name} of an event are a tuple, and not a {type(facts).__name__}", hint=hint)
        for fact in facts:
            _check_fact(fact)


def _check_fact(fact: Any) -> None:
    if not isinstance(fact, Triple | Atom):
        hint = "write `squall.rdf.triple(subject, predicate, object)`"
        raise ArgumentError(f"`{fact!r}` is a {type(fact).__name__} and not a fact", hint=hint)
    for term in fact if isinstance(fact, Triple) else (fact.relation, *fact.arguments):
        if not _is_term(term):
            hint = "`squall.rdf.iri` and `squall.rdf.literal` make terms"
            raise ArgumentError(f"`{term!r}` in `{tuple(fact)}` is not a term", hint=hint)


def _is_term(value: Any) -> bool:
    return isinstance(value, str) and value[:1] in _TERM_STARTS


def _check(value: Any, types: Any, name: str, kind: str, hint: str) -> None:
    if not isinstance(value, types):
        raise ArgumentError(f"{name} is {kind}, and not {_shown(value)}", hint=hint)


def _shown(value: Any) -> str:
    text = repr(value)
    return f"the {type(value).__name__} `{text}`" if len(text) < 80 else f"a {type(value).__name__}"
