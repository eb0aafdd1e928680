"""HFC: rules and queries over tuples, held against a look at all combinations of facts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import product
from pathlib import Path
from typing import ClassVar, TypeVar

import pytest
from hypothesis import strategies as st

import squall
from squall.checking import lint
from squall.errors import SquallError
from squall.functions.hfc import FUNCTIONS
from squall.functions.values import date_time
from squall.lexers import hfc
from squall.lexers.hfc.tree import Action, Call, Comparison, Program, Query, Rule, Tuple
from squall.model import AtomPattern, Construct, Pattern, Select, Slot, System, Variable, rules
from squall.rdf import RDF, TUPLE, XSD, Atom, Event, Fact, Solution, Term, Triple, iri, literal
from squall.testing import LexerSuite
from tests import in_memory
from tests.laws import PLANNERS, examples, hold, on_engines

GOLDEN = sorted((Path(__file__).parent / "golden/errors").glob("*.hfc"))
X, Y, Z = map(Variable, "xyz")
P, Q = iri("urn:p"), iri("urn:q")
MEMENTO = """@prefix : <http://example.org/>
$memento
?c :standard ?t1 ?s1 ?e1
?c :standard ?t2 ?s2 ?e2
->
?c :changed ?t1 ?t2 ?e1 ?s2
@test
?t1 != ?t2
DTLess ?s1 ?s2
"""


def read(text: str) -> tuple[Rule | Query, ...]:
    return hfc.lexer(text, "test").items


class TestHfcLexer(LexerSuite):
    lexer = "hfc"
    good: ClassVar = [
        "?x <urn:p> ?y\n->\n?y <urn:p> ?x",
        MEMENTO,
        '$r\n?x <rdf:type> ?y ?s ?e # a comment\n->\n?z <urn:p> "a"@en "5"^^xsd:int\n@action\n?z = MakeUri ?x ?y\n',
        "SELECT DISTINCT ?x WHERE ?x <urn:p> ?y & ?y <urn:p> ?z FILTER ?x != ?y & ?y == ?z\n\n?x ?p ?y -> ?y ?p ?x",
    ]
    bad: ClassVar = [
        ("", 1),
        ("?x <urn:p> ?y", 1),
        ("?x <urn:p> ?y\n->\n?x <urn:p>", 3),
        ("?x <urn:p> ?y\n->\n?x <urn:q> ?y\n@tests\n?x != ?y", 4),
        ("?x p:q ?y\n->\n?x <urn:q> ?y", 1),
        ("?x <urn:p> ?y\n->\n_:b <urn:q> ?y", 3),
        ('?x <urn:p> "y\n->\n?x <urn:q> ?y', 1),
        ("?x <urn:p> ?y\n->\n?x <urn:q> ?y\n@test\n?x = ?y", 5),
    ]


def test_a_rule_has_tuples_tests_and_actions() -> None:
    text = '?x <urn:p> ?y "1"\n->\n?z <urn:q> ?x\n@test\n?x != ?y\nDTLess ?x "2"\n@action\n?z = MakeUri ?x\n'
    first, second = literal("1"), literal("2")
    assert read(text) == (
        Rule(
            "", (Tuple((X, P, Y, first)),), (Tuple((Z, Q, X)),),
            (Comparison(X, Y, False), Call("DTLess", (X, second))), (Action(Z, Call("MakeUri", (X,))),),
        ),
    )  # fmt: skip


@pytest.mark.parametrize("gap", ["\n\n", "\n \t\n", "\r\n\r\n", "\n# of a rule\n\n", "\n\n# of a rule\n", "\n$r\n"])
def test_a_blank_line_or_a_name_begins_a_rule(gap: str) -> None:
    first, second = read(f"?x <urn:p> ?y\n->\n?y <urn:p> ?x{gap}?x <urn:q> ?y\n->\n?y <urn:q> ?x")
    assert isinstance(first, Rule)
    assert isinstance(second, Rule)
    assert (first.body, second.body) == ((Tuple((X, P, Y)),), (Tuple((X, Q, Y)),))
    assert second.name == ("r" if "$" in gap else "")


@pytest.mark.parametrize("line", ["\n", "\n# in between\n", "\r\n", "\n\n", " # behind\n", "\n# one\n\n# two\n"])
def test_other_blank_lines_and_comments_mean_nothing(line: str) -> None:
    text = f"?x <urn:p> ?y{line}->{line}?y <urn:p> ?x{line}@test{line}?x != ?y{line}@action{line}?z = MakeUri ?x"
    assert read(text) == read(text.replace(line, "\n"))


def test_names_of_xml_schema_and_owl_are_known_and_hfc_writes_them_in_brackets() -> None:
    (item,) = read("?x <rdf:type> ?y\n->\n?x rdf:type <urn:a#b>")
    assert isinstance(item, Rule)
    assert item.body[0].terms[1] == item.head[0].terms[1] == iri(f"{RDF}type")


def test_a_query_selects() -> None:
    (item,) = read("$q\nselect distinct ?x ?y where ?x <urn:p> ?y filter ?x != ?y")
    assert item == Query("q", (X, Y), True, (Tuple((X, P, Y)),), (Comparison(X, Y, False),))


# Translation


def compiled(text: str) -> System:
    return squall.compile(text, lexer="hfc")


def test_a_triple_is_a_triple_and_a_longer_tuple_an_atom() -> None:
    (rule,) = rules(compiled("?x <urn:p> ?y\n?x <urn:p> ?y ?s ?e\n->\n?x <urn:q> ?y\n?x <urn:q> ?y ?s"))
    s, e = Variable("s"), Variable("e")
    assert rule.joinables == (Pattern(X, P, Y), AtomPattern(TUPLE, (X, P, Y, s, e)))
    assert rule.consequences == (Construct((Pattern(X, Q, Y), AtomPattern(TUPLE, (X, Q, Y, s)))),)


def test_names_of_rules_and_queries() -> None:
    text = "?x <urn:p> ?y\n->\n?y <urn:p> ?x\n\n$a\nSELECT ?x WHERE ?x <urn:p> ?y\n\nSELECT ?y WHERE ?x <urn:p> ?y"
    systems = list(rules(compiled(text)))
    assert [system.name for system in systems] == ["rule1", "a", "query3"]
    assert [system.consequences for system in systems][1:] == [(Select((X,)),), (Select((Y,)),)]


@pytest.mark.parametrize("program", GOLDEN, ids=lambda path: path.stem)
def test_messages(program: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(program.parent)
    with pytest.raises(SquallError) as caught:
        squall.compile(program.name)
    assert f"{caught.value}\n" == program.with_suffix(".txt").read_text(encoding="utf-8")


def test_there_are_messages() -> None:
    assert len(GOLDEN) >= 3


def test_only_tuples_with_times_come_from_data() -> None:
    times, longer = (lint(f"?a ?b ?c {more}\n->\n?c ?b ?a", lexer="hfc") for more in ("?s ?e", "?s ?e ?f"))
    assert not times
    assert [finding.code for finding in longer] == ["never-fires"]


# Functions


def year(number: int) -> Term:
    return literal(f"{number}-01-01T00:00:00Z", f"{XSD}dateTime")


def tuples(*rows: tuple[Term | int, ...]) -> list[Event]:
    """Returns an event of tuples, whose terms are terms, or years."""
    facts = (Atom(TUPLE, tuple(year(term) if isinstance(term, int) else term for term in row)) for row in rows)
    return [Event(0, tuple(facts))]


def facts(text: str, events: Sequence[Event]) -> list[Fact | Solution]:
    return [output.fact for output in squall.run(squall.plan(compiled(text)), events)]


A, B, C = (iri(f"urn:{name}") for name in "abc")


@pytest.mark.parametrize(
    ("test", "years"),
    [
        ("DTLess ?a ?b", {(1, 2)}),
        ("DTLessEqual ?a ?b", {(1, 2), (2, 2)}),
        ("DTIntersectionNotEmpty ?a ?a ?b ?b", {(2, 2)}),
        ("?a == ?b", {(2, 2)}),
        ("?a != ?b", {(1, 2), (2, 1)}),
        ("<urn:x-squall:time:coincides> ?a ?a ?b ?b", {(2, 2)}),
    ],
)
def test_tests(test: str, years: set[tuple[int, int]]) -> None:
    text = f"?x <urn:p> ?y ?a ?b\n->\n?x <urn:q> ?y ?a ?b\n@test\n{test}"
    events = tuples((A, P, B, 1001, 1002), (A, P, B, 1002, 1002), (A, P, B, 1002, 1001))
    expected = {Atom(TUPLE, (A, Q, B, year(1000 + a), year(1000 + b))) for a, b in years}
    assert set(facts(text, events)) == expected


def test_intervals_that_touch_intersect() -> None:
    """HFC's intervals have both their ends."""
    text = "?x ?p ?y ?a ?b\n?y ?p ?x ?c ?d\n->\n?x <urn:q> ?a\n@test\nDTIntersectionNotEmpty ?a ?b ?c ?d"
    assert facts(text, tuples((A, P, B, 1001, 1002), (B, P, A, 1002, 1003)))
    assert not facts(text, tuples((A, P, B, 1001, 1002), (B, P, A, 1003, 1004)))


