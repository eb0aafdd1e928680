"""The output of ``squall run``: its sink and format."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from squall.errors import UsageError

if TYPE_CHECKING:
    from squall.model import Consequence, System
    from squall.streams import Sink


def sink_of(uri: str, format: str | None, timed: bool, types: Sequence[str], system: System) -> Sink:
    """Opens the sink in the format that is given, or that fits the program.

    Raises:
        UsageError: The format cannot hold the program's outputs, or options contradict each other.
    """
    from squall.streams import open_sink
    from squall.streams.sinks import HasColumnTypes

    if (format or timed) and uri != "-":
        option = "--timed" if timed else "--format"
        hint = f"say it in the sink: `{uri}?format={format or 'ntt'}`"
        raise UsageError(f"`{option}` is for standard output", hint=hint)
    if timed and format not in _TIMED:
        raise UsageError(f"`--timed` goes with N-Triples and N-Quads, not with `{format}`")
    name = _TIMED[format] if timed else format or (_fitting_format(system) if uri == "-" else None)
    sink = open_sink(f"-?format={name}" if name else uri)
    if isinstance(sink, HasColumnTypes):
        sink.types = dict(map(_typed, types)) if types else None
    elif types:
        hint = "for example `--sink out.parquet`; `csv` and `ndjson-values` have plain values anyway"
        raise UsageError("`--typed` is for Parquet files, and for folders", hint=hint)
    _check_format(sink, system)
    _check_log(sink, system)
    _check_ends(sink, system)
    _declare(sink, system)
    return sink


def checkpointed(sink: Sink) -> Sink:
    """Returns the sink as one that a checkpoint can restore: one that cannot retract outputs receives them only when a
    checkpoint has them. (The builder itself writes a folder.)"""
    from squall.contracts import CheckpointedSink, Folder
    from squall.streams.sinks.outbox import Outbox

    return sink if isinstance(sink, CheckpointedSink | Folder) else Outbox(sink)


def columns_of(system: System, sink: Sink) -> Collection[str]:
    """Returns the queries with solutions if the sink is a table: derived facts have other columns, and are left out
    unless they have files of their own."""
    from squall.model import Ask, Select, rules
    from squall.streams.formats.output_formats import SOLUTIONS

    if getattr(sink, "format", "") not in SOLUTIONS or _is_by_query(sink):
        return ()
    return {rule.name for rule in rules(system) if any(isinstance(end, Select | Ask) for end in rule.consequences)}


_TIMED = {None: "ntt", "nt": "ntt", "ntt": "ntt", "nq": "nqt", "nqt": "nqt"}


def _typed(text: str) -> tuple[str, str]:
    name, equals, type = text.partition("=")
    if not name or not equals:
        raise UsageError(f"`--typed {text}` is not NAME=TYPE", hint="`*` stands for all other variables")
    return name, type


def _fitting_format(system: System) -> str:
    """Returns the format of standard output if none is given."""
    queries, graph_rules = _output_kinds(system)
    if not queries and any("changes" in own for own in _operators(system).values()):
        return "rdfp"
    return "table" if queries else "nq" if graph_rules else "nt"


def _output_kinds(system: System) -> tuple[list[System], list[System]]:
    """Returns the rules whose outputs are solutions or booleans, and those whose outputs are triples in graphs."""
    from squall.model import Ask, AtomPattern, Construct, Select, rules
    from squall.rdf import QUAD

    queries, graph_rules = [], []
    for rule in rules(system):
        for end in rule.consequences:
            queries += [rule] if isinstance(end, Select | Ask) else []
            template = end.template if isinstance(end, Construct) and not end.internal else ()
            graph_rules += [rule] if any(isinstance(p, AtomPattern) and p.relation == QUAD for p in template) else []
    return queries, graph_rules


def _check_format(sink: Sink, system: System) -> None:
    """Raises UsageError if the format cannot hold what the program outputs."""
    from squall.contracts import Folder
    from squall.streams.formats.evaluations import CHANGES_HINT
    from squall.streams.formats.output_formats import CHANGES, FACTS, NAMES, NO_GRAPHS, NO_SOLUTIONS

    format = getattr(sink, "format", "")
    changing = [name for name, own in _operators(system).items() if "changes" in own]
    if changing and format in NAMES and format not in CHANGES:
        problem = f"`{format}` does not say whether an output of `{changing[0]}` is inserted or deleted"
        raise UsageError(f"{problem} (`--output changes`)", hint=CHANGES_HINT)
    queries, graph_rules = _output_kinds(system)
    if queries and (format in NO_SOLUTIONS or (isinstance(sink, Folder) and format in FACTS)):
        hint = "write them as a table, ndjson, csv or tsv: `--format table`, or `--sink` with such an extension"
        raise UsageError(f"the answers of `{queries[0].name}` are no triples, as `{format}` has them", hint=hint)
    _check_columns(sink, system)
    if graph_rules and format in NO_GRAPHS:
        hint = "write quads: `--format nq`, `nqt` or `trig`"
        raise UsageError(f"`{graph_rules[0].name}` makes triples in graphs, which `{format}` has not", hint=hint)


def _check_columns(sink: Sink, system: System) -> None:
    """Raises UsageError if a document with one header is to hold outputs with other columns, or several queries."""
    from squall.contracts import Folder
    from squall.streams.formats.output_formats import ONE_HEADER, RESERVED_NAMES
    from squall.streams.formats.results import DOCUMENTS

    format = getattr(sink, "format", "")
    names = columns_of(system, sink)
    if _is_by_query(sink):
        columns = _columns(system)
    else:
        columns = {name: own for name, own in _columns(system).items() if not names or name in names}
    ends = f"`--sink 'out-{{time}}-{{query}}.{format}'`"
    if format in DOCUMENTS and len(names) > 1 and not _is_by_query(sink):
        first, second, *_ = sorted(names)
        hint = f"write each to a file of its own: {ends}; or all as `ndjson-evaluations`"
        raise UsageError(f"`{first}` and `{second}` need a document of `{format}` each", hint=hint)
    if format in RESERVED_NAMES and not isinstance(sink, Folder):
        _check_names(columns, format, _is_one_query(sink, system))
    if format not in ONE_HEADER or isinstance(sink, Folder):
        return
    _check_given_types(sink, columns)
    _check_one_header(columns, _is_by_query(sink), ends)


def _check_one_header(columns: Mapping[str, Collection[tuple[str, ...]]], is_by_query: bool, ends: str) -> None:
    """Raises UsageError if a table is to hold rows with different columns."""
    for name, own in columns.items():
        if len(own) > 1:
            hint = "write them as `ndjson`, or as quads: `nq`, `nqt`, `trig`"
            raise UsageError(f"`{name}` makes triples and quads, and a table has one header", hint=hint)
    if not is_by_query and len(frozenset[tuple[str, ...]]().union(*columns.values())) > 1:
        first = min(columns)
        second = min(name for name in columns if columns[name] != columns[first])
        hint = f"write them as `ndjson`, or each to a file of its own: {ends}"
        raise UsageError(f"`{first}` and `{second}` have different columns, and a table has one header", hint=hint)


def _check_names(columns: Mapping[str, Collection[tuple[str, ...]]], format: str, is_one_query: bool) -> None:
    """Raises UsageError if a variable has the name of a column of all outputs."""
    from squall.streams.formats.evaluations import common_columns

    for rule, own in columns.items():
        for names in own:
            has_change = names[:1] == ("change",)
            variables = names[has_change:]
            for name in common_columns(is_one_query, has_change):
                if name in variables:
                    hint = f"give it another name: `SELECT (?{name} AS ?{name}Value)`"
                    problem = f"the variable `?{name}` of `{rule}` has the name of a column of all outputs"
                    raise UsageError(f"{problem} in `{format}`", hint=hint)


def _check_given_types(sink: Sink, columns: Mapping[str, Collection[tuple[str, ...]]]) -> None:
    """Raises UsageError if a type is given to a column that is not there, or that no column can have."""
    from squall.streams.formats.typed_columns import check_given_types
    from squall.streams.sinks import HasColumnTypes

    if isinstance(sink, HasColumnTypes) and sink.types:
        names = dict.fromkeys(name for own in columns.values() for names in sorted(own) for name in names)
        check_given_types((name for name in names if name != "change"), sink.types)


def _is_by_query(sink: Sink) -> bool:
    from squall.streams.sinks.patterns import PatternSink

    return isinstance(sink, PatternSink) and sink.is_by_query


def _columns(system: System) -> dict[str, set[tuple[str, ...]]]:
    """Returns the columns that the outputs of each rule and query have in a table, by name."""
    from squall.model import rules

    columns: dict[str, set[tuple[str, ...]]] = {}
    operators = _operators(system)
    for rule in rules(system):
        changes = {("change",) if operator == "changes" else () for operator in operators.get(rule.name, ())}
        own = {names for end in rule.consequences for names in _columns_of(end)}
        columns.setdefault(rule.name, set()).update((*change, *names) for change in changes for names in own)
    return {name: own for name, own in columns.items() if own}


def _columns_of(consequence: Consequence) -> Iterator[tuple[str, ...]]:
    """Yields the columns of what a consequence outputs."""
    from squall.model import Ask, AtomPattern, Construct, Insert, Select
    from squall.rdf import QUAD
    from squall.streams.formats.encoders import FACT_COLUMNS

    match consequence:
        case Select(variables=variables):
            yield tuple(variable.name for variable in variables)
        case Ask():
            yield ("boolean",)
        case Construct(template=template, internal=False):
            in_graphs = (isinstance(part, AtomPattern) and part.relation == QUAD for part in template)
            yield from ((*FACT_COLUMNS, "graph") if in_graph else FACT_COLUMNS for in_graph in in_graphs)
        case Insert():
            yield FACT_COLUMNS


def _has_output(rule: System) -> bool:
    """Returns whether anything that a rule makes is in an answer: rules of rule sets derive what others read."""
    return any(columns for end in rule.consequences for columns in _columns_of(end))


def _operators(system: System) -> dict[str, set[str]]:
    """Returns the R2S operators by which the outputs of each rule and query are output, by name."""
    from squall.model import output_specs

    operators: dict[str, set[str]] = {}
    for spec in output_specs(system):
        for name in (spec.name,) if spec.name else (rule.name for rule in spec.rules):
            operators.setdefault(name, set()).add(spec.output)
    return operators


def _check_log(sink: Sink, system: System) -> None:
    """Raises UsageError if the format is a log of changes, but an output is none, or does not show what it is."""
    from squall.streams.formats.output_formats import LOGS

    format = getattr(sink, "format", "")
    if format not in LOGS:
        return
    for name, own in _operators(system).items():
        if "rstream" in own:
            hint = "write what changes: `--output istream`, `dstream`, or both: `changes`; or whole answers: `trig`, "
            hint += "`nq-messages`"
            raise UsageError(f"`{name}` outputs whole answers (rstream), and `{format}` is a log of changes", hint=hint)
        if len(own) > 1:
            hint = "give them different names, or write `trig`"
            both = " and ".join(f"an {operator}" if operator == "istream" else operator for operator in sorted(own))
            raise UsageError(f"`{name}` is both {both}, which `{format}` has to distinguish", hint=hint)
    if not _is_by_query(sink):
        _check_single_log(system, format)


def _check_ends(sink: Sink, system: System) -> None:
    """Raises UsageError if the format has what ceases to hold, but the program does not output when that is, or has
    tuples, which have their times themselves."""
    from squall.model import AtomPattern, Construct, rules
    from squall.rdf import TUPLE
    from squall.streams.formats.output_formats import ENDS

    if getattr(sink, "format", "") != ENDS:
        return
    operators = _operators(system)
    for rule in rules(system):
        for end in rule.consequences:
            facts = end.template if isinstance(end, Construct) and not end.internal else ()
            for fact in facts:
                is_tuple = isinstance(fact, AtomPattern) and fact.relation == TUPLE
                changes = "changes" in operators.get(rule.name, ())
                if is_tuple and changes:
                    hint = "leave `--output changes` out, or write them as `ndjson`"
                    raise UsageError(
                        f"the tuples of `{rule.name}` have the times of their validity themselves", hint=hint
                    )
                if not is_tuple and not changes:
                    problem = f"`{ENDS}` has the ends of what `{rule.name}` derives"
                    raise UsageError(f"{problem}, which are not output", hint="output them: `--output changes`")
    _check_single_log(system, ENDS)


def _check_single_log(system: System, format: str) -> None:
    """Raises UsageError if a log is to have the changes of an answer beside the outputs of another one.

    Both may have the same fact: one would delete what the other still has.
    """
    from squall.model import output_specs

    specs = [spec for spec in output_specs(system) if not spec.internal and any(map(_has_output, spec.rules))]
    if len(specs) > 1 and any(spec.output == "changes" for spec in specs):
        first, second, *_ = sorted(spec.name or spec.rules[0].name for spec in specs)
        hint = "write a file for each query and instant: `--sink 'changes-{time}-{query}." + f"{format}'`, or `ndjson`"
        problem = f"`{format}` cannot hold the answers of both `{first}` and `{second}`"
        raise UsageError(f"{problem}: one would delete what the other still has", hint=hint)


def _declare(sink: Sink, system: System) -> None:
    """Declares to the sink which rules and queries output what has ceased to hold, and which have an order."""
    from squall.model import Select, rules
    from squall.streams.formats.evaluations import Declarations
    from squall.streams.sinks import SupportsDeclarations

    operators = _operators(system)
    if not isinstance(sink, SupportsDeclarations):
        return
    retracting = frozenset(name for name, own in operators.items() if own == {"dstream"})
    queries = [rule for rule in rules(system) if any(isinstance(end, Select) for end in rule.consequences)]
    ordered = {query.name for query in queries if query.slice is not None and query.slice.order}
    ordered_outputs = frozenset(name for name in ordered if operators.get(name) == {"rstream"})
    is_one_query = _is_one_query(sink, system)
    sink.declare(Declarations(retracting, ordered_outputs, _only_columns(sink, system), is_one_query))


def _is_one_query(sink: Sink, system: System) -> bool:
    """Returns whether all that a file of a sink holds are answers of one query."""
    from squall.model import Ask, Select, rules

    names = columns_of(system, sink)
    outputs = [name for name in _columns(system) if not names or name in names or _is_by_query(sink)]
    ends = [end for rule in rules(system) if rule.name in outputs for end in rule.consequences]
    are_answers = all(isinstance(end, Select | Ask) for end in ends if any(_columns_of(end)))
    return are_answers and (len(outputs) == 1 or _is_by_query(sink))


def _only_columns(sink: Sink, system: System) -> tuple[str, ...]:
    """Returns the columns of what a sink holds; ``()`` if there are several kinds of rows."""
    names = columns_of(system, sink)
    columns = {own for name, all_own in _columns(system).items() if not names or name in names for own in all_own}
    return columns.pop() if len(columns) == 1 else ()
