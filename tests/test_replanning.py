"""Runs that replace their plan while they run: what they output does not depend on when, or by which plan."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest
import rdflib
from hypothesis import strategies as st

import squall
from squall.builders.local import adaptation
from squall.builders.local.job import IteratorJob
from squall.builders.runtime.dataflow import Dataflow
from squall.builders.runtime.plan_choice import PlanChoice
from squall.builders.runtime.replanning import stored_inputs
from squall.builders.runtime.state_statistics import state_statistics
from squall.builders.runtime.tuning import Tuning
from squall.contracts import Options, Output, PlanChange, Replanning
from squall.model import Construct, Pattern, Select, Source, System, Variable
from squall.model.windows import HoppingWindow, Landmark, SlidingWindow
from squall.observe.progress import Tally, summary
from squall.plan import Plan
from squall.plan.cardinality import Counts, Statistics
from squall.plan.equivalence import equivalent_nodes
from squall.plan.operators import Distinct, Filter, Join, Match, is_stateful
from squall.rdf import ALWAYS, Event, Solution, Term, Triple, iri, term
from squall.streams import Sources
from squall.testing import assert_as_oracle
from squall.testing.strategies import ALL, event_streams, static_data, systems
from tests.conftest import Squall
from tests.laws import examples, examples_of, hold
from tests.test_durable import EACH, Kept
from tests.test_laws import NO_THRESHOLDS

PREDICATES = tuple(iri(f"http://example.org/{name}") for name in "pqr")
NODES = tuple(iri(f"http://example.org/{name}") for name in "abcd")


def statistics_by(random: Random, plan: Plan) -> Statistics:
    """Returns random statistics of the predicates of a plan."""

    def counts() -> Counts:
        triples = 10 ** random.uniform(0, 6)
        values = tuple(
            (value, triples / 10 ** random.uniform(0, 4)) for value in random.sample(names, min(3, len(names)))
        )
        return Counts(triples, max(triples ** random.random(), 1), max(triples ** random.random(), 1), values)

    matches = (node.op for node in plan.nodes if isinstance(node.op, Match))
    names = sorted({cell for match in matches for cell in match.cells if isinstance(cell, str)})
    return Statistics(Counts(1e6, 1e5, 1e5), tuple((name, counts()) for name in names))


def has_join(plan: Plan) -> bool:
    return any(isinstance(node.op, Join) for node in plan.nodes)


@st.composite
def joins(draw: st.DrawFn) -> System:
    """Draws queries of three to five patterns that are joined in a chain or a star, over streams with a window."""
    x, y, z, w = map(Variable, "xyzw")
    ends: st.SearchStrategy[tuple[Variable, Variable | Term]] = st.sampled_from(
        ((x, y), (y, z), (z, w), (y, x), (x, z), (x, NODES[0]), (z, NODES[1]), (w, y))
    )
    source = Source(window=draw(st.sampled_from((Landmark(), SlidingWindow(3), HoppingWindow(4, 2)))))
    queries = []
    for number in range(draw(st.integers(1, 2))):
        pairs: list[tuple[Variable, Variable | Term]] = [(x, y), *draw(st.lists(ends, min_size=2, max_size=4))]
        patterns = tuple(Pattern(left, draw(st.sampled_from(PREDICATES)), right) for left, right in pairs)
        names = tuple(dict.fromkeys(cell for pair in pairs for cell in pair if isinstance(cell, Variable)))
        head: Select | Construct = Select(names[-2:])
        if draw(st.booleans()):
            template = Pattern(names[0], draw(st.sampled_from((*PREDICATES, iri("urn:new")))), names[-1])
            head = Construct((template,))
        queries.append(System(f"q{number}", (source,), patterns, consequences=(head,)))
    return System(subsystems=tuple(queries), output=draw(st.sampled_from(("istream", "rstream"))))


@st.composite
def triples(draw: st.DrawFn) -> list[Event]:
    """Draws events of a few triples for `joins`, in the order of time."""
    triple = st.builds(Triple, st.sampled_from(NODES), st.sampled_from(PREDICATES), st.sampled_from(NODES))
    events = st.tuples(st.integers(0, 2), st.lists(triple, min_size=1, max_size=6))
    time, stream = 0, []
    for pause, facts in draw(st.lists(events, min_size=4, max_size=10)):
        time += pause
        stream.append(Event(time, tuple(facts)))
    return stream


ALWAYS_REPLANS = Replanning(interval=1, min_gain=0, confirmations=1, max_share=1e9)


@contextmanager
def random_statistics(random: Random) -> Iterator[Options]:
    """Lets runs plan for statistics that are drawn at random. Yields options with which they do so after each batch."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(adaptation, "state_statistics", lambda dataflow, _: statistics_by(random, dataflow.plan))
        yield Options(seed=5, replan=ALWAYS_REPLANS)