def test_what_is_no_time_has_no_order() -> None:
    text = "?x <urn:p> ?y ?a ?b\n->\n?x <urn:q> ?m\n@test\nDTLessEqual ?a ?a\n@action\n?m = DTMax2 ?a ?b"
    assert facts(text, tuples((A, P, B, C, 1001), (A, P, B, 1001, C))) == []


def test_new_nodes() -> None:
    text = "?x <urn:p> ?y ?a\n->\n?u <urn:q> ?n\n@action\n?u = MakeUri ?x ?y\n?n = MakeBlankNode"
    events = tuples((A, P, B, 1001), (A, P, B, 1002), (A, P, C, 1001))
    first = [fact for fact in facts(text, events) if isinstance(fact, Triple)]
    assert (len({fact.subject for fact in first}), len({fact.object for fact in first})) == (2, 3)
    assert {fact.subject for fact in first} == {
        fact.subject for fact in facts(text, events) if isinstance(fact, Triple)
    }, "they are the same in each run"


def test_an_action_reads_the_variables_of_those_before() -> None:
    text = "?x <urn:p> ?y ?a ?b\n->\n?x <urn:q> ?n\n@action\n?m = DTMax2 ?a ?b\n?n = DTMin2 ?m ?a"
    assert facts(text, tuples((A, P, B, 1001, 1002))) == [Triple(A, Q, year(1001))]


