"""Partitioning of the output: rows are output where they are, or shuffled by their columns; sequences are not."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import pyarrow
import pytest

import squall
from squall.builders.distributed.exec import micro_batch
from squall.builders.distributed.exec.program import Program
from squall.builders.distributed.io.engine import Folder, Write
from squall.builders.distributed.plan.broadcast import broadcast_candidates
from squall.builders.distributed.plan.physical_plan import physical_plan
from squall.builders.distributed.plan.skew import SkewedKeys
from squall.builders.distributed.plan.strategy import BatchLimits
from squall.contracts import Output
from squall.errors import PlannerError
from squall.model import (
    ARRIVAL,
    GRAPH,
    Arrivals,
    AtomPattern,
    Construct,
    Graphs,
    Pattern,
    Report,
    Source,
    System,
    Variable,
    rules,
)
from squall.model.profiles import apply_profile
from squall.model.windows import HoppingWindow, SlidingWindow
from squall.plan import Input, Node, Plan
from squall.plan.operators import Column, DerivedStream, Join, Match, Scan, Select, Sink, Unit
from squall.plan.partitioning import derived_stream_columns, output_columns, subject_column
from squall.plan.validation import check
from squall.planners.partitioning import assign_partitioning
from squall.rdf import QUAD, Event, Term, Triple, iri
from squall.rdf.row_tags import QUAD_TAG
from squall.testing import assert_as_oracle, stream
from tests import in_memory

PREFIX = "PREFIX : <http://example.org/>\n"
P, Q, R, S = (iri(f"http://example.org/{name}") for name in "pqrs")
X, Y, Z = map(Variable, "xyz")
COLUMNS = tuple[int, ...]
CHANGE = Report("change")


def plan_of(query: str, output: str = "istream") -> Plan:
    return squall.plan(apply_profile(squall.compile(PREFIX + query, lexer="sparql"), output=output))


def sink_columns(plan: Plan) -> list[COLUMNS | None]:
    """Returns the columns by which the inputs of the sinks of a plan are grouped."""
    return [edge.columns for node, _ in plan.sinks for edge in node.inputs]


# What is output


@pytest.mark.parametrize(
    ("query", "output", "columns", "stays"),
    [
        ("SELECT ?x ?y ?z { ?x :p ?y . ?y :q ?z }", "istream", (2,), True),
        ("SELECT ?z ?y { ?x :p ?y . ?y :q ?z FILTER (?z > 1) }", "rstream", (2,), True),
        ("SELECT ?x ?z { ?x :p ?y . ?y :q ?z }", "istream", (1, 2), False),
        ("SELECT DISTINCT ?x ?z { ?x :p ?y . ?y :q ?z }", "dstream", (1, 2), True),
        ("SELECT DISTINCT ?z ?x { ?x :p ?y . ?y :q ?z }", "istream", (2, 1), True),
        ("SELECT ?y (COUNT(?x) AS ?n) { ?x :p ?y } GROUP BY ?y", "istream", (1,), True),
        ("SELECT ?x ?y ?z { ?x :p ?y . ?y :q ?z } ORDER BY ?z", "rstream", (2,), False),
        ("SELECT ?x ?y ?z { ?x :p ?y . ?y :q ?z } ORDER BY ?z LIMIT 3", "istream", (), True),
        ("SELECT ?x ?y ?z ?w { ?x :p ?y . ?w :q ?z }", "istream", (), True),
        ("CONSTRUCT { ?y :r ?z } { ?x :p ?y . ?y :q ?z }", "istream", (0,), True),
        ("CONSTRUCT { ?x :r ?y } { ?x :p ?y . ?y :q ?z }", "istream", (2,), True),
        ("CONSTRUCT { ?x :r ?z } { ?x :p ?y . ?y :q ?z }", "istream", (0,), False),
        ("CONSTRUCT { :k :r ?z } { ?x :p ?y . ?y :q ?z }", "istream", (2,), False),
    ],
)
def test_outputs_stay_in_their_partition_or_go_by_all_values(
    query: str, output: str, columns: COLUMNS, stays: bool
) -> None:
    plan = plan_of(query, output)
    assert sink_columns(plan) == [columns]
    result = physical_plan(plan).fused_output_stages
    assert bool(result) == stays
    assert (f"end, in the tasks of stage {result[0].number}" if result else "\nend\n") in str(physical_plan(plan))


def test_facts_that_may_be_alike_go_by_their_subject() -> None:
    plan = plan_of("CONSTRUCT { :k :r ?z . ?z :r :k } { ?x :p ?y . ?y :q ?z }")
    assert sink_columns(plan) == [(0,), (0,)]


def test_a_single_task_input_does_not_gather_the_others() -> None:
    product = "[a: (?x <urn:p> ?y) (?z <urn:q> ?w) -> (?x <urn:r> ?w)]"
    other = "[b: (?x <urn:s> ?y) (?y <urn:t> ?z) -> (?x <urn:u> ?z)]"
    assert sink_columns(squall.plan(squall.compile(product, lexer="jena"))) == [()]
    assert sink_columns(squall.plan(squall.compile(product + other, lexer="jena"))) == [(0,), (0,)]


def test_a_recursion_is_complete_before_its_output() -> None:
    plan = squall.plan(squall.compile("[(?x <urn:p> ?y) (?y <urn:q> ?z) -> (?x <urn:p> ?z)]", lexer="jena"))
    (level, *_) = physical_plan(plan).stages
    assert level.recursive
    assert physical_plan(plan).fused_output_stages == ()


def makes(subject: Variable, predicate: Term, object: Variable) -> tuple[Construct]:
    return (Construct((Pattern(subject, predicate, object),)),)


@pytest.mark.parametrize("report", [Report(), Report("change")], ids=lambda report: report.policy)
def test_whether_all_of_an_answer_has_changed_is_known_before_the_end(report: Report) -> None:
    rule = System("r", (Source(),), (Pattern(X, P, Y), Pattern(Y, Q, Z)), consequences=makes(Y, R, Z), reentrant=False)
    plan = squall.plan(System(subsystems=(rule,), output="rstream", report=report))
    assert [op.report for _, op in plan.sinks] == [report]
    assert bool(physical_plan(plan).fused_output_stages) == (report == Report())


@pytest.mark.parametrize("output", ["istream", "rstream"])
def test_the_report_times_of_a_snapshot_stream_are_known_before_the_end(output: str) -> None:
    maker = System("m", joinables=(Pattern(X, P, Y),), consequences=makes(X, R, Y), reentrant=False)
    reader = System("r", (Source("urn:s", SlidingWindow(5)),), (Pattern(X, R, Y),), consequences=makes(X, S, Y))
    plan = squall.plan(System(subsystems=(System(subsystems=(maker,), stream="urn:s", output=output), reader)))
    last = physical_plan(plan).stages[-1]
    assert any(isinstance(plan.by_id[id].op, DerivedStream) for id in last.nodes)
    assert bool(physical_plan(plan).fused_output_stages) == (output == "istream")


def by_hand(
    orders: Iterable[int | None],
    output: str = "rstream",
    queries: tuple[str, ...] = ("q", "q"),
    report: Report = CHANGE,
) -> Plan:
    """Returns a plan in which two nodes answer, for one query or for two. orders: the columns by which they are
    ordered."""
    cells = ((0, P, 1), (1, P, 0))
    nodes = [Node("r", Scan(Source()))]
    for number, column in enumerate(orders):
        nodes.append(Node(f"m{number}", Match(cells[number]), (Input("r"),)))
        order = () if column is None else ((Column(column), False),)
        answer = Select(("x", "y"), (1, 0) if number else (0, 1), (queries[number],), order)
        nodes.append(Node(f"a{number}", answer, (Input(f"m{number}"),)))
    ends = tuple(Input(node.id) for node in nodes if isinstance(node.op, Select))
    end = Sink(output, sources=(Source(),), report=report)
    return Plan(tuple(assign_partitioning([*nodes, Node("end", end, ends)])), "by hand")


def test_equal_rows_of_all_inputs_go_to_one_partition() -> None:
    assert sink_columns(by_hand([None, None])) == [(1, 2), (1, 2)]
    assert sink_columns(by_hand([0, 1])) == [(1, 2), (1, 2)], "the same order of the same values"
    assert sink_columns(by_hand([0, 0])) == [(), ()], "which values are equal decides where a row is output"
    assert sink_columns(by_hand([0, None])) == [(), ()]
    assert sink_columns(by_hand([0, 0], report=Report())) == [(1, 2), (1, 2)], "it is output, whatever was before"
    assert sink_columns(by_hand([0, 0], "istream")) == [(1, 2), (1, 2)]
    assert sink_columns(by_hand([0, 0], queries=("q", "other"))) == [(1, 2), (1, 2)]


@pytest.mark.parametrize(
    ("query", "columns"),
    [
        ("SELECT ?x ?z { ?x :p ?y . ?y :q ?z } ORDER BY ?z", (1, 2)),
        ("SELECT ?x ?z { ?x :p ?y . ?y :q ?z } ORDER BY ?z DESC(STR(?z) < STR(?x))", (1, 2)),
        ("SELECT ?x ?z { ?x :p ?y . ?y :q ?z } ORDER BY ?y", ()),
        ("SELECT ?x ?z { ?x :p ?y . ?y :q ?z } ORDER BY ?z (STR(?z) < STR(?y))", ()),
    ],
)
def test_outputs_meet_in_one_task_where_their_order_matters(query: str, columns: COLUMNS) -> None:
    plan = squall.plan(squall.compile(PREFIX + query, lexer="sparql"))
    assert {op.report.policy for _, op in plan.sinks} == {"change"}
    assert sink_columns(plan) == [columns]
    assert check(plan) == plan
    if not columns:
        (end,) = (node for node, _ in plan.sinks)
        apart = replace(end, inputs=(replace(end.inputs[0], columns=(1,)),))
        with pytest.raises(PlannerError, match="in a single partition, since their order"):
            check(replace(plan, nodes=(*plan.nodes[:-1], apart)))


def test_the_partitioning_is_given_for_each_input() -> None:
    plan = by_hand([None, 0], queries=("q", "other"))
    hides = Select(("x",), (0,), ("other",), ((Column(1), False),))
    nodes = [replace(node, op=hides) if node.id == "a1" else node for node in plan.nodes]
    plan = replace(plan, nodes=tuple(assign_partitioning(nodes)))
    assert sink_columns(plan) == [(1, 2), ()]
    assert "end grouped by [1, 2]; a single task has all rows of input 2\n" in str(physical_plan(plan))


# By whom


class CountingFiles(in_memory.MemoryFiles):
    """Counts the outputs of each task."""

    def __init__(self) -> None:
        super().__init__()
        self.output_counts: list[int] = []

    def writer(self, folder: Folder) -> Write:
        write = super().writer(folder)

        def counted(records: pyarrow.Table) -> str:
            if folder[0] == "outputs":
                self.output_counts.append(len(records))
            return write(records)

        return counted


def outputs_and_counts(
    plan: Plan, events: list[Event], skewed_keys: SkewedKeys | None = None
) -> tuple[list[Output], list[int]]:
    """Returns the outputs of a run of one batch, and how many of them each task has output."""
    files = CountingFiles()
    program = Program(physical_plan(plan, skewed_keys=skewed_keys or {}))
    job = micro_batch.MicroBatches(in_memory.MemoryEngine(files), files, program, BatchLimits())
    records = in_memory.start(job) + in_memory.read(job, in_memory.in_files(events))
    job.process(records, last=True, keep=False)
    return list(job.outputs()), files.output_counts


PEOPLE = "".join(f"{time} :n{time} :p :m{time % 25}\n{time} :m{time % 25} :q {time}\n" for time in range(50))
MANY = "".join(f"{time} :n{time} :p :one\n{time} :one :q {time}\n" for time in range(40))


@pytest.mark.parametrize("output", ["istream", "rstream"])
@pytest.mark.parametrize("shown", ["?x ?y ?z", "?x ?z", "DISTINCT ?z", "?y (COUNT(?x) AS ?n)"])
def test_all_tasks_tell(shown: str, output: str) -> None:
    grouping = " GROUP BY ?y" if "COUNT" in shown else ""
    query = f"{PREFIX}SELECT {shown} {{ ?x :p ?y . ?y :q ?z }}{grouping}"
    system = apply_profile(squall.compile(query, lexer="sparql"), output=output)
    events = stream(PEOPLE)
    outputs, by = outputs_and_counts(squall.plan(system), events)
    assert_as_oracle(system, outputs, events)
    assert len(by) == 3
    assert max(by) < 0.6 * sum(by)


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    "query",
    [
        "SELECT ?x ?z { ?x :p ?y . ?y :q ?z } ORDER BY DESC(?z) ?x",
        "SELECT ?x ?z { ?x :p ?y . OPTIONAL { ?y :q ?z } } ORDER BY ?z",
        "SELECT ?x (?y AS ?shown) { ?x :p ?y . ?y :q ?z } ORDER BY STR(?z) DESC(?x)",
        "SELECT (1 AS ?one) { ?x :p ?y . ?y :q ?z } ORDER BY ?z",
    ],
)
@pytest.mark.parametrize("report", [Report(), Report("change"), Report("nonempty"), Report("periodic", 7)])
def test_ordered_answers_are_output_in_order_by_all_tasks(query: str, report: Report) -> None:
    """A single task outputs them where no part can decide whether the order has changed."""
    system = apply_profile(squall.compile(PREFIX + query, lexer="sparql"), output="rstream", report=report)
    plan = squall.plan(system)
    events = stream(PEOPLE)
    outputs, by = outputs_and_counts(plan, events)
    assert outputs == list(squall.build(plan, "iterator").run([events]))
    assert_as_oracle(system, outputs, events)
    together = sink_columns(plan) == [()]
    assert together == (report.policy == "change" and "?z " not in query.partition("{")[0])
    assert len(by) == (1 if together or "1 AS" in query else 3)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("other_order", ["ORDER BY DESC(?x)", "ORDER BY ?y", ""])
@pytest.mark.parametrize("report", [Report(), Report("change"), Report("nonempty")])
def test_queries_of_one_name_may_have_different_orders(report: Report, other_order: str) -> None:
    """Their solutions are output side by side, each in its own order. The decision whether they have changed is made
    for the whole sequence."""
    request = ("{ ?x :p ?y . ?y :q ?z } ORDER BY ?x", f"{{ ?x :p ?y . FILTER(STR(?x) > STR(?y)) }} {other_order}")
    queries = [squall.compile(f"{PREFIX}SELECT ?x {body}", lexer="sparql") for body in request]
    alike = [replace(rule, name="q") for query in queries for rule in rules(query)]
    system = apply_profile(System(subsystems=tuple(alike)), output="rstream", report=report)
    plan = squall.plan(system)
    events = stream(PEOPLE)
    outputs, by = outputs_and_counts(plan, events)
    if other_order:
        assert outputs == list(squall.build(plan, "iterator").run([events]))
    assert_as_oracle(system, outputs, events)
    assert len(by) == (1 if report.policy == "change" else 3)


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    "query", ["SELECT ?x ?y ?z", "SELECT ?y ?x", "SELECT ?y ?z", "CONSTRUCT { ?y :r ?x }", "CONSTRUCT { ?x :r ?y }"]
)
def test_outputs_of_a_skewed_key_come_from_all_tasks(query: str) -> None:
    """If the outputs contain the key, partitioning by it would give them to one task."""
    system = squall.compile(f"{PREFIX}{query} {{ ?x :p ?y . ?y :q ?z }}", lexer="sparql")
    plan = squall.plan(system)
    join = next(node for node in plan.nodes if len(node.inputs) == 2 and "join" in node.id)
    key = iri("http://example.org/one")
    events = stream(MANY)
    assert len(outputs_and_counts(plan, events)[1]) == 1
    most = 0
    for port in (0, 1):
        outputs, by = outputs_and_counts(plan, events, {(join.id, port): (key,)})
        assert_as_oracle(system, outputs, events)
        most = max(most, len(by))
    assert most == 3


@pytest.mark.more
def test_one_sink_outputs_several_kinds_of_rows() -> None:
    """The rows are solutions of two queries, an answer of ASK, atoms, quads and triples; they agree with the oracle."""
    template = (AtomPattern(QUAD, (Y, X, R, Z)), AtomPattern(iri("urn:rel"), (Z, X)), Pattern(X, S, Z))
    body = (Pattern(X, P, Y), Pattern(Y, Q, Z))
    makes = System("m", (Source(),), body, consequences=(Construct(template),))
    request = ("SELECT ?y ?z { ?y :q ?z }", "SELECT ?x { ?x :p ?y . ?y :q ?z }", "ASK { ?x :p ?y }")
    queries = (squall.compile(PREFIX + query, lexer="sparql") for query in request)
    system = System(subsystems=(makes, *queries))
    events = stream(PEOPLE)
    outputs, by = outputs_and_counts(squall.plan(system), events)
    assert_as_oracle(system, outputs, events)
    assert len(by) == 3
    assert len({type(output.fact) for output in outputs}) == 5


def test_kinds_with_different_partitioning_are_output_where_they_are() -> None:
    request = ("SELECT ?x ?y { ?x :p ?y . ?y :q ?z }", "SELECT ?y ?z { ?x :p ?y . ?y :q ?z }")
    system = System(subsystems=tuple(squall.compile(PREFIX + query, lexer="sparql") for query in request))
    plan = squall.plan(system)
    assert physical_plan(plan).fused_output_stages
    assert {*sink_columns(plan)} == {(1,), (2,)}
    assert_as_oracle(system, outputs_and_counts(plan, stream(PEOPLE))[0], stream(PEOPLE))


@pytest.mark.more
@pytest.mark.parametrize("swapped", [False, True])
@pytest.mark.parametrize("key", [None, "one"])
def test_one_relation_may_have_several_numbers_of_arguments(swapped: bool, key: str | None) -> None:
    """An atom without arguments can be partitioned by its relation only, not by the rule that derives it."""
    rel, body = iri("urn:rel"), (Pattern(X, P, Y), Pattern(Y, Q, Z))
    results = [AtomPattern(rel, ()), AtomPattern(rel, (Y,)), AtomPattern(rel, ()), AtomPattern(rel, (X, Y))]
    rules = [
        System(f"r{number}", (Source(),), body, consequences=(Construct((item,)),), reentrant=False)
        for number, item in enumerate(results)
    ]
    system = System(subsystems=tuple(reversed(rules) if swapped else rules))
    plan = squall.plan(system, "greedy")
    assert len({*sink_columns(plan)}) == 1
    joins = [node.id for node in plan.nodes if isinstance(node.op, Join)]
    skewed_keys = {(join, 0): (iri(f"http://example.org/{key}"),) for join in joins} if key else None
    assert_as_oracle(system, outputs_and_counts(plan, stream(MANY), skewed_keys)[0], stream(MANY))


# Streams that are made


def of_quads(source: Source, reads: Pattern | AtomPattern, window: SlidingWindow) -> System:
    """Returns a rule that derives a stream of quads about many subjects, and one that joins these with their
    premises."""
    quads = (Construct((AtomPattern(QUAD, (X, Y, S, X)),)),)
    maker = System("m", joinables=(Pattern(X, P, Y),), consequences=quads, reentrant=False)
    body = (System("", (source,), (reads,), consequences=()), Pattern(Y, Q, Z))
    rule = System("r", (Source(window=window),), body, consequences=makes(Y, R, X))
    return System(subsystems=(System(subsystems=(maker,), stream="urn:s", output="istream"), rule))


QUADS = Pattern(Y, S, X)
IN_GRAPHS = AtomPattern(GRAPH, (X, Y, S, X))
CAME_SO = AtomPattern(ARRIVAL, (Variable("g"), Variable("t"), Y, S, X))


@pytest.mark.more
@pytest.mark.parametrize("planner", ["rete", "greedy"])
@pytest.mark.parametrize(
    ("source", "reads"),
    [
        (Source("urn:s", SlidingWindow(50)), QUADS),
        (Graphs("urn:s", SlidingWindow(50)), IN_GRAPHS),
        (Arrivals("urn:s", SlidingWindow(50)), CAME_SO),
    ],
    ids=["triples", "in graphs", "with when they came"],
)
def test_quads_that_are_read_again_are_spread_by_their_subject(
    source: Source, reads: Pattern | AtomPattern, planner: str
) -> None:
    """The triples that are read from them keep this partitioning: a join on the subject moves no row."""
    system = of_quads(source, reads, SlidingWindow(50))
    plan = squall.plan(system, planner)
    (feed,) = (node for node in plan.nodes if isinstance(node.op, DerivedStream))
    assert [edge.columns for edge in feed.inputs] == [(2,)]
    moved = {(hop.producer, hop.consumer) for hop in physical_plan(plan).exchanges if hop.shuffles}
    assert not any(producer == feed.id for producer, _ in moved)
    events = stream(PEOPLE)
    program = Program(physical_plan(plan))
    buckets = {program.router().bucket((feed.id, 0), row) for row in quads(events)}
    assert len(buckets) > 15
    outputs = in_memory.run(plan, in_memory.cut(events, [30, 70]))
    assert_as_oracle(system, outputs, events)
    assert any(output.rule == "r" for output in outputs)


def quads(events: Iterable[Event]) -> Iterable[tuple[str, ...]]:
    triples = [fact for event in events for fact in event.facts if isinstance(fact, Triple)]
    return [(QUAD_TAG, triple.subject, triple.object, S, triple.subject) for triple in triples if triple.predicate == P]


def test_where_subjects_are() -> None:
    assert subject_column(None) == subject_column((0, P, 1)) == subject_column((P, P, 1)) == 0
    assert subject_column((QUAD_TAG, P, 0, P, 1)) == 2
    assert subject_column((Term("@urn:r"), 0)) == 1
    assert subject_column((Term("@urn:r"),)) == 0


def test_where_columns_are_as_a_stream_is_read() -> None:
    def read(source: Source, template: COLUMNS | tuple[int | Term, ...], *columns: int) -> COLUMNS | None:
        return derived_stream_columns(DerivedStream(source, "istream", Report(), ()), template, columns)

    triple, quad = (0, P, 1), (QUAD_TAG, 2, 0, P, 1)
    assert read(Source("s"), triple, 0, 2) == (0, 2)
    assert read(Source("s"), quad, 2, 4) == (0, 2)
    assert read(Source("s"), quad, 1) is None, "the graph is not read"
    assert read(Graphs("s"), triple, 0) == (2,)
    assert read(Graphs("s"), quad, 2) == (2,)
    assert read(Arrivals("s"), quad, 2) == (3,)
    assert derived_stream_columns(DerivedStream(Source("s"), "istream", Report(), ()), None, (0,)) is None


def test_where_columns_are_behind_an_operator_without_memory() -> None:
    assert output_columns(Select(("x", "y"), (1, 0)), (0, 1)) == (2, 1)
    assert output_columns(Select(("x",), (1,)), (0,)) is None
    assert output_columns(Match((1, P, 0)), (0, 2)) == (1, 0)
    assert output_columns(Match((1, P, 0)), (1,)) is None
    assert output_columns(Unit(), (0,)) is None
    assert output_columns(Match((0, P, 1)), None) is None


@pytest.mark.parametrize("tasks", [(3, 2), (2, 5)], ids=str)
def test_what_goes_to_all_tasks_waits_once(tasks: tuple[int, int]) -> None:
    """This also holds where the last stage and the output stage are one step, and where a run resumes with another
    number of tasks."""
    query = "SELECT ?x ?y ?z { ?x :p ?y . ?y :q ?z }"
    system = apply_profile(
        squall.compile(PREFIX + query, lexer="sparql"), window=HoppingWindow(10, 10), output="istream"
    )
    plan = squall.plan(system)
    broadcast_inputs = frozenset(address for address in broadcast_candidates(plan) if address[1] == 1)
    assert broadcast_inputs
    lines = [f"1 :n{number} :p :m{number % 3}\n1 :m{number % 3} :q :o{number}\n" for number in range(12)]
    events = stream("".join([*lines, "12 :n0 :p :k\n"]))
    files = in_memory.MemoryFiles()
    outputs: list[Output] = []
    for number, time in zip(tasks, (1, 12), strict=True):
        program = Program(physical_plan(plan, broadcast_inputs))
        assert program.physical.fused_output_stages
        exchange = in_memory.MemoryEngine(files, number)
        job = micro_batch.MicroBatches(exchange, files, program, BatchLimits())
        actual = in_memory.in_files([event for event in events if event.time == time])
        job.process([*(() if job.log.committed_count else in_memory.start(job)), *in_memory.read(job, actual)])
        outputs += job.outputs()
        job.commit(None)
    job.process(None, last=True)
    outputs += job.outputs()
    assert_as_oracle(system, outputs, events)
    assert len(outputs) == 48