def in_pieces(events: Sequence[Event]) -> list[list[Event]]:
    return [[event] for event in events]


def outputs_of(system: System, options: Options, events: Sequence[Event], facts: Sequence[Event]) -> Counter[Output]:
    job = IteratorJob(squall.plan(system, replaceable=True), options, NO_THRESHOLDS)
    return without_rules(job.run(in_pieces(events), facts))


def without_rules(outputs: Iterable[Output]) -> Counter[Output]:
    """Returns outputs without the names of rules: which of several rules a fact is said to be of depends on the
    plan."""
    return Counter(output if isinstance(output.fact, Solution) else output._replace(rule="") for output in outputs)


@examples(60)
def test_outputs_do_not_depend_on_the_plans_of_a_run(many: int) -> None:
    def law(system: System, events: list[Event], facts: list[Event], random: Random) -> None:
        with random_statistics(random) as options:
            outputs = outputs_of(system, options, events, facts)
        assert outputs == outputs_of(system, Options(seed=5), events, facts)

    randoms = st.randoms(use_true_random=False)
    hold(
        law, many, system=systems(features=ALL), events=event_streams(features=ALL), facts=static_data(), random=randoms
    )


@examples(60)
def test_joins_are_as_the_oracle_says_whatever_the_plans_of_a_run(many: int) -> None:
    def law(system: System, events: list[Event], random: Random) -> None:
        with random_statistics(random) as options:
            job = IteratorJob(squall.plan(system, replaceable=True), options, NO_THRESHOLDS)
            assert_as_oracle(system, list(job.run(in_pieces(events))), events)

    hold(law, many, system=joins(), events=triples(), random=st.randoms(use_true_random=False))