def test_functions_have_descriptions() -> None:
    assert all(member.doc for member in FUNCTIONS if isinstance(member, squall.functions.Function))


# The laws


T = TypeVar("T")
NAMES = [iri(f"urn:{name}") for name in "abc"]
quintuple = st.tuples(
    st.sampled_from(NAMES), st.just(P), st.sampled_from(NAMES), st.integers(0, 6), st.integers(0, 6)
).map(lambda row: (*row[:3], *sorted(row[3:])))
data = st.lists(quintuple, max_size=6, unique=True)
Row = tuple[Term, Term, Term, int, int]


def as_events(rows: Iterable[Row], step: int) -> list[Event]:
    """Returns rows as events; each is some ms behind the one before."""
    facts = [Atom(TUPLE, (*row[:3], *map(date_time, row[3:]))) for row in rows]
    return [Event(number * step, (fact,)) for number, fact in enumerate(facts)]


def mementos(rows: Sequence[Row]) -> set[Atom]:
    """Returns what the rule of mementos concludes."""
    changed = iri("http://example.org/changed")
    return {
        Atom(TUPLE, (c1, changed, t1, t2, date_time(e1), date_time(s2)))
        for (c1, _, t1, s1, e1), (c2, _, t2, s2, _) in product(rows, repeat=2)
        if c1 == c2 and t1 != t2 and s1 < s2
    }


@examples(100)
@pytest.mark.parametrize("planner", PLANNERS)
def test_mementos_are_those_of_all_pairs(planner: str, many: int) -> None:
    plan = squall.plan(compiled(MEMENTO.replace(":standard", "<urn:p>")), planner)

    def law(rows: list[Row], step: int) -> None:
        outputs = {output.fact for output in squall.run(plan, as_events(rows, step))}
        assert outputs == mementos(rows)

    hold(law, many, rows=data, step=st.integers(0, 1))


TRANSITIVE = """
?x ?p ?y ?s1 ?e1
?y ?p ?z ?s2 ?e2
->
?x ?p ?z ?s ?e
@test
DTIntersectionNotEmpty ?s1 ?e1 ?s2 ?e2
@action
?s = DTMax2 ?s1 ?s2
?e = DTMin2 ?e1 ?e2
"""


