"""Events of RSP-QL (`EVENT`, `MATCH`): a law, their times, and what is refused. Cases have what they mean."""

from __future__ import annotations

import re

import pytest
from hypothesis import strategies as st

import squall
from squall.checking import lint
from squall.errors import SquallError
from squall.model import Variable
from squall.rdf import Solution
from squall.testing.streams import stream
from squall.translators.sparql.time_patterns import Consumed, Occurrence, Seq, Step, Within
from tests.laws import PLANNERS, examples, on_engines
from tests.named_events import STREAMS, Drawn, hold_by_enumeration, hold_on_engine
from tests.test_ctsparql_laws import braced
from tests.test_sequences import NAMES, SHOWN, X, bound_by, steps

PREFIX = "PREFIX : <http://example.org/>\n"


SELECTIONS: tuple[tuple[str, str], ...] = (("", ""), ("", ""), ("LAST ", ""), ("", "FIRST "))
"""The words in front of the two parts of a sequence. The first one may have one where it is the first of all."""


@st.composite
def queries(draw: st.DrawFn) -> Drawn:
    """Draws a sequence of events and sequences, each with a selection and maybe a bound and consumption, and maybe with
    a window."""
    names: list[Step] = []
    sizes = st.none() | st.integers(2, 6)

    def part(depth: int) -> tuple[str, Occurrence]:
        if depth and draw(st.integers(0, 2)) == 0:
            text, pattern = chain(depth - 1)
            return f"({text})", pattern
        step = draw(steps())
        names.append(Step(step.body, Variable(f"e{len(names) + 1}")))
        return str(names[-1].name), names[-1]

    def chain(depth: int) -> tuple[str, Occurrence]:
        text, pattern = part(depth)
        for place in range(draw(st.sampled_from((1, 1, 2)))):
            before, behind = draw(st.sampled_from(SELECTIONS if not place else (("", ""), ("", "FIRST "))))
            right, following = part(depth)
            text = f"{before}{text} SEQ {behind}{right}"
            pattern = Seq(pattern, following, "last" if before else "nearest" if behind else "each")
        within = draw(sizes)
        if within is not None:
            text, pattern = f"{text} WITHIN PT0.00{within}S", Within(pattern, within)
        if draw(st.booleans()):
            return text, pattern
        if X not in bound_by(pattern) or draw(st.booleans()):
            return f"{text} CONSUME", Consumed(pattern)
        return f"{text} CONSUME BY ?x", Consumed(pattern, (X,))

    text, pattern = chain(1)
    window = draw(sizes)
    clauses = "".join(
        f" FROM NAMED WINDOW <{stream}/w> ON <{stream}> [RANGE PT0.00{window}S]" for stream in STREAMS.values()
    )
    suffix = "" if window is None else "/w"
    events = " ".join(
        f"EVENT {step.name} ON <{STREAMS[_predicate(step)]}{suffix}> {braced(step)}"
        for step in draw(st.permutations(names))
    )
    times = " ".join(f"({end}({name}) AS ?{end}_{name.name})" for name in NAMES for end in ("start", "end"))
    shown = f"SELECT {' '.join(map(str, SHOWN))} {times}{'' if window is None else clauses}"
    if window is not None and isinstance(pattern, Consumed):
        pattern = Consumed(Within(pattern.pattern, window - 1), pattern.keys)
    elif window is not None:
        pattern = Within(pattern, window - 1)
    return Drawn(f"{shown} WHERE {{ {events} MATCH {text} . }}", pattern)


def _predicate(step: Step) -> str:
    (pattern,) = step.body.joinables
    return str(pattern.slots[1]).rpartition("/")[2].rstrip(">")  # type: ignore[union-attr]


@examples(300)
@pytest.mark.more
@pytest.mark.parametrize("planner", PLANNERS)
def test_matches_are_those_of_the_enumeration(planner: str, many: int) -> None:
    hold_by_enumeration("rspql", queries(), planner, many)


@on_engines
def test_engines_agree(builder: str, number: int) -> None:
    hold_on_engine("rspql", queries(), builder, number)


# One by one

EVENTS = "EVENT ?a ON :w { ?x :p ?v } EVENT ?b ON :w { ?y :q ?v }"
WINDOW = "FROM NAMED WINDOW :w ON :s [RANGE PT5S] "
S = stream("1 @:s :a1 :p 1\n2 @:s :a2 :p 1\n4 @:s :b1 :q 1\n5 @:s :b1 :q 1\n")


def answers(text: str, planner: str = "rete") -> list[tuple[int, tuple[str, ...]]]:
    """Returns the solutions of a query by time, in the local names of IRIs and the texts of literals."""
    plan = squall.plan(squall.compile(PREFIX + text, lexer="rspql"), planner)
    outputs = squall.run(plan, list(S), of=Solution)
    return sorted((output.time, tuple(map(_short, output.fact.values))) for output in outputs)


def _short(term: str | None) -> str:
    return "" if term is None else term.split("/")[-1].rstrip(">") if term[0] == "<" else term.split('"')[1]


@pytest.mark.parametrize("planner", ["rete", "greedy"])
def test_relations_of_events(planner: str) -> None:
    where = f"{{ {EVENTS} MATCH LAST ?a SEQ ?b . FILTER(before(?a, ?b) && duration(?a) = 0) }}"
    text = f"SELECT RSTREAM ?x ?y (end(?b) AS ?e) {WINDOW} WHERE {where}"
    assert answers(text, planner) == [(4, ("a2", "b1", "4")), (5, ("a2", "b1", "5"))]