@pytest.mark.sampled(2)
@examples(30)
@pytest.mark.parametrize("programs", ["joins", "all"])
def test_a_run_that_replaces_its_plan_resumes(
    programs: str, many: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """This holds wherever it is interrupted, and whatever plan the next run is given and whether it replaces that one:
    a checkpoint belongs to the program. The log is rewritten each time, or only appended to."""

    def law(
        system: System, events: list[Event], facts: list[Event], random: Random, ends: list[int], least: int
    ) -> None:
        tuning = replace(NO_THRESHOLDS, min_log_growth=least)
        folder, sink = tmp_path_factory.mktemp("run"), Kept()
        with random_statistics(random) as options:
            for end in (*ends, None):
                plan, replan = any_plan(system, random), random.choice((ALWAYS_REPLANS, None))
                options = replace(
                    options,
                    checkpoint=folder,
                    sink=sink,
                    checkpoint_interval=EACH,
                    replan=replan if plan.replaceable else None,
                )
                with closing(IteratorJob(plan, options, tuning).run(in_pieces(events), facts)) as outputs:  # type: ignore[type-var]
                    for number, output in enumerate(outputs):
                        sink.outputs.append(output)
                        if number == end:
                            break
        assert without_rules(sink.outputs) == outputs_of(system, Options(seed=5), events, facts)

    system, events = (
        (joins(), triples()) if programs == "joins" else (systems(features=ALL), event_streams(features=ALL))
    )
    facts = st.just([]) if programs == "joins" else static_data(features=ALL)
    hold(
        law, many, system=system, events=events, facts=facts, random=st.randoms(use_true_random=False),
        ends=st.lists(st.integers(0, 9), max_size=3), least=st.sampled_from([-1, 1 << 20]),
    )  # fmt: skip


UPDATES = """PREFIX : <http://example.org/>
INSERT { ?a :q ?c } WHERE { ?a :p ?b . ?b :q ?c . ?c :r ?d } ;
DELETE { ?a :r ?b } WHERE { ?b :p ?a . ?a :q ?c . ?c :q ?b }"""
"""They come to an end: one graph only grows by them, and another one only shrinks."""


@examples(10)
def test_updates_do_not_depend_on_the_plans_of_a_run(many: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    """What they have inserted, and what they are about to change, is that of nodes with other names in each plan."""
    query = (
        "SELECT ?a ?d { ?a <http://example.org/p> ?b . ?b <http://example.org/q> ?c . ?c <http://example.org/r> ?d }"
    )
    names, moves = tmp_path_factory.mktemp("programs"), 0
    (names / "updates.ru").write_text(UPDATES)
    (names / "query.rq").write_text(query)

    def law(events: list[Event], random: Random, ends: list[int], window: str, least: int) -> None:
        nonlocal moves
        system = squall.compile(names / "updates.ru", names / "query.rq", window=window)
        folder, sink = tmp_path_factory.mktemp("run"), Kept()
        with random_statistics(random) as options:
            for end in (*ends, None):
                plan = squall.plan(system, statistics=statistics_by(random, squall.plan(system)), replaceable=True)
                options = replace(options, checkpoint=folder, sink=sink, checkpoint_interval=EACH)
                job = IteratorJob(plan, options, replace(NO_THRESHOLDS, min_log_growth=least))
                with closing(job.run(in_pieces(events))) as outputs:  # type: ignore[type-var]
                    for number, output in enumerate(outputs):
                        sink.outputs.append(output)
                        if number == end:
                            break
                moves += len(job.plan_changes)
        assert without_rules(sink.outputs) == outputs_of(system, Options(seed=5), events, [])

    hold(
        law, many, events=triples(), random=st.randoms(use_true_random=False),
        ends=st.lists(st.integers(0, 9), max_size=3), window=st.sampled_from(["LANDMARK", "RANGE 5ms"]),
        least=st.sampled_from([-1, 1 << 20]),
    )  # fmt: skip
    assert moves > examples_of(many)


def any_plan(system: System, random: Random) -> Plan:
    """Returns a plan of a program by any planner, for any statistics, replaceable or not."""
    plan = squall.plan(system)
    return random.choice(
        (
            plan,
            squall.plan(system, "greedy"),
            squall.plan(system, replaceable=True),
            squall.plan(system, statistics=statistics_by(random, plan)),
            *(squall.plan(system, statistics=statistics_by(random, plan), replaceable=True) for _ in range(4)),
        )
    )


CHAIN = """
SELECT ?a ?e FROM STREAM <urn:s> [RANGE 10s STEP 10s]
WHERE { ?a <urn:p0> ?b . ?b <urn:p1> ?c . ?c <urn:p2> ?d . ?d <urn:p3> ?e }
"""


def unstable(phases: Sequence[int], windows: int = 6, per_window: int = 60) -> list[Event]:
    """Returns a stream in which one of the predicates of `CHAIN` is rare in each phase."""
    random, events = Random(1), list[Event]()
    for number, rare in enumerate(rare for rare in phases for _ in range(windows)):
        for predicate in range(4):
            for _ in range(2 if predicate == rare else per_window):
                subject, value = (f"<urn:n{predicate + step}-{random.randrange(per_window // 6)}>" for step in (0, 1))
                time = number * 10_000 + random.randrange(10_000)
                events.append(
                    Event(time, (Triple(iri(subject[1:-1]), iri(f"urn:p{predicate}"), iri(value[1:-1])),), "urn:s")
                )
    return sorted(events, key=lambda event: event.time)


def chain_job(system: System, **options: object) -> IteratorJob:
    replanning = Replanning(interval=100, max_share=1e9)
    return IteratorJob(squall.plan(system, replaceable=True), replace(Options(replan=replanning), **options))  # type: ignore[arg-type]


def test_a_run_follows_the_stream() -> None:
    """In each phase the joins begin with what is rare."""
    system, events = squall.compile(CHAIN, lexer="csparql"), unstable((3, 0, 3))
    job = chain_job(system)
    outputs = Counter(job.run(in_pieces(events)))
    assert outputs == Counter(squall.run(squall.plan(system), events))
    assert len(job.plan_changes) >= 2
    assert all(change.gain is not None and change.gain >= 1.5 for change in job.plan_changes)
    assert 0 < job.plan_changes[0].watermark < job.plan_changes[-1].watermark <= events[-1].time


def test_a_stable_stream_keeps_its_plan() -> None:
    system, events = squall.compile(CHAIN, lexer="csparql"), unstable((3, 3, 3))
    job = chain_job(system)
    outputs = Counter(job.run(in_pieces(events)))
    assert outputs == Counter(squall.run(squall.plan(system), events))
    assert len(job.plan_changes) <= 1  # the plan that it begins with knows nothing of the data


@pytest.mark.parametrize("confirmations", [1, 2, 3])
@pytest.mark.parametrize("gains", [(1.0,), (9.0,), (9.0, 1.0), (9.0, 9.0, 1.0, 1.0)])
def test_looks_take_no_more_than_their_share(gains: Sequence[float], confirmations: int) -> None:
    now = looked = 0.0
    share = 0.02
    choice = PlanChoice(Replanning(1, confirmations=confirmations, max_share=share), lambda: now)
    looks = 0
    for _ in range(40_000):
        now += 0.25
        if not choice.is_due(1):
            continue
        with choice.timed():
            now += 1.5
            choice.is_confirmed(gains[looks % len(gains)])
        looks += 1
        looked += 1.5
    assert 0.9 * share < looked / now <= 1.1 * share


def test_a_run_that_is_shorter_than_its_first_look_allows_does_not_look() -> None:
    now = 10.0  # what the process has done before
    choice = PlanChoice(Replanning(interval=1, max_share=0.02), lambda: now, expected_seconds=0.5)
    assert not choice.is_due(1)
    now = 34.9
    assert not choice.is_due(1)
    now = 35.1
    assert choice.is_due(1)


def test_the_statistics_are_those_of_what_is_stored() -> None:
    system = squall.compile(
        "@prefix : <urn:> .\n[r: (?x :p ?y) (?y :q ?z) (?x rdf:type :C) -> (?x :r ?z)]",
        lexer="jena",
        window="RANGE 10ms",
    )
    job = IteratorJob(squall.plan(system), Options(), Tuning(min_facts_per_instant=1 << 60))
    p, q, kind, of = iri("urn:p"), iri("urn:q"), iri("http://www.w3.org/1999/02/22-rdf-syntax-ns#type"), iri("urn:C")
    a, b, c = NODES[:3]
    old = [Event(0, (Triple(c, p, a), Triple(b, p, a)))]
    now = [Event(20, (Triple(a, p, b), Triple(a, p, c), Triple(b, q, c), Triple(a, kind, of)))]
    for _ in (*job.start([], 0), *job.process(old), *job.process(now)):
        pass
    counts = dict(state_statistics(job.dataflow, job.watermark).predicates)
    assert (counts[p].triples, counts[p].subjects, counts[p].objects) == (2, 1, 2)
    assert (counts[p].subject_pairs, counts[p].object_pairs) == (4, 2)
    assert (counts[q].triples, counts[q].subjects, counts[q].objects) == (1, 1, 1)
    assert dict(counts[kind].values)[of] == 1


def test_the_statistics_are_those_of_what_is_valid_together() -> None:
    """What the window of the next evaluation holds already is joined with nothing of the present one."""
    text = "SELECT ?x ?z FROM STREAM <urn:s> [RANGE 10s STEP 10s] WHERE { ?x <urn:p> ?y . ?y <urn:q> ?z }"
    system = squall.compile(text, lexer="csparql")
    job = IteratorJob(squall.plan(system), Options(), Tuning(min_facts_per_instant=1 << 60))
    p, q = iri("urn:p"), iri("urn:q")
    a, b, c, d = NODES
    events = [(1, Triple(a, p, b)), (2, Triple(b, q, c)), (10_001, Triple(a, p, c)), (10_002, Triple(b, p, d))]
    sizes = []
    for _ in job.start([], 0):
        pass
    for time, triple in events:
        for _ in job.process([Event(time, (triple,), "urn:s"), Event(time + 1, (), "urn:s")]):
            pass
        counts = dict(state_statistics(job.dataflow, job.watermark).predicates)
        sizes.append([counts[predicate].triples for predicate in (p, q)])
    assert sizes == [[1, 0], [1, 1], [1, 1], [1, 1]]  # before the first evaluation, what comes is all that is known


def test_the_statistics_of_many_rows_are_those_of_a_sample() -> None:
    system = squall.compile("[r: (?x <urn:p> ?y) (?y <urn:q> ?z) -> (?x <urn:r> ?z)]", lexer="jena")
    job = IteratorJob(squall.plan(system), Options(), Tuning(min_facts_per_instant=1 << 60))
    facts = tuple(Triple(iri(f"urn:s{n}"), iri("urn:p"), iri(f"urn:o{n % 50}")) for n in range(10_000))
    for _ in (*job.start([], 0), *job.process([Event(1, facts)])):
        pass
    counts = dict(state_statistics(job.dataflow, job.watermark).predicates)[iri("urn:p")]
    assert counts.triples == pytest.approx(10_000, rel=0.2)
    assert counts.objects == pytest.approx(50, rel=0.2)
    assert counts.subjects > 3000  # an estimate: all that are in the sample came once
    assert counts.object_pairs == pytest.approx(10_000 * 200, rel=0.3)


def test_statistics_with_derived_facts_are_read_again() -> None:
    statistics = Statistics(Counts(3, 2, 1), ((PREDICATES[0], Counts(3, 2, 1)),), with_derived=True)
    assert Statistics.of_data(statistics.data) == statistics
    assert "with_derived" not in Statistics(Counts(3, 2, 1)).data


# Equivalent nodes


def plans(text: str, count: int = 20) -> Iterator[tuple[Plan, Plan]]:
    """Yields a replaceable plan with others of the same program that differ from it."""
    system = squall.compile(text, lexer="jena")
    plan = squall.plan(system, replaceable=True)
    candidates = (
        squall.plan(system, statistics=statistics_by(Random(number), plan), replaceable=True) for number in range(count)
    )
    yield from ((plan, other) for other in candidates if other != plan)


@pytest.mark.parametrize(
    "rule",
    [
        "(?x <urn:p> ?y) (?y <urn:q> ?z) (?z <urn:r> ?w) -> (?w <urn:s> ?x)",
        "(?x <urn:p> ?y) (?x <urn:p> ?z) (?z <urn:p> ?w) lessThan(?y ?w) -> (?w <urn:s> ?x)",
        "(?x <urn:p> ?y) (?y <urn:q> ?z) (?z <urn:r> ?w) noValue(?x <urn:s> ?w) -> (?x <urn:t> ?w)",
        "(?x <urn:s> ?y) (?y <urn:q> ?z) (?z <urn:r> ?w) -> (?x <urn:s> ?w)",
    ],
)
def test_all_state_but_that_of_joins_has_an_equivalent(rule: str) -> None:
    pairs = list(plans(f"[one: {rule}]"))
    assert pairs
    for plan, other in pairs:
        equivalent = equivalent_nodes(plan, other)
        stateful = [node.id for node in other.nodes if is_stateful(node.op) and not isinstance(node.op, Join)]
        assert all(equivalent.get(id) for id in stateful)


@pytest.mark.more
@pytest.mark.parametrize("name", ["owl2rl", "sameas"])
def test_all_state_of_a_rule_set_but_that_of_joins_has_an_equivalent(name: str) -> None:
    system = squall.compile("SELECT ?x { ?x a <urn:C> }", lexer="sparql", rules=[name])
    plan = squall.plan(system, replaceable=True)
    for number in range(4):
        other = squall.plan(system, statistics=statistics_by(Random(number), plan), replaceable=True)
        equivalent = equivalent_nodes(plan, other)
        stateful = [node.id for node in other.nodes if is_stateful(node.op) and not isinstance(node.op, Join)]
        assert all(equivalent.get(id) for id in stateful)


ONTOLOGY = """@prefix : <http://example.org/> . @prefix owl: <http://www.w3.org/2002/07/owl#> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
:p rdfs:subPropertyOf :q ; owl:inverseOf :r . :q a owl:TransitiveProperty ; rdfs:domain :c .
:r a owl:SymmetricProperty . [] a owl:AllDifferent ; owl:members ( :a :b :d ) . :c owl:hasKey ( :r ) .
:path owl:propertyChainAxiom ( :p :q ) ."""


@pytest.mark.more
@examples(3)
def test_owl2rl_does_not_depend_on_the_plans_of_a_run(many: int) -> None:
    """The state of its recursion, keys, chains and contradictions is taken over, and its plan changes."""
    query = "SELECT ?a ?p ?b { ?a ?p ?b FILTER(isIRI(?b)) }"
    ontology = rdflib.Graph().parse(data=ONTOLOGY, format="turtle")
    static = [Event(ALWAYS, tuple(Triple(*map(term, triple)) for triple in sorted(ontology)))]
    moves = 0

    def law(events: list[Event], seed: int) -> None:
        nonlocal moves
        system = squall.compile(query, lexer="sparql", rules=["owl2rl"], window="RANGE 6ms")
        with random_statistics(Random(seed)) as options:
            job = IteratorJob(squall.plan(system, replaceable=True), options, NO_THRESHOLDS)
            outputs = Counter(job.run(in_pieces(events), static))
        moves += len(job.plan_changes)
        assert outputs == outputs_of(system, Options(seed=5), events, static)

    hold(law, many, events=triples(), seed=st.integers(0, 1000))
    assert moves > examples_of(many)


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("(?x <urn:p> ?y) (?y <urn:q> ?z) -> (?x <urn:s> ?z)", "(?x <urn:p> ?y) (?z <urn:q> ?y) -> (?x <urn:s> ?z)"),
        ("(?x <urn:p> ?y) (?y <urn:q> ?z) -> (?x <urn:s> ?z)", "(?x <urn:p> ?y) (?y <urn:q> ?z) -> (?z <urn:s> ?x)"),
        (
            "(?x <urn:p> ?y) (?y <urn:p> ?z) (?z <urn:p> ?x) -> (?x <urn:s> ?y)",
            "(?x <urn:p> ?y) (?y <urn:p> ?z) (?x <urn:p> ?z) -> (?x <urn:s> ?y)",
        ),
        (
            "(?x <urn:p> ?y) (?y <urn:p> ?z) lessThan(?x ?z) -> (?x <urn:s> ?z)",
            "(?x <urn:p> ?y) (?y <urn:p> ?z) lessThan(?z ?x) -> (?x <urn:s> ?z)",
        ),
    ],
)
def test_other_queries_are_not_equivalent(left: str, right: str) -> None:
    first, second = (
        squall.plan(squall.compile(f"[one: {rule}]", lexer="jena"), replaceable=True) for rule in (left, right)
    )
    assert not {node.id for node, _ in second.sinks} & equivalent_nodes(first, second).keys()
    assert {node.id for node, _ in first.sinks} <= equivalent_nodes(first, first).keys()


