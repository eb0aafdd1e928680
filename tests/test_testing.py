"""The testing kit: the stream notation, differences, cases, and the oracle on examples computed by hand."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

import squall
from squall import testing
from squall.errors import LexerError, PlannerError
from squall.functions.jena import function_iri
from squall.model import AtomPattern, Bind, Call, Construct, Filter, NotExists, Pattern, Source, System, Variable
from squall.rdf import ALWAYS, Atom, Event, Solution, Term, Triple
from squall.testing import cases, difference, isomorphic, oracle, static, stream, term, timed
from squall.testing.strategies import FEATURES
from squall.testing.streams import show

X, Y, Z = map(Variable, "xyz")


def _pattern(text: str) -> Pattern:
    """Returns the pattern ``?x :p ?y``."""
    subject, predicate, value = (Variable(word[1:]) if word[0] == "?" else term(word) for word in text.split())
    return Pattern(subject, predicate, value)


def _rule(name: str, body: str, head: str, *predicates: Filter | Bind | NotExists) -> System:
    """Returns a rule whose body is a text of patterns with ``. `` between them."""
    joinables = tuple(map(_pattern, filter(None, body.split(". "))))
    return System(name, joinables=joinables, predicates=predicates, consequences=(Construct((_pattern(head),)),))


# Streams


def test_a_stream() -> None:
    events = stream("# said\n\n1 :a :p :b , 5 .\n  2 _:n rdf:type \"x\"@en\nalways :a :p '05'^^xsd:int")
    assert events == [
        Event(1, (Triple(term(":a"), term(":p"), term(":b")), Triple(term(":a"), term(":p"), term("5")))),
        Event(2, (Triple(Term("_:n"), term("rdf:type"), Term('"x"@en')),)),
        Event(ALWAYS, (Triple(term(":a"), term(":p"), Term('"05"^^<http://www.w3.org/2001/XMLSchema#int>')),)),
    ]


def test_a_stream_notation_has_streams_removals_and_heartbeats() -> None:
    (fact,) = stream("1 :a :p :b")[0].facts
    events = stream("1 @:s :a :p :b\n2 - :a :p :b\n3 @<urn:s> - :a :p :b\n4\n5 @:s")
    assert events == [
        Event(1, (fact,), "http://example.org/s"),
        Event(2, (), "", (fact,)),
        Event(3, (), "urn:s", (fact,)),
        Event(4, ()),
        Event(5, (), "http://example.org/s"),
    ]


def test_solutions_are_written_as_they_show() -> None:
    line = '3 ?x=:a ?y="a ?b=c"@en ?z='
    ((time, solution),) = timed(line)
    assert (time, solution) == (3, Solution(("x", "y", "z"), (term(":a"), Term('"a ?b=c"@en'), None)))
    assert show(time, solution) == line


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1 :a :p :b\nsoon :a :p :b", "`soon` is no time"),
        ("\n1 :a :p", "is no Turtle statement"),
        ("1 x:a :p :b", "is no Turtle statement"),
        ("1 @:s - :a :p", "is no Turtle statement"),
    ],
)
def test_a_bad_line_is_named(text: str, message: str) -> None:
    with pytest.raises(LexerError, match=message) as caught:
        stream(text, "mine")
    assert caught.value.origin is not None
    assert (caught.value.origin.name, caught.value.origin.line) == ("mine", text.count("\n") + 1)


def test_facts_show_as_they_are_written() -> None:
    lines = ["1 :a rdf:type :b", "always :a :p _:c"]
    assert [show(time, fact) for line in lines for time, fact in timed(line)] == lines
    assert show(1, Atom(term(":r"), (term(":a"), term(":b")))) == "1 :r(:a, :b)"


# Differences


@pytest.mark.parametrize(
    ("came", "due", "differs"),
    [
        ("1 :a :p :b", "1 :a :p :b", ""),
        ("1 :a :p :b\n1 :a :p :b", "1 :a :p :b", "+ 1 :a :p :b"),
        ("2 :a :p :b", "1 :a :p :b", "- 1 :a :p :b\n+ 2 :a :p :b"),
        ("1 :a :p _:x\n2 _:x :p :c", "1 :a :p _:y\n2 _:y :p :c", ""),
        ("1 :a :p _:x\n2 _:y :p :c", "1 :a :p _:y\n2 _:y :p :c", "- 1 :a :p _:y\n+ 1 :a :p _:x"),
        (
            "1 ?x=_:x ?y=\n2 _:x :p :c",
            "1 ?x=_:y ?y=\n2 _:y :p :c",
            "",
        ),
        ("1 ?x=:a ?y=", "1 ?x=:a ?y=:b", "- 1 ?x=:a ?y=:b\n+ 1 ?x=:a ?y="),
        ("1 ?x=:a", "1 ?y=:a", "- 1 ?y=:a\n+ 1 ?x=:a"),
        (
            "1 :a :p _:x\n2 :a :p _:x",
            "1 :a :p _:y\n2 :a :p _:z",
            "- 1 :a :p _:y\n+ 1 :a :p _:x\n- 2 :a :p _:z\n+ 2 :a :p _:x",
        ),
    ],
)
def test_difference(came: str, due: str, differs: str) -> None:
    assert difference(timed(came), timed(due)) == differs


def test_isomorphism_is_one_renaming_for_all_rows() -> None:
    def rows(*texts: str) -> list[tuple[Term, ...]]:
        return [tuple(map(Term, text.split())) for text in texts]

    assert isomorphic(rows("_:a _:b", "_:b _:a"), rows("_:x _:y", "_:y _:x"))
    assert not isomorphic(rows("_:a _:b", "_:b _:a"), rows("_:x _:y", "_:x _:x"))
    assert not isomorphic(rows("_:a _:b"), rows("_:x _:x"))
    assert not isomorphic(rows("_:a"), rows("<x>"))
    assert not isomorphic(rows("_:a"), rows("_:a", "<x>"))


def test_assert_outputs_shows_what_differs() -> None:
    program = "@prefix : <http://example.org/> .\n[r: (?x :p ?y) -> (?x :q ?y)]\n"
    testing.assert_outputs(program, "1 :a :p :b", "1 :a :q :b")
    with pytest.raises(AssertionError, match=r"- 2 :a :q :b\n") as caught:
        testing.assert_outputs(program, "1 :a :p :b", "2 :a :q :b")
    assert "+ 1 :a :q :b" in str(caught.value)


# Cases

CASE = """# one
--- jena
# a comment of the language
[r: (?x :p ?y) -> (?x :q ?y)]
--- output dstream
--- static
:s :p :t
--- events
1 :a :p :b
--- expect
1 :a :q :b