@pytest.mark.parametrize("operator", ["ISTREAM", "RSTREAM", ""])
def test_a_match_is_output_once_by_each_operator(operator: str) -> None:
    text = f"SELECT {operator} ?x {WINDOW} WHERE {{ {EVENTS} MATCH LAST ?a SEQ ?b }}"
    assert answers(text) == [(4, ("a2",)), (5, ("a2",))]


def test_one_event_is_a_match() -> None:
    assert answers("SELECT ?x WHERE { EVENT ?a ON :s { ?x :p ?v } MATCH ?a }") == [(1, ("a1",)), (2, ("a2",))]


REFUSED = [
    (f"{EVENTS}", "there is no `MATCH` of these events", "MATCH ?a SEQ ?b"),
    (f"{EVENTS} MATCH ?a", "the event `?b` is in no `MATCH`", "WINDOW <http://example.org/w>"),
    (f"{EVENTS} MATCH ?a SEQ ?c SEQ ?b", "there is no event `?c`", "EVENT ?c ON"),
    (f"{EVENTS} MATCH ?a SEQ ?b MATCH ?a SEQ ?b", "a query has one `MATCH`", "as a stream"),
    (f"{EVENTS} MATCH ?a SEQ ?b SEQ ?a", "two steps have the name `?a`", "a name of its own"),
    (f"{EVENTS} EVENT ?a ON :t {{ ?x :p 1 }} MATCH ?a SEQ ?b", "two events have the name `?a`", "a name of its own"),
    (f"{EVENTS} MATCH ?a SEQ (?b CONSUME)", "`CONSUME` has no effect on a single step", "in front of it"),
    (f"{EVENTS} MATCH ?a SEQ ?b CONSUME BY ?z .", "`?z` is no key of `CONSUME`", "that each match has"),
    (f"{EVENTS} MATCH FIRST ?a SEQ ?b", "`FIRST ?a` cannot be selected here", "LAST ?a SEQ ?b"),
    (f"{EVENTS} MATCH ?a SEQ LAST ?b", "`LAST ?b` cannot be selected here", "SEQ FIRST ?b"),
    (f"{EVENTS} MATCH LAST ?a SEQ FIRST ?b", "`FIRST ?b` cannot be selected here", "either the latest"),
    (f"{EVENTS} MATCH EVERY ?a SEQ ?b", "`EVERY ?a` cannot be selected here", "leave it out"),
    (f"{EVENTS} OPTIONAL {{ EVENT ?c ON :w {{ ?x :p 1 }} }} MATCH ?a SEQ ?b", "`EVENT` cannot be here", "group of"),
    (f"{EVENTS} OPTIONAL {{ MATCH ?a SEQ ?b }}", "`MATCH` cannot be here", "group of the query"),
    (f"{EVENTS} EVENT ?c ON :s {{ ?x :p 1 }} MATCH ?a SEQ ?b SEQ ?c", "`?c` is on another window", "one length"),
    (f"{EVENTS} EVENT ?c ON :k {{ ?x :p 1 }} MATCH ?c", "not at steps", "[RANGE PT10S]"),
    ("EVENT ?c ON :n { ?x :p 1 } MATCH ?c", "bounds no sequence", "[RANGE PT10S]"),
    (f"{EVENTS} MATCH ?a SEQ ?b . ?a :p ?z", "`?a` is the name of a step, which has no value", "start(?a)"),
    (f"{EVENTS} MATCH ?a SEQ ?b . FILTER(start(?c) > 1)", "there is no step `?c`", "EVENT ?c"),
    (
        "EVENT ?c ON :s { ?x :p 1 OPTIONAL { ?x :q ?v } } EVENT ?d ON :s { ?x :r ?v } MATCH ?c SEQ ?d",
        "`?v` joins",
        "BOUND",
    ),
]


@pytest.mark.parametrize(("where", "message", "hint"), REFUSED, ids=[where for where, *_ in REFUSED])
def test_refused(where: str, message: str, hint: str) -> None:
    windows = f"{WINDOW} FROM NAMED WINDOW :k ON :s [RANGE PT5S STEP PT1S] FROM NAMED WINDOW :n ON :s [ELEMENTS 5]"
    with pytest.raises(SquallError) as caught:
        squall.compile(f"{PREFIX}SELECT * {windows} WHERE {{ {where} }}", lexer="rspql")
    assert message in str(caught.value)
    assert hint in str(caught.value)
    assert re.search(r":2:\d+: translation error: ", str(caught.value))


@pytest.mark.parametrize("operator", ["DSTREAM", "CHANGES"])
def test_matches_never_cease(operator: str) -> None:
    with pytest.raises(SquallError, match=f"a match never ceases to hold(.|\n)*leave `{operator}` out"):
        squall.compile(f"{PREFIX}SELECT {operator} * {WINDOW} WHERE {{ {EVENTS} MATCH ?a SEQ ?b }}", lexer="rspql")


@pytest.mark.parametrize(
    ("on", "within", "stored"), [(":w", "", None), (":s", "WITHIN PT1H", None), (":s", "", "{ ?x :p 1 }")]
)
def test_sequences_that_are_not_bounded_are_reported(on: str, within: str, stored: str | None) -> None:
    events = f"EVENT ?a ON {on} {{ ?x :p 1 }} EVENT ?b ON {on} {{ ?x :q 1 }}"
    text = f"{PREFIX}SELECT * {WINDOW if on == ':w' else ''} WHERE {{ {events} MATCH ?a SEQ ?b {within} }}"
    findings = [(finding.code, finding.origin and finding.origin.words) for finding in lint(text, lexer="rspql")]
    assert findings == ([] if stored is None else [("unbounded-sequence", stored)])