# Refusals


def test_the_checkpoint_of_a_plan_that_cannot_be_made_again_is_refused(tmp_path: Path) -> None:
    system = squall.compile(CHAIN, lexer="csparql")
    job = chain_job(system, checkpoint=tmp_path / "state")
    assert sum(1 for _ in job.run(in_pieces(unstable((3, 0)))))
    assert job.plan_changes
    plan = replace(squall.plan(system), plan_again=None)
    with pytest.raises(squall.errors.BuilderError) as caught:
        list(IteratorJob(plan, Options(checkpoint=tmp_path / "state")).run([]))
    assert "planned by `rete`, replaceable, with the statistics" in caught.value.message
    assert "`--adapt`" in str(caught.value.hint)


def test_metrics_of_nodes_are_those_of_one_plan() -> None:
    system = squall.compile(CHAIN, lexer="csparql")
    with pytest.raises(squall.errors.BuilderError, match="the metrics of nodes are those of one plan"):
        chain_job(system, measure=True)


def test_a_plan_that_is_not_replaceable_is_refused() -> None:
    system = squall.compile(CHAIN, lexer="csparql")
    with pytest.raises(squall.errors.BuilderError, match=r"(?s)cannot replace its plan\nhint: .*`replaceable=True`"):
        IteratorJob(squall.plan(system), Options(replan=Replanning()))