# two
--- jena
-> (:a :p :b).
--- expect
"""


def test_cases() -> None:
    tree, two = cases.parse(CASE, "my.case")
    assert (tree.title, tree.output, two.title, two.output) == ("one", "dstream", "two", "istream")
    assert tree.static == tuple(static(":s :p :t"))
    assert tree.events == tuple(stream("1 :a :p :b"))
    assert tree.expected == tuple(timed("1 :a :q :b"))
    ((language, text),) = tree.programs
    assert language == "jena"
    assert text.splitlines()[2:] == CASE.splitlines()[2:4], "lines keep their numbers"
    assert (two.events, two.expected) == ((), ())


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("--- jena\n", 1, "a section before the first title"),
        ("# t\nhello\n", 2, "text outside of a section"),
        ("# t\n--- jena\nx\n", 1, "needs a program and `--- expect`"),
        ("# t\n--- expect\n", 1, "needs a program and `--- expect`"),
        ("# t\n--- jena\nx\n--- expect\nnow :a :p :b\n", 5, "`now` is no time"),
        ("# t\n--- jena\n--- jena\n--- expect\n", 3, "twice"),
        ("# t\n--- event\n--- expect\n", 2, "`--- event` is no section"),
        ("# t\n--- jena\n--- output istrem\n--- expect\n", 3, "`istrem` is no output"),
        ("# t\n---jena\n--- expect\n", 2, "heads no section"),
        ("# t\n--- jena nowhere.jena\n--- expect\n", 2, "`nowhere.jena` cannot be read: No such file"),
        ("# t\n--- jena a.jena\nx\n--- expect\n", 2, "the program is the file `a.jena`, and there is a text"),
    ],
)
def test_a_bad_case_is_named(text: str, line: int, message: str) -> None:
    with pytest.raises(LexerError, match=message) as caught:
        cases.parse(text, "bad.case")
    assert caught.value.origin is not None
    assert (caught.value.origin.name, caught.value.origin.line) == ("bad.case", line)


def test_a_case_may_name_the_file_of_its_program(tmp_path: Path) -> None:
    (tmp_path / "rules.jena").write_text("[(?a :p ?b) -> (?b :q ?a)]")
    (tmp_path / "cases").mkdir()
    (tmp_path / "cases" / "my.case").write_text("# t\n--- jena ../rules.jena\n\n--- expect\n")
    (case,) = cases.load(tmp_path / "cases" / "my.case")
    assert case.programs == (("jena", "[(?a :p ?b) -> (?b :q ?a)]"),)


# The oracle


def _oracle(system: System, events: str, facts: str = "") -> list[str]:
    outputs = oracle.outputs(system, stream(events), static(facts))
    return [f"{show(time, fact)} {','.join(sorted(names))}" for time, fact, names, _ in outputs]


def test_oracle_joins() -> None:
    rule = _rule("r", "?x :p ?y. ?y :p ?z", "?x :q ?z")
    assert _oracle(rule, "1 :a :p :b\n2 :b :p :c\n3 :c :p :c") == ["2 :a :q :c r", "3 :b :q :c r", "3 :c :q :c r"]


def test_oracle_matches_constants_by_value_and_variables_by_term() -> None:
    rule = _rule("r", "?x :p 5. ?x :p ?v. ?y :n ?v", "?y :q ?x")
    events = '1 :a :p "05"^^xsd:integer\n2 :b :n 5\n3 :c :n "05"^^xsd:integer'
    assert _oracle(rule, events) == ["3 :c :q :a r"]


def test_oracle_repeated_variables() -> None:
    assert _oracle(_rule("r", "?x ?p ?x", "?x :q ?p"), "1 :a :p :b\n2 :a :p :a") == ["2 :a :q :p r"]


def test_oracle_recursion_and_names_of_rules() -> None:
    system = System(subsystems=(_rule("base", "?x :p ?y", "?x :t ?y"), _rule("step", "?x :t ?y. ?y :p ?z", "?x :t ?z")))
    assert _oracle(system, "1 :a :p :b\n2 :b :p :a\n3 :a :p :a") == [
        "1 :a :t :b base",
        "2 :a :t :a step",
        "2 :b :t :a base,step",
        "2 :b :t :b step",
    ]


def test_the_oracle_reads_conclusions_of_reentrant_rules_only() -> None:
    rule = replace(_rule("r", "?x :p ?y", "?y :p ?x"), reentrant=False)
    assert _oracle(rule, "1 :a :p :b") == ["1 :b :p :a r"]


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        ("istream", ["1 :a :q :b r", "4 :c :q :d r"]),
        ("dstream", ["3 :a :q :b r"]),
        ("rstream", ["1 :a :q :b r", "2 :a :q :b r", "4 :c :q :d r"]),
    ],
)
def test_oracle_negation_by_output(output: str, expected: list[str]) -> None:
    rule = _rule("r", "?x :p ?y", "?x :q ?y", NotExists((_pattern("?x :r ?any"),)))
    assert _oracle(replace(rule, output=output), "1 :a :p :b\n2 :z :z :z\n3 :a :r :z\n4 :c :p :d") == expected


def test_oracle_negates_the_whole_model_of_the_stratum_below() -> None:
    system = System(
        subsystems=(
            _rule("open", "?x :p ?y", "?x :open ?y", NotExists((_pattern("?x :done ?any"),))),
            _rule("close", "?x :end ?y", "?x :done ?y"),
        )
    )
    assert _oracle(system, "1 :a :p :b\n1 :a :end :b\n2 :c :p :d") == ["1 :a :done :b close", "2 :c :open :d open"]


def test_oracle_refuses_a_cycle_through_negation() -> None:
    rule = _rule("r", "?x :p ?y", "?x :q ?y", NotExists((_pattern("?x :q ?any"),)))
    with pytest.raises(PlannerError, match="`r` depends on its own negation"):
        oracle.answers(rule, [])


def test_oracle_computes() -> None:
    total = Bind(Z, Call(function_iri("sum"), (Y, Y)))
    large = Filter(Call(function_iri("greaterThan"), (Z, term("5"))))
    rule = _rule("r", "?x :p ?y", "?x :q ?z", total, large)
    events = '1 :a :p "2"^^xsd:int\n2 :a :p "3"^^xsd:int\n3 :a :p :b'
    assert _oracle(rule, events) == ['2 :a :q "6"^^<http://www.w3.org/2001/XMLSchema#int> r']


def test_oracle_passes_unbound_variables_as_unbound() -> None:
    rule = _rule("r", "?x :p ?y", "?x :q ?y", Filter(Call(function_iri("unbound"), (Z,))))
    assert _oracle(rule, "1 :a :p :b") == ["1 :a :q :b r"]


def test_oracle_timed_functions_see_since_when() -> None:
    rule = _rule("r", "?x :p ?y", "?x :at ?z", Bind(Z, Call(function_iri("now"), ())))
    assert _oracle(replace(rule, output="rstream"), "0 :a :p :b\n86400000 :c :p :d") == [
        '0 :a :at "1970-01-01T00:00:00Z"^^<http://www.w3.org/2001/XMLSchema#dateTime> r',
        '86400000 :a :at "1970-01-01T00:00:00Z"^^<http://www.w3.org/2001/XMLSchema#dateTime> r',
        '86400000 :c :at "1970-01-02T00:00:00Z"^^<http://www.w3.org/2001/XMLSchema#dateTime> r',
    ]


def test_oracle_static_facts_axioms_and_late_events() -> None:
    system = System(subsystems=(_rule("axiom", "", ":a :p :b"), _rule("r", "?x :p ?y", "?x :q ?y")))
    assert _oracle(system, "5 :c :p :d\n4 :e :p :f", ":s :p :t") == [
        "always :a :p :b axiom",
        "always :a :q :b r",
        "always :s :q :t r",
        "5 :c :q :d r",
    ]


def test_oracle_atoms_and_streams() -> None:
    rule = System(
        "r",
        sources=(Source("http://example.org/s"),),
        joinables=(AtomPattern(term(":r"), (X, Y, X)),),
        consequences=(Construct((AtomPattern(term(":t"), (Y,)),)),),
    )
    fitting, other = Atom(term(":r"), tuple(map(term, (":a", ":b", ":a")))), Atom(term(":r"), (term(":a"),))
    events = [Event(1, (fitting, other, *stream("1 :a :p :b")[0].facts), "http://example.org/s"), Event(2, (fitting,))]
    assert oracle.outputs(rule, events) == [(1, Atom(term(":t"), (term(":b"),)), frozenset({"r"}), "")]


def test_an_atom_is_written_as_it_is_shown() -> None:
    ((time, atom), (_, bare)) = timed('2 :between(:a, 5, "b c"@en)\n3 :now()')
    assert atom == Atom(term(":between"), (term(":a"), term("5"), term('"b c"@en')))
    assert bare == Atom(term(":now"), ())
    assert timed(show(time, atom)) == [(2, atom)]


def test_the_page_names_every_feature() -> None:
    page = (Path(__file__).parent.parent / "docs" / "testing.md").read_text(encoding="utf-8")
    assert [name for name in FEATURES if f"`{name}`" not in page] == []


BROKEN = """
from squall import testing
from squall.errors import PluginError
testing.assert_outputs("(?x <http://example.org/p> ?y) -> (?y <http://example.org/q> ?x) .", "1 :a :p :b", "1 :b :q :a")
try:
    testing.PlannerSuite
except PluginError as error:
    print(error)
"""


@pytest.mark.more
@pytest.mark.parametrize(
    ("content", "reason"),
    [("import no_such_library", "No module named 'no_such_library'"), ("", "has no `register_assert_rewrite`")],
)
def test_a_broken_pytest_is_one_error_of_the_suites(
    tmp_path: Path, content: str, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "pytest.py").write_text(content)
    monkeypatch.setenv("PYTHONPATH", str(Path(squall.__file__).parent.parent))
    process = subprocess.run([sys.executable, "-c", BROKEN], cwd=tmp_path, capture_output=True, text=True)
    assert process.stderr == ""
    assert "`squall.testing.PlannerSuite` needs `pytest`, which cannot be imported: " in process.stdout
    assert reason in process.stdout
    assert "pip install --force-reinstall pytest" in process.stdout
