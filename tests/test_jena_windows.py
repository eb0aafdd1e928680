"""Windows on patterns of Jena rules: they mean what the same windows mean in LARS programs."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import squall
from squall import plugins
from squall.errors import SquallError
from squall.lexers.jena import lexer
from squall.model import At, Pattern, Select, System, Variable
from squall.rdf import Event, Triple, iri
from squall.testing import assert_as_oracle, stream
from squall.translators.valid_time import WindowedPattern, windowed, windowed_pattern
from tests.laws import PLANNERS, examples_of

E = "http://example.org/"
FIRE = f"""@prefix : <{E}> .
@source :s [ELEMENT]
[alarm: (?r :temp :hot in(3s)) (?r :smoke :yes in(10s)) -> (?r :is :Burning)]
[past: (?r :is :Burning in(5s step 5s)) -> (?r :was :Burning)]
[since: (?r :smoke :yes at(?t 2s)) lessThan(?t, 2000) -> (?r :early :smoke)]
[long: (?r :is :Burning always(2s)) -> (?r :is :Lost)]
"""


@pytest.mark.parametrize("planner", PLANNERS)
def test_windows_on_given_and_derived_facts(planner: str) -> None:
    events = stream("1000 @:s :r :smoke :yes\n4000 @:s :r :temp :hot")
    plan = squall.plan(squall.compile(FIRE, lexer="jena", output="changes"), planner=planner)
    rows = [(out.time, out.change, out.rule) for out in squall.run(plan, events)]
    assert rows == [
        (1000, "insert", "since"),
        (3001, "delete", "since"),
        (4000, "insert", "alarm"),
        (5000, "insert", "past"),
        (6000, "insert", "long"),
        (7001, "delete", "alarm"),
        (7001, "delete", "long"),
        (15000, "delete", "past"),
    ]


def test_a_tree_prints_its_windows() -> None:
    program = lexer(FIRE, "fire.jena")
    text = str(program)
    assert "in(3s)" in text
    assert "at(?t 2s)" in text
    assert "in(5s step 5s)" in text
    assert lexer(text, "fire.jena") == program
    assert len({rule.canonical for rule in program.rules}) == 4


def test_windows_belong_to_the_key_of_a_rule() -> None:
    """Rules that differ in a window alone are different rules."""
    short, long = (lexer(f"@prefix : <{E}> .\n[r: (?a :p ?b in({n}s)) -> (?a :q ?b)]", "x").rules[0] for n in (1, 2))
    assert short.canonical != long.canonical


def test_names_of_instants_do_not_belong_to_the_key_of_a_rule() -> None:
    text = f"@prefix : <{E}> .\n[r: (?a :p ?b at({{0}} 1s)) lessThan({{0}}, 5) -> (?a :q ?b)]"
    first, second = (lexer(text.format(name), "x").rules[0] for name in ("?t", "?u"))
    assert first != second
    assert first.canonical == second.canonical


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        ("(?a :p :x in(3)) -> (?a :q :x)", "`3` is not a length of time"),
        ("(?a :p :x always()) -> (?a :q :x)", "`always` is no window of a pattern here"),
        ("(?a :p :x at(3s)) -> (?a :q :x)", "`at` is no window of a pattern here"),
        ("(?a :p :x in(?t 3s)) -> (?a :q :x)", "`in` is no window of a pattern here"),
        ("(?a :p :x in(3s step 0s)) -> (?a :q :x)", "`in` is no window of a pattern here"),
        ("(?a :p :x within(3s)) -> (?a :q :x)", "a triple has 3 nodes, not 4"),
        ("(?a :p ?t at(?t 3s)) -> (?a :q :x)", "`?t` has a value already"),
        ("(?a :p :x at(?t 3s)) (?a :p :y at(?t 3s)) -> (?a :q :x)", "`?t` has a value already"),
        ("(?a :p :x) -> (?a :q :x in(3s))", "a fact that a rule derives has no window"),
        ("(?a :p :x in(3s)) -> remove(0)", "what a window has seen may be over"),
    ],
)
def test_what_is_no_window_is_an_error_with_its_place(rule: str, message: str) -> None:
    with pytest.raises(SquallError) as error:
        squall.compile(f"@prefix : <{E}> .\n[r: {rule}]", lexer="jena")
    assert message in str(error.value)
    assert ":2:" in str(error.value)
    assert "hint" in str(error.value)


# The law

PREDICATES = {"p": ("a", "b"), "q": ("a", "b", "p"), "z": ("a", "p", "q")}
"""What rules derive, with what their bodies may read."""
WINDOWS = st.sampled_from(
    [
        ("", ""), ("in(2ms)", "in [2]"), ("in(5ms)", "in [5]"), ("always(2ms)", "always in [2]"),
        ("in(4ms step 2ms)", "in [4 step 2]"), ("in(0ms)", "in [0]"),
        ("always(1ms step 2ms)", "always in [1 step 2]"),
        ("at(?T{place} 3ms)", "at T{place} in [3]"),
    ]
)  # fmt: skip


@st.composite
def rules(draw: st.DrawFn) -> tuple[str, str]:
    """Draws a rule, as a Jena rule and as one of LARS."""
    head = draw(st.sampled_from(sorted(PREDICATES)))
    atoms = draw(st.lists(st.tuples(st.sampled_from(PREDICATES[head]), WINDOWS), min_size=1, max_size=3))
    names = [f"X{number}" for number in range(len(atoms) + 1)]
    jena, lars = [], []
    for place, (predicate, (window, lars_window)) in enumerate(atoms):
        subject, value = names[place], names[place + 1]
        jena.append(f"(?{subject} :{predicate} ?{value} {window.format(place=place)})")
        lars.append(f"{predicate}({subject}, {value}) {lars_window.format(place=place)}")
    last = names[-1]
    return (
        f"[{' '.join(jena)} -> (?X0 :{head} ?{last})]",
        f"{head}(X0, {last}) :- {', '.join(lars)}.",
    )


ARRIVALS = st.lists(
    st.tuples(st.integers(0, 3), st.sampled_from("ab"), st.sampled_from("xy"), st.sampled_from("xyz")), max_size=10
)


def events_of(arrivals: list[tuple[int, str, str, str]]) -> list[Event]:
    time, events = 0, []
    for pause, predicate, subject, value in arrivals:
        time += pause
        events.append(Event(time, (Triple(*(iri(E + name) for name in (subject, predicate, value))),)))
    return events


def answers(system: System, planner: str, events: list[Event]) -> list[tuple[int, str, str]]:
    outputs = squall.run(squall.plan(system, planner=planner), events)
    return sorted((out.time, out.change, str(out.fact)) for out in outputs)


@pytest.mark.parametrize("planner", PLANNERS)
@settings(max_examples=examples_of(300), deadline=None)
@given(drawn=st.lists(rules(), min_size=1, max_size=4), arrivals=ARRIVALS)
def test_rules_mean_what_the_same_lars_program_means(
    planner: str, drawn: list[tuple[str, str]], arrivals: list[tuple[int, str, str, str]]
) -> None:
    events = events_of(arrivals)
    jena = "\n".join((f"@prefix : <{E}> .", *(rule for rule, _ in drawn)))
    lars = "\n".join((f"@prefix : <{E}>.", *(rule for _, rule in drawn)))
    system = squall.compile(jena, lexer="jena", window="ELEMENT", output="changes")
    expected = squall.compile(lars, lexer="lars", output="changes")
    assert answers(system, planner, events) == answers(expected, planner, events)


@settings(max_examples=examples_of(100), deadline=None)
@given(drawn=st.lists(rules(), min_size=1, max_size=3), arrivals=ARRIVALS)
def test_the_oracle_agrees(drawn: list[tuple[str, str]], arrivals: list[tuple[int, str, str, str]]) -> None:
    events = events_of(arrivals)
    text = "\n".join((f"@prefix : <{E}> .", *(rule for rule, _ in drawn)))
    system = squall.compile(text, lexer="jena", window="RANGE 3ms", output="istream")
    assert_as_oracle(system, list(squall.run(squall.plan(system), events)), events)


# Rules as text


@st.composite
def written_rules(draw: st.DrawFn) -> str:
    """Draws a Jena rule whose body has windows and times of facts."""
    windows = ["", "in({n}ms)", "always({n}ms)", "in({n}s step 2s)", "at(?T{i} {n}ms)", "start(?T{i})", "end(?T{i})"]
    patterns = []
    for place in range(draw(st.integers(1, 3))):
        window = draw(st.sampled_from([*windows, "interval(?T{i} ?U{i})"]))
        value = draw(st.sampled_from(["?y", "?x", ":c", "5"]))
        text = window.format(n=draw(st.integers(0, 90_000)), i=place)
        patterns.append(f"(?x :{draw(st.sampled_from('pq'))} {value} {text})")
    return f"[r: {' '.join(patterns)} -> (?x :z :c)]"


@pytest.mark.parametrize("language", ["jena", "rif", "rifps"])
@settings(max_examples=examples_of(300), deadline=None)
@given(rules=st.lists(written_rules(), min_size=1, max_size=3))
def test_windows_are_written_as_text_that_means_the_same(language: str, rules: list[str]) -> None:
    system = squall.compile("\n".join((f"@prefix : <{E}> .", *rules)), lexer="jena")
    tree = plugins.load(plugins.TRANSLATORS, language).written(system)
    again = squall.compile(str(plugins.load(plugins.LEXERS, language).written(tree)), lexer=language)
    assert [canonical(rule) for rule in again.subsystems] == [canonical(rule) for rule in system.subsystems]


def canonical(rule: System) -> tuple[object, ...]:
    """Returns what a rule of one name means: patterns with their windows, as a set, and what it derives."""
    return frozenset(windowed_pattern(part) or part for part in rule.joinables), rule.predicates, rule.consequences


@pytest.mark.parametrize("language", ["jena", "rif"])
@pytest.mark.parametrize(
    ("program", "part"),
    [
        ("a(X) :- b(X, _) always in [2].", "windows, grouping or other parts of a query"),
        ("a(X) at T :- b(X, T).", "windows, grouping or other parts of a query"),
    ],
)
def test_what_a_language_cannot_say_is_not_written(language: str, program: str, part: str) -> None:
    system = squall.compile(program, lexer="lars")
    with pytest.raises(SquallError, match=f"cannot be written in `{language}`: it has {part}"):
        plugins.load(plugins.TRANSLATORS, language).written(system)


@pytest.mark.parametrize("mode", ["in", "always", "at", "start"])
def test_a_window_over_a_projection_is_none_of_a_pattern(mode: str) -> None:
    """`always` of (x, _) is about x, and a pattern of x and y in a window is about both."""
    x, y, t = (Variable(name) for name in "xyt")
    pattern = Pattern(x, iri(f"{E}p"), y)
    names = {"at": (t,), "start": (t,)}.get(mode, ())
    for selected, expected in (((y, x), WindowedPattern(pattern, mode, 5 * (mode != "start"), 0, names)), ((x,), None)):
        part = System(joinables=(pattern,), consequences=(Select(selected),))
        assert windowed_pattern(windowed(part, mode, 5, 0, names, None)) == expected
    whole = System(joinables=(pattern,), consequences=(Select((x, y)),))
    assert windowed_pattern(At(whole, t, 5, tick=1000)) is None