def test_a_planner_without_replaceable_plans_is_refused() -> None:
    system = squall.compile(CHAIN, lexer="csparql")
    with pytest.raises(squall.errors.UsageError, match="makes no replaceable plans"):
        squall.plan(system, "greedy", replaceable=True)


# The command line


@pytest.mark.parametrize("mode", ["backward", "auto"])
def test_a_run_that_adapts_writes_the_same(
    mode: str, squall: Squall, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(adaptation, "_SECONDS_PER_NODE", 0)  # so that a short run looks
    (tmp_path / "chain.csparql").write_text(f"REGISTER QUERY chain AS {CHAIN}")
    lines = (f"{event.time} {' '.join(map(str, event.facts[0]))} .\n" for event in unstable((3, 0), windows=12))
    (tmp_path / "data.ntt").write_text("".join(lines))
    command = (
        "run",
        str(tmp_path / "chain.csparql"),
        "--source",
        f"urn:s={tmp_path / 'data.ntt'}",
        "--format",
        "ndjson",
    )
    adapt = ("--adapt", mode, "--adapt-interval", "100")
    _, plain, _ = squall(*command)
    code, adapting, messages = squall(*command, *adapt)
    assert (code, sorted(adapting.splitlines())) == (0, sorted(plain.splitlines()))
    assert "of the plan: at " in messages
    assert squall(*command, "--adapt", "off", "--adapt-interval", "100")[1] == plain
    durable = (*command, "--checkpoint", str(tmp_path / "checkpoint"))
    code, output, _ = squall(*durable, *adapt)
    assert (code, sorted(output.splitlines())) == (0, sorted(plain.splitlines()))
    assert squall(*durable, *adapt)[:2] == (0, "")


def test_the_summary_says_when_the_plan_changed_and_why() -> None:
    def shown(*changes: PlanChange) -> str:
        return summary(Sources([]), Tally(plan_changes=changes)).splitlines()[1]

    assert shown(PlanChange(ALWAYS, None), PlanChange(2000, 3.04)) == (
        "  2 changes of the plan: before the first event from the plan of the checkpoint, "
        "at 2000 from one that was estimated to cost 3.0 times as much"
    )
    assert shown(*(PlanChange(time, 2.0) for time in range(7))).endswith(
        "at 4 from one that was estimated to cost 2.0 times as much, and 2 more"
    )


def test_a_run_says_why_its_plan_stays(tmp_path: Path) -> None:
    system, events = squall.compile(CHAIN, lexer="csparql"), in_pieces(unstable((3,)))
    before = IteratorJob(squall.plan(system, "greedy"), Options(checkpoint=tmp_path, checkpoint_interval=EACH))
    with closing(before.run(events)) as first_outputs:  # type: ignore[type-var]
        assert next(first_outputs)
    job = chain_job(system, checkpoint=tmp_path)
    outputs = Counter(job.run(events))
    assert job.plan.planner == "greedy"
    assert job.plan_changes == []
    assert outputs
    assert job.refused_plan == "the plans read the sources in different ways"
    lines = summary(Sources([]), Tally(refused_plan=job.refused_plan)).splitlines()
    assert lines[1].startswith("  the plan stays, though another one may be better: the plans read the sources")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("auto", "--builder", "beam"), "does not replace its plan while it runs"),
        (("forward",), "does not look at its input before it processes it"),
        (("backward", "--planner", "greedy"), "makes no replaceable plans"),
        (("auto", "--profile-nodes", "{folder}/nodes.json"), "the metrics of nodes are those of one plan"),
    ],
)
def test_what_cannot_adapt_says_so(squall: Squall, tmp_path: Path, options: tuple[str, ...], message: str) -> None:
    (tmp_path / "r.jena").write_text("[r: (?x <urn:p> ?y) -> (?x <urn:q> ?y)]")
    (tmp_path / "d.nt").write_text("")
    code, _, messages = squall(
        "run",
        str(tmp_path / "r.jena"),
        "--source",
        str(tmp_path / "d.nt"),
        "--adapt",
        *(option.format(folder=tmp_path) for option in options),
    )
    assert code == 2
    assert message in messages


def test_rows_of_joins_are_not_read_where_other_joins_store_them() -> None:
    """Neither those that a filter lets through: a sample of them would say nothing of what is joined."""
    query = "PREFIX : <http://example.org/> SELECT * { ?x :p ?y . ?y :q ?z . FILTER(?x != ?z) ?z :r ?w . ?w :p ?v }"
    plan = squall.plan(squall.compile(query, lexer="sparql"))
    filters = {node.id for node in plan.nodes if isinstance(node.op, Filter)}
    read = {edge.node for node in plan.nodes if isinstance(node.op, Join) for edge in node.inputs}
    assert filters & read
    sets = {node.id for node in plan.nodes if isinstance(node.op, Distinct)}
    assert stored_inputs(Dataflow(plan)).keys() == sets