def paths(rows: Sequence[Row], time: int) -> Iterator[tuple[Term, Term]]:
    """Yields the pairs of what is connected at an instant, by all walks in the graph of that instant."""
    graph = {(x, z) for x, _, z, begin, end in rows if begin <= time <= end}
    for start in NAMES:
        reached, following = set[Term](), {y for x, y in graph if x == start}
        while following - reached:
            reached |= following
            following = {y for x, y in graph if x in reached}
        yield from ((start, end) for end in reached)


def check_paths(rows: Sequence[Row], outputs: Iterable[object]) -> None:
    """Fails unless what is given and what follows is just what is connected, at each instant."""
    derived = [fact.arguments for fact in outputs if isinstance(fact, Atom)]
    for time in range(7):
        holding = {(x, z) for x, _, z, begin, end in derived if begin <= date_time(time) <= end}
        facts = {(x, z) for x, _, z, begin, end in rows if begin <= time <= end}
        assert holding | facts == set(paths(rows, time)), time


@examples(100)
@pytest.mark.parametrize("planner", PLANNERS)
def test_what_follows_at_an_instant_is_connected_then(planner: str, many: int) -> None:
    plan = squall.plan(compiled(TRANSITIVE), planner)

    def law(rows: list[Row], step: int) -> None:
        check_paths(rows, [output.fact for output in squall.run(plan, as_events(rows, step), of=Atom)])

    hold(law, many, rows=data, step=st.integers(0, 1))


@on_engines
def test_engines_agree(builder: str, number: int) -> None:
    plan = squall.plan(compiled(TRANSITIVE))

    def law(rows: list[Row], step: int, seed: int) -> None:
        outputs = in_memory.outputs_on(builder, plan, as_events(rows, step), seed)
        check_paths(rows, [output.fact for output in outputs])

    hold(law, number, rows=data, step=st.integers(0, 1), seed=st.integers(0, 1000))


def many_of(strategy: st.SearchStrategy[T], least: int) -> st.SearchStrategy[tuple[T, ...]]:
    return st.lists(strategy, min_size=least, max_size=3).map(lambda members: tuple(members))


@examples(60)
def test_a_program_prints_as_itself(many: int) -> None:
    """A tree that is made by hand, with any terms, is read from its print."""
    slots: list[Slot] = [X, Y, P, literal('a "b"\n#'), literal("x", language="en"), literal("1", f"{XSD}int")]
    terms = st.sampled_from(slots)
    lines = st.lists(terms, min_size=3, max_size=6).map(lambda row: Tuple(tuple(row)))
    calls = st.builds(Call, st.sampled_from(["MakeUri", str(P)]), st.lists(terms, max_size=3).map(tuple))
    comparisons = st.builds(Comparison, terms, terms, st.booleans())
    names, tests = st.sampled_from(["", "r", "r.1-x"]), many_of(st.one_of(comparisons, calls), 0)
    actions = many_of(st.builds(Action, st.just(Z), calls), 0)
    rule = st.builds(Rule, names, many_of(lines, 1), many_of(lines, 1), tests, actions)
    query = st.builds(Query, names, st.just((X, Y)), st.booleans(), many_of(lines, 1), tests)

    def law(items: list[Rule | Query]) -> None:
        program = Program(tuple(items))
        assert hfc.lexer(str(program), "printed") == program

    hold(law, many, items=st.lists(st.one_of(rule, query), min_size=1, max_size=3))


def test_the_documentation_counts_the_lines_of_the_language() -> None:
    """What a language takes is said in docs/extending.md, by file."""
    root = Path(__file__).parent.parent
    sizes = [
        len((root / path).read_text().splitlines())
        for path in (
            "lexers/hfc/hfc.lark", "lexers/hfc/reading.py", "lexers/hfc/tree.py", "lexers/hfc/building.py",
            "translators/hfc/__init__.py", "squall/functions/hfc.py",
        )
    ]  # fmt: skip
    text = " ".join((root / "docs/extending.md").read_text().split())
    grammar, reader, tree, construction, translator, library = sizes
    assert (
        f"a grammar ({grammar} lines), a reader with messages ({reader}), a tree that prints itself ({tree}), its "
        f"construction ({construction}), a translator ({translator}) and a library of functions ({library})"
    ) in text
