"""RIF documents as systems: their conclusions with all planners and the oracle, and refused documents."""

from __future__ import annotations

from pathlib import Path

import pytest

import squall
from squall.errors import BuilderError, Errors, SquallError, TranslatorError
from squall.lexers.rif import exchange, presentation
from squall.model import Stream, rules, streams, warnings
from squall.rdf import OWL, RDF, RDFS, XSD, Atom, Event, Fact, Term, Triple, iri, literal
from squall.rdf.compounds import LIST, compound
from squall.streams.sources.documents import load
from squall.testing.oracle import outputs
from squall.translators.rif import translator

E = "http://e.org/"
A, B, C, P, Q = (iri(E + name) for name in "abcpq")
TYPE, SUBCLASS = iri(RDF + "type"), iri(RDFS + "subClassOf")
INT = XSD + "integer"
NUMERIC = "External(func:numeric"


def number(value: int | str, kind: str = "integer") -> Term:
    return literal(str(value), XSD + kind)


def text(*sentences: str, before: str = "") -> str:
    return f"Document(Prefix(ex <{E}>) {before} Group({' '.join(sentences)}))"


def derived(*sentences: str, facts: tuple[Fact, ...] = ()) -> set[Fact]:
    """Returns the conclusions, equal for both planners, for the oracle, and for the rules as XML."""
    program = text(*sentences)
    system = squall.compile(program, lexer="rifps")
    assert squall.compile(exchange.lexer.written(presentation.lexer(program, "t")), lexer="rif") == system
    events = [Event(0, facts)]
    results = {out.fact for out in squall.run(squall.plan(system), events)}
    assert results == {out.fact for out in squall.run(squall.plan(system, "greedy"), events)}
    assert results == {output[1] for output in outputs(system, events)}
    return {fact for fact in results if isinstance(fact, Atom | Triple)}


def values(relation: str, *sentences: str, facts: tuple[Fact, ...] = ()) -> set[tuple[Term, ...]]:
    """Returns the derived arguments of a relation."""
    result = derived(*sentences, facts=facts)
    return {fact.arguments for fact in result if isinstance(fact, Atom) and fact.relation == iri(E + relation)}


GIVEN = ("ex:p(1)", "ex:p(2)", "ex:q(2 3)", "ex:q(3 4)")
N1, N2, N3, N4 = (number(value) for value in (1, 2, 3, 4))


@pytest.mark.parametrize(
    ("rule", "rows"),
    [
        ("Forall ?x (ex:r(?x) :- ex:p(?x))", {(N1,), (N2,)}),
        ("Forall ?x ?y ?z (ex:r(?x ?z) :- And(ex:q(?x ?y) ex:q(?y ?z)))", {(N2, N4)}),
        ("ex:r() :- ex:p(1)", {()}),
        ("ex:r() :- ex:p(3)", set()),
        ("ex:r() :- And()", {()}),
        ("ex:r() :- Or()", set()),
        ("And(ex:r(1) ex:r(2)) :- ex:p(1)", {(N1,), (N2,)}),
        ("Forall ?x (ex:r(?x) :- Or(ex:p(?x) ex:q(?x 4)))", {(N1,), (N2,), (N3,)}),
        ("Forall ?x (ex:r(?x) :- And(ex:p(?x) Or(?x = 1 ex:q(?x 3))))", {(N1,), (N2,)}),
        ("Forall ?x (ex:r(?x) :- And(ex:p(?x) Exists ?y (ex:q(?x ?y))))", {(N2,)}),
        # An inner `?x` is another one; so is each of two that are called alike.
        ("Forall ?x (ex:r(?x) :- And(ex:p(?x) Exists ?x (ex:q(?x 4))))", {(N1,), (N2,)}),
        ("Forall ?x (ex:r(?x) :- And(ex:p(?x) Exists ?y (ex:q(?y 3)) Exists ?y (ex:q(?y 4))))", {(N1,), (N2,)}),
        ("Forall ?x ?y (ex:r(?y) :- And(ex:p(?x) ?y = ?x))", {(N1,), (N2,)}),
        ("Forall ?x ?y ?z (ex:r(?z) :- And(?z = ?y ?y = ?x ex:p(?x)))", {(N1,), (N2,)}),
        ("Forall ?x (ex:r(?x) :- And(ex:p(?x) ?x = 1.0))", {(N1,)}),
        ("Forall ?x ?y (ex:r(?y) :- And(?y = External(func:numeric-add(?x 1)) ex:p(?x)))", {(N2,), (N3,)}),
        ("Forall ?x (ex:r(External(func:numeric-add(?x 1))) :- ex:p(?x))", {(N2,), (N3,)}),
        ("Forall ?x (ex:r(?x) :- ex:p(External(func:numeric-add(?x 1))))", {(number(0),), (N1,)}),
        ("Forall ?x (ex:r(?x) :- ex:p(External(func:numeric-subtract(5 ?x))))", {(N4,), (N3,)}),
        ("Forall ?x (ex:r(?x) :- And(ex:p(?x) External(pred:numeric-less-than(?x 2))))", {(N1,)}),
        ("Forall ?x ?y (ex:r(?y) :- And(ex:p(?x) ?y = List(?x List(0))))", {
            (compound(LIST, [value, compound(LIST, [number(0)])]),) for value in (N1, N2)}),
        ("Forall ?x (ex:r(?x) :- External(pred:list-contains(List(5 6) ?x)))", {(number(5),), (number(6),)}),
    ],
)  # fmt: skip
def test_conditions(rule: str, rows: set[tuple[Term, ...]]) -> None:
    assert values("r", *GIVEN, rule) == rows


LISTS = ("ex:l(List(1 2 3))", "ex:l(List(1))", "ex:l(List())", "ex:l(ex:f(1 ex:g(2)))", "ex:l(ex:f(2 ex:g(2)))")


@pytest.mark.parametrize(
    ("rule", "rows"),
    [
        ("Forall ?x ?y (ex:r(?x ?y) :- ex:l(List(?x | ?y)))", {
            (N1, compound(LIST, [N2, N3])), (N1, compound(LIST, []))}),
        ("Forall ?x (ex:r(?x) :- ex:l(List(?x)))", {(N1,)}),
        ("Forall ?x ?y (ex:r(?x ?y) :- ex:l(ex:f(?x ex:g(?y))))", {(N1, N2), (N2, N2)}),
        ("Forall ?x (ex:r(?x) :- ex:l(ex:f(?x ex:g(?x))))", {(N2,)}),
        ("ex:r() :- ex:l(ex:f(1 ex:g(2)))", {()}),
        ("ex:r() :- ex:l(ex:f(1 2))", set()),
        ("Forall ?x ?y (ex:r(List(0 | ?y)) :- ex:l(List(?x | ?y)))", {
            (compound(LIST, [number(0), N2, N3]),), (compound(LIST, [number(0)]),)}),
        ("Forall ?x ?l (ex:r(?x) :- And(ex:l(?l) ?l = ex:f(?x ex:g(2))))", {(N1,), (N2,)}),
        ("Forall ?x (ex:r(?x) :- Exists ?l (And(?l = List(?x 2 | List(3)) ex:l(?l))))", {(N1,)}),
    ],
)  # fmt: skip
def test_functions_and_lists(rule: str, rows: set[tuple[Term, ...]]) -> None:
    assert values("r", *LISTS, rule) == rows


def test_open_lists_in_conclusions_are_lists() -> None:
    result = values("l", "ex:l(List(1 | List(2 3)))")
    assert result == {(compound(LIST, [N1, N2, N3]),)}


def test_frames_are_triples_and_named_arguments_are_relations_of_their_own() -> None:
    assert derived("ex:a[ex:p -> 1 ex:q -> ex:b]") == {Triple(A, P, N1), Triple(A, Q, B)}
    assert derived("ex:a[]") == set()
    assert values("r", "ex:n(b -> 1 a -> 2)", "Forall ?x (ex:r(?x) :- ex:n(a -> ?x b -> 1))") == {(N2,)}
    assert values("r", "ex:n(a -> 1)", "Forall ?x (ex:r(?x) :- ex:n(b -> ?x))") == set()
    assert values("r", "ex:n(1)", "Forall ?x (ex:r(?x) :- ex:n(a -> ?x))") == set()
    rule = "Forall ?x ?y (?y[ex:q -> ?x] :- And(?x[ex:p -> ?y] ?x[]))"
    assert derived(rule, facts=(Triple(A, P, B),)) == {Triple(B, Q, A)}


def test_classes() -> None:
    result = derived("ex:a # ex:b", "ex:b ## ex:c", "ex:c ## ex:d")
    d = iri(E + "d")
    assert result == {
        *(Triple(A, TYPE, item) for item in (B, C, d)),
        Triple(B, SUBCLASS, C), Triple(C, SUBCLASS, d), Triple(B, SUBCLASS, d),
    }  # fmt: skip
    existing = (Triple(B, SUBCLASS, C), Triple(A, TYPE, B))
    assert values("r", "Forall ?x ?y (ex:r(?x) :- ?x ## ?y)", facts=existing) == set(), "data say nothing of `##`"
    assert values("r", "ex:r(?x) :- ?x # ex:b".join(("Forall ?x (", ")")), facts=existing) == {(A,)}


def test_constants() -> None:
    inputs = 'ex:c("x"^^xs:string "x@"^^rdf:PlainLiteral "x@en"^^rdf:PlainLiteral "x"@en "http://e.org/a"^^rif:iri)'
    x, tagged = literal("x"), literal("x", language="en")
    assert values("c", inputs) == {(x, x, tagged, tagged, A)}
    (first,) = values("c", "ex:c(_a)")
    (second,) = values("c", "ex:c(_a ) ex:d(1)")
    assert first != second, "local constants of two documents are apart"


# Equality in conclusions


def test_equal_terms_are_replaced_everywhere() -> None:
    assert values("r", "ex:r(ex:a)", "ex:a = ex:b", "ex:b = ex:c") == {(A,), (B,), (C,)}
    assert derived("ex:a[ex:p -> ex:a]", "ex:a = ex:b") == {Triple(s, P, o) for s in (A, B) for o in (A, B)}
    assert values("r", "ex:s(ex:f(ex:a))", "ex:a = ex:b", "ex:r() :- ex:s(ex:f(ex:b))") == {()}
    assert values("r", "ex:s(List(List(ex:a)))", "ex:a = ex:b", "ex:r() :- ex:s(List(List(ex:b)))") == {()}
    assert values("r", "ex:s(List(ex:a))", "List(ex:a) = List(ex:b)", "ex:r(ex:b) :- ex:a = ex:b") == {(B,), (A,)}
    rule = "Forall ?x ?y ?z (?y = ?z :- And(ex:s(?x ?y) ex:s(?x ?z)))"
    assert values("r", rule, "ex:s(1 ex:a)", "ex:s(1 ex:b)", "ex:r(1) :- ex:b = ex:a") == {(N1,)}
    assert values("r", "ex:f(ex:a) = ex:g(ex:b)", "ex:r(1) :- ex:g(ex:b) = ex:f(ex:a)") == {(N1,)}
    assert values("r", "ex:a = ex:b", "ex:r(1) :- 2 = 2.0", "ex:r(2) :- ex:b = ex:c") == {(N1,)}


STRING = f'External(pred:iri-string({{}} "{E}a"))'


@pytest.mark.parametrize(
    ("sentences", "rows"),
    [
        # a constant, what is in a list, what a conclusion computes
        (("ex:a = ex:b", "ex:r(1) :- " + STRING.format("ex:b")), {(N1,)}),
        (("ex:c = ex:b", "ex:r(1) :- " + STRING.format("ex:b")), set()),
        (("ex:a = ex:b", "ex:r(1) :- External(pred:list-contains(List(ex:b) ex:a))"), {(N1,)}),
        (('ex:a = "abc"', "ex:r(External(func:string-length(ex:a)))"), {(N3,)}),
        # a variable that has to be one thing here and another there
        (
            (
                'ex:a = "abc"',
                "ex:s(ex:a)",
                "Forall ?x (ex:r(1) :- And(ex:s(?x) External(func:string-length(?x)) = 3 " + STRING.format("?x") + "))",
            ),
            {(N1,)},
        ),
        (
            (
                f'ex:b = "{E}a"',
                "ex:a = ex:b",
                "ex:s(ex:b)",
                "Forall ?x (ex:r(1) :- And(ex:s(?x) External(pred:iri-string(?x ?x))))",
            ),
            {(N1,)},
        ),
        # a variable that is computed, and the value of a function
        (
            (
                f'ex:b = "{E}a"',
                "ex:a = ex:b",
                f'Forall ?x (ex:r(1) :- And(?x = External(func:concat("{E}" "a")) {STRING.format("?x")}))',
            ),
            {(N1,)},
        ),
        (
            (f'ex:a = "{E}a"', f'ex:r(1) :- {STRING.format(f"""External(func:concat("{E}" "a"))""")}'),
            {(N1,)},
        ),
    ],
)
def test_equal_terms_are_replaced_in_external_terms(sentences: tuple[str, ...], rows: set[tuple[Term, ...]]) -> None:
    assert values("r", *sentences) == rows


def test_ways_to_replace_arguments_are_counted() -> None:
    calls = " ".join(f"External(pred:is-literal-integer(External(func:numeric-add(?x {n}))))" for n in range(6))
    with pytest.raises(SquallError, match="more than 256 ways to replace arguments"):
        squall.compile(text("ex:a = ex:b", f"Forall ?x (ex:r(?x) :- And(ex:s(?x) {calls}))"), lexer="rifps")


@pytest.mark.parametrize("equation", ['"a" = "b"', "1 = 2", '"a" = List(1)', "List(1) = List(2)", "List() = List(1)"])
def test_values_that_come_to_be_equal_make_a_program_inconsistent(equation: str) -> None:
    for sentences in ([equation], ["ex:a = " + equation.partition(" = ")[0], "ex:a = " + equation.partition(" = ")[2]]):
        plan = squall.plan(squall.compile(text(*sentences, "ex:p(1)"), lexer="rifps"))
        with pytest.raises(BuilderError, match="the program is inconsistent"):
            list(squall.run(plan, []))


@pytest.mark.more
def test_equality_without_an_end_is_an_error() -> None:
    plan = squall.plan(squall.compile(text("ex:a = ex:f(ex:a)", "ex:r(ex:f(ex:a))"), lexer="rifps"))
    with pytest.raises(BuilderError, match="`rif:congruence` nests terms more than 100 levels deep"):
        list(squall.run(plan, []))


# What is refused


@pytest.mark.parametrize(
    ("sentence", "message"),
    [
        ("ex:p(?x)", "the variable `?x` is not declared"),
        ("Forall ?x (ex:p(?x ?y) :- ex:q(?x))", "the variable `?y` is not declared"),
        ("ex:a = ex:b Forall ?y (ex:p(?y) :- ex:q(?x ?y))", "the variable `?x` is not declared"),
        ("ex:a = ex:b ex:p(1) :- External(pred:is-list(?x))", "the variable `?x` is not declared"),
        ("ex:a = ?x", "the variable `?x` is not declared"),
        ("Forall ?x (ex:p(?x))", "nothing gives a value to `?x`: the rule is not safe"),
        ("Forall ?x ?y (ex:p(?y) :- And(ex:q(?x) ?y = ?y))", "nothing gives a value to `?y`"),
        ("Forall ?x (ex:p(1) :- External(pred:numeric-less-than(?x 2)))", "nothing gives a value to `?x`"),
        ("Forall ?x ?y (ex:p(?x ?y) :- Or(ex:q(?x ?y) ex:q(?x 1)))", "nothing gives a value to `?y`"),
        ("Forall ?x (ex:p(?x) :- External(pred:is-list(?x)))", "nothing gives a value to `?x`"),
        ("ex:p(1) :- External(ex:no(1))", f"there is no external predicate <{E}no>"),
        ("ex:p(External(func:nunmeric-add(1 2)))", "there is no external function"),
        ("ex:p(External(pred:is-list(1)))", "is a predicate: it cannot be a term"),
        ("ex:p(1) :- External(func:numeric-add(1 2))", "is a function: it cannot be a formula"),
        ("ex:p(External(func:numeric-add(1)))", "does not take 1 argument"),
        ("ex:p(ex:p)", f"`{E}p` is an individual here, and a predicate before"),
        ("ex:p(1) ex:q(ex:p(1))", f"`{E}p` is a function here, and a predicate before"),
        ('ex:p("x"^^xs:integer)', "`x` is not in the lexical space of"),
        ('ex:p("a  b"^^xs:token)', "`a  b` is not in the lexical space of"),
        ('ex:p("P1M"^^xs:dayTimeDuration)', "`P1M` is not in the lexical space of"),
        ('ex:p("a@1"^^rdf:PlainLiteral)', "`a@1` is no rdf:PlainLiteral"),
        ('ex:p("a@en--ltr"^^rdf:PlainLiteral)', "base directions of texts (RDF 1.2) are not supported"),
        ('ex:p("a"@en-GB--rtl)', "`a@en-GB--rtl`: base directions of texts (RDF 1.2) are not supported"),
        ('ex:p("x"^^rdf:PlainLiteral)', "`x` is no rdf:PlainLiteral"),
        ('"a"[ex:p -> 1]', '`"a"` cannot have attributes in a conclusion'),
        ("ex:a[1 -> 1]", "cannot be an attribute of a conclusion"),
        ("ex:p(a -> 1 a -> 2)", "the argument `a` is given twice"),
        ("ex:r(1) :- And(" + "Or(ex:p(1) ex:p(2))" * 9 + ")", "this condition has more than 256 alternatives"),
    ],
)
def test_invalid_documents_are_refused_with_the_place(sentence: str, message: str) -> None:
    with pytest.raises(SquallError) as caught:
        squall.compile(text(sentence), lexer="rifps")
    first = caught.value.errors[0] if isinstance(caught.value, Errors) else caught.value
    assert message in first.message
    assert first.origin is not None


def test_all_errors_of_a_document_are_reported() -> None:
    with pytest.raises(Errors) as caught:
        squall.compile(text("Forall ?x (ex:p(?x))", "Forall ?y (ex:p(?y))"), lexer="rifps")
    assert len(caught.value.errors) == 2


# Names, imports


def test_rules_are_named_by_their_meta_data_or_by_their_place() -> None:
    program = text(
        "(* ex:one *) Forall ?x (ex:p(?x) :- ex:q(?x))", "ex:p(1)", "Forall ?x ((* ex:in *) ex:p(?x) :- ex:q(?x))"
    )
    assert [rule.name for rule in rules(squall.compile(program, lexer="rifps"))] == [E + "one", "rule2", E + "in"]


def imported(folder: Path, main: str, **files: str) -> squall.System:
    for name, content in {"main": main, **files}.items():
        (folder / f"{name}.rifps").write_text(content, encoding="utf-8")
    return squall.compile(folder / "main.rifps", documents={"http://e.org/other": str(folder / "other.rifps")})


def test_rules_are_imported_once_with_local_constants_of_their_own(tmp_path: Path) -> None:
    main = text("ex:p(_a)", before="Import(<other.rifps>) Import(<http://e.org/other>)")
    system = imported(tmp_path, main, other=text("ex:p(_a)", before="Import(<main.rifps>)"))
    results = {out.fact for out in squall.run(squall.plan(system), [])}
    assert len(results) == len(list(rules(system))) == 2


def test_a_document_that_is_not_there_is_refused(tmp_path: Path) -> None:
    for location, message in (("gone.rifps", "cannot be read"), ("http://e.org/gone", "is not loaded from there")):
        with pytest.raises(SquallError, match=message):
            imported(tmp_path, text(before=f"Import(<{location}>)"))
    with pytest.raises(SquallError, match="an individual here, and a predicate before"):
        imported(tmp_path, text("ex:p(1)", before="Import(<other.rifps>)"), other=text("ex:q(ex:p)"))


def test_an_ontology_is_read_when_a_document_is_compiled(tmp_path: Path) -> None:
    """It is a program; other data may come as a source."""
    location = "Import(<urn:o> <http://www.w3.org/ns/entailment/{}>)"
    with pytest.raises(TranslatorError, match="the ontology <urn:o> is not loaded from there"):
        imported(tmp_path, text("ex:p(1)", before=location.format("OWL-Direct")))
    assert list(load(imported(tmp_path, text("ex:p(1)", before=location.format("RDFS"))), streams=("urn:o",))) == []


def data(folder: Path, profile: str, content: str, *sentences: str) -> set[Fact]:
    (folder / "data.ttl").write_text(f"@prefix ex: <{E}> . {content}", encoding="utf-8")
    location = f"Import(<data.ttl> <http://www.w3.org/ns/entailment/{profile}>)"
    system = imported(folder, text(*sentences, before=location))
    outs = squall.run(squall.plan(system), [], static=list(load(system)))
    return {out.fact for out in outs if isinstance(out.fact, Atom | Triple)}


def test_profiles_of_data(tmp_path: Path) -> None:
    rule, inputs = "Forall ?x (ex:r(?x) :- ?x[rdf:type -> ex:b])", "ex:a a ex:c . ex:c <" + RDFS + "subClassOf> ex:b ."
    assert data(tmp_path, "Simple", inputs, rule) == set()
    assert Atom(iri(E + "r"), (A,)) in data(tmp_path, "RDFS", inputs, rule)
    properties = "Forall ?x (ex:r(?x) :- ?x[rdf:type -> rdf:Property])"
    assert Atom(iri(E + "r"), (P,)) in data(tmp_path, "RDF", "ex:a ex:p ex:b .", properties)
    subclasses = "Forall ?x ?y (ex:r(?x) :- ?x[rdfs:subClassOf -> ?y])"
    assert data(tmp_path, "RDF", inputs, subclasses) == {Atom(iri(E + "r"), (iri(E + "c"),))}
    assert Atom(iri(E + "r"), (iri(RDF + "Bag"),)) in data(tmp_path, "RDFS", inputs, subclasses)


def test_conclusions_of_an_entailment_regime_are_read_and_not_output(tmp_path: Path) -> None:
    for profile in ("RDF", "RDFS", "D"):
        assert data(tmp_path, profile, "ex:a ex:p ex:b .", "ex:r(1)") == {Atom(iri(E + "r"), (literal("1", INT),))}


def test_under_the_profile_d_literals_of_one_value_stand_for_each_other(tmp_path: Path) -> None:
    rule = "Forall ?x ?y ?z (ex:r(?x ?y) :- And(?x[ex:p -> ?z] ?y[ex:q -> ?z]))"
    inputs = 'ex:a ex:p "01"^^<' + INT + "> . ex:b ex:q 1.0 ."
    assert data(tmp_path, "RDFS", inputs, rule) == set()
    assert data(tmp_path, "D", inputs, rule) == {Atom(iri(E + "r"), (A, B))}
    typed = "Forall ?x (ex:r(?x) :- And(?x[ex:p -> ?y] ?y[rdf:type -> <" + XSD + "decimal>]))"
    assert data(tmp_path, "D", inputs, typed.replace("?x (", "?x ?y (", 1)) == {Atom(iri(E + "r"), (A,))}


ONTOLOGY = f"[] a <{OWL}Ontology> ."
OF_B = "Forall ?x (ex:r(?x) :- ?x[rdf:type -> ex:b])"


def test_under_owl_direct_an_ontology_and_rules_read_each_other(tmp_path: Path) -> None:
    inputs = f"{ONTOLOGY} ex:q <{OWL}propertyChainAxiom> (ex:p ex:p) . ex:q <{RDFS}domain> ex:b . ex:x ex:p ex:y ."
    rules = "Forall ?x ?y (?y[ex:p -> ?x] :- ?x[ex:p -> ?y])"
    assert data(tmp_path, "OWL-Direct", inputs, OF_B) == set()
    result = data(tmp_path, "OWL-Direct", inputs, OF_B, rules)
    assert {fact for fact in result if isinstance(fact, Atom)} == {Atom(iri(E + "r"), (iri(E + x),)) for x in "xy"}


def test_under_owl_direct_same_individuals_are_equal_in_relations(tmp_path: Path) -> None:
    inputs = f"{ONTOLOGY} ex:p a <{OWL}FunctionalProperty> . ex:x ex:p ex:a, ex:b ."
    result = data(tmp_path, "OWL-Direct", inputs, "ex:r(ex:f(ex:a))", "ex:s(ex:b) :- ex:r(ex:f(ex:b))")
    assert {A, B} <= {fact[1][0] for fact in result if fact[0] == iri(E + "s")}
    equal = data(tmp_path, "OWL-Direct", ONTOLOGY, "ex:a = ex:c", OF_B, "ex:c # ex:b")
    assert Atom(iri(E + "r"), (A,)) in equal


@pytest.mark.parametrize(
    ("profile", "given", "message"),
    [
        ("D", 'ex:a ex:p "x"^^<' + INT + "> .", "violates `ill-typed`"),
        ("D", f"ex:p <{RDFS}range> <{XSD}boolean> . ex:a ex:p 5 .", "violates `not-of-type`"),
        ("OWL-Direct", f"{ONTOLOGY} ex:a a <{OWL}Nothing> .", "<http://e.org/a> violates `cls-nothing2`"),
        ("OWL-Direct", f"{ONTOLOGY} ex:p a <{OWL}ObjectProperty> . ex:a ex:p 1 .", "violates `object-property`"),
        ("OWL-Direct", f"{ONTOLOGY} ex:p a <{OWL}DatatypeProperty> . ex:a ex:p ex:b .", "violates `data-property`"),
        ("OWL-Direct", f"{ONTOLOGY} ex:a a <{XSD}string> .", "violates `data-value`"),
    ],
)
def test_a_contradiction_ends_the_run(tmp_path: Path, profile: str, given: str, message: str) -> None:
    with pytest.raises(BuilderError) as caught:
        data(tmp_path, profile, given, OF_B)
    assert "the program is inconsistent" in str(caught.value)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("sentence", "violated"),
    [
        (f"ex:a # <{XSD}string>", "data-value"),
        (f"Forall ?x (?x # <{XSD}integer> :- ex:a[ex:p -> ?x])", "dt-not-type"),
    ],
)
def test_rules_cannot_put_what_is_no_value_into_a_datatype(tmp_path: Path, sentence: str, violated: str) -> None:
    with pytest.raises(BuilderError, match=f"violates `{violated}`"):
        data(tmp_path, "OWL-Direct", f'{ONTOLOGY} ex:a ex:p "text" .', sentence)


UNION = f"{ONTOLOGY} ex:p <{RDFS}range> [ <{OWL}unionOf> (ex:b ex:c) ] . ex:x ex:p ex:y ."


@pytest.mark.parametrize("known", ["ex:y a ex:b .", f"ex:q <{RDFS}range> ex:b . ex:z ex:q ex:y ."])
def test_members_of_a_union_are_read_by_rules(tmp_path: Path, known: str) -> None:
    result = data(tmp_path, "OWL-Direct", f"{UNION} {known}", OF_B)
    assert {fact for fact in result if isinstance(fact, Atom)} == {Atom(iri(E + "r"), (iri(E + "y"),))}
    assert data(tmp_path, "OWL-Direct", UNION, OF_B, "ex:y # ex:b") == {*result, Triple(iri(E + "y"), TYPE, B)}


@pytest.mark.parametrize("given", ["", "ex:x a ex:b .", f"ex:c <{RDFS}subClassOf> ex:b ."])
def test_rules_do_not_reason_by_the_cases_of_a_union(tmp_path: Path, given: str) -> None:
    with pytest.raises(BuilderError, match=r"<http://e.org/y> is in a union of classes .* not known to be in one"):
        data(tmp_path, "OWL-Direct", f"{UNION} {given}", OF_B)


@pytest.mark.parametrize(
    "rule",
    [
        "Forall ?x (?x # ex:b)",
        "Forall ?x (?x[ex:p -> ex:b])",
        "Forall ?x ?y (?x # ex:b :- ?y # ex:c)",
        "Forall ?x ?y (And(ex:r(?y) ?x # ex:b) :- ?y # ex:c)",
    ],
)
def test_under_owl_direct_not_all_that_there_is_can_be_an_individual(tmp_path: Path, rule: str) -> None:
    with pytest.raises(BuilderError, match=r"any data value.*violates `data-value`"):
        data(tmp_path, "OWL-Direct", f"{ONTOLOGY} ex:a a ex:c .", rule)
    if ":-" in rule:
        assert data(tmp_path, "OWL-Direct", f"{ONTOLOGY} ex:a a ex:d .", rule) == set()


def test_an_ontology_that_is_not_in_the_profile_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SquallError) as caught:
        data(tmp_path, "OWL-Direct", f"{ONTOLOGY} ex:p <{RDFS}range> [ <{OWL}oneOf> (ex:a ex:b) ] .", OF_B)
    message = (
        "`ObjectPropertyRange(:p ObjectOneOf(:a :b))` is not in OWL 2 RL: `ObjectOneOf(:a :b)` cannot be a superclass"
    )
    assert message in str(caught.value)
    assert caught.value.origin is not None


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("ex:a a ex:b .", "is not OWL DL: it does not declare an owl:Ontology"),
        (f'{ONTOLOGY} ex:a ex:p "x"^^<http://www.w3.org/2007/rif#local> .', "has a literal of a forbidden datatype"),
        (f"[] a <{OWL}Ontology> ; <{OWL}imports> <urn:gone> .", "the ontology <urn:gone> is not loaded from there"),
        (f"{ONTOLOGY} ex:a <{OWL}onClass> ex:b .", "the triple of owl:onClass is part of no axiom"),
    ],
)
def test_what_is_no_ontology_is_refused(tmp_path: Path, content: str, message: str) -> None:
    with pytest.raises(SquallError, match=message):
        data(tmp_path, "OWL-Direct", content, OF_B)


def test_profiles_of_owl_and_rdf_do_not_go_together(tmp_path: Path) -> None:
    (tmp_path / "data.ttl").write_text(ONTOLOGY, encoding="utf-8")
    profiles = (f"Import(<data.ttl> <http://www.w3.org/ns/entailment/{name}>)" for name in ("OWL-Direct", "RDF"))
    with pytest.raises(SquallError, match=r"OWL-Direct> does not go together with <.*/RDF>"):
        imported(tmp_path, text(before=" ".join(profiles)))


@pytest.mark.fault("H2")
@pytest.mark.parametrize(
    ("profile", "sentence", "message"),
    [
        ("OWL-RDF-Based", "ex:p(1)", "cannot be had by rules"),
        ("RIF", "ex:p(1)", "cannot be had by rules"),
        ("OWL-Direct", "Forall ?x ?y (?x[rdf:type -> ?y] :- ?y[ex:p -> ?x])", "this class is no constant"),
        ("OWL-Direct", "Forall ?x ?y (ex:p(?x) :- ?x # ?y)", "this class is no constant"),
        ("OWL-Direct", "Forall ?x ?y (?x ## ?y :- ?x[ex:p -> ?y])", "a class of this `##` is no constant"),
        ("OWL-Direct", "Forall ?x (ex:p(?x) :- ?x[rdfs:subClassOf -> ex:a])", "is no property of individuals"),
        (
            "OWL-Direct",
            "Forall ?x (?x # ex:b :- External(pred:is-literal-string(?x)))",
            "nothing gives a value to `?x`",
        ),
        ("OWL-Direct", "Forall ?y (?x # ex:b :- ?y # ex:c)", "the variable `?x` is not declared"),
        ("OWL-Direct", 'Forall ?y (?x[ex:p -> "a"] :- ?x[rdf:type -> ex:c])', "the variable `?x` is not declared"),
        ("OWL-Direct", "Forall ?y (?y # ex:b :- ?x[ex:p -> ?y])", "the variable `?x` is not declared"),
        ("OWL-Direct", "Forall ?x ?y ?z (?x[?y -> ?z] :- ?z[?y -> ?x])", "an attribute that is a variable"),
        ("Sample", "ex:p(1)", "there is no profile"),
    ],
)
def test_profiles_that_are_refused(tmp_path: Path, profile: str, sentence: str, message: str) -> None:
    with pytest.raises(SquallError) as caught:
        data(tmp_path, profile, "", sentence)
    assert message in str(caught.value)


def test_literals_that_rif_writes_otherwise_are_refused_in_data(tmp_path: Path) -> None:
    with pytest.raises(SquallError, match="no literal of what is imported may have this datatype"):
        data(tmp_path, "Simple", 'ex:a ex:p "x"^^<http://www.w3.org/2007/rif#iri> .')


@pytest.mark.parametrize(
    ("longer", "does"),
    [
        ("List(ex:a | ?x)", "makes a list of more than 40 members"),
        ("External(func:append(?x ex:a))", "makes a list of more than 40 members"),
        ("External(func:concatenate(?x ?x))", "makes a list of more than 40 members"),
        ("External(func:insert-before(?x 0 ex:a))", "makes a list of more than 40 members"),
        ("External(func:make-list(?x))", "nests terms more than 4 levels deep"),
        ("ex:f(?x)", "nests terms more than 4 levels deep"),
    ],
)
def test_lists_that_grow_without_an_end_are_stopped(longer: str, does: str) -> None:
    options = squall.Options(max_depth=4)
    for rule in (f"ex:p({longer}) :- ex:p(?x)", f"ex:p(?y) :- And(ex:p(?x) ?y = {longer})"):
        program = text("ex:p(List(ex:a))", f'(* "grows" *) Forall ?x ?y ({rule})')
        plan = squall.plan(squall.compile(program, lexer="rifps"))
        with pytest.raises(BuilderError, match=f"the rule `grows` {does}"):
            list(squall.run(plan, [], options=options))


def test_a_built_in_that_is_not_external_is_warned_of() -> None:
    program = text(
        'Forall ?x (ex:p(func:concat("a" ?x)) :- And(ex:q(?x) pred:numeric-less-than(?x 5)))',
        "Forall ?x (ex:p(?x) :- And(ex:q(?x) External(pred:numeric-less-than(?x 5))))",
    )
    assert [(str(warning.origin), warning.message) for warning in warnings(squall.compile(program, lexer="rifps"))] == [
        ("<text>:1:60", "`func:concat` is a function of the program here, and not the built-in of this name"),
        (
            "<text>:1:97",
            "`pred:numeric-less-than` is a predicate of the program here, and not the built-in of this name",
        ),
    ]
    with pytest.raises(SquallError) as caught:
        squall.compile(text("Forall ?x (ex:p(?x) :- And(ex:q(?x) External(pred:starts-wiht(?x 5))))"), lexer="rifps")
    assert (caught.value.hint or "").startswith("did you mean `pred:starts-with`")


def test_an_import_with_a_stream_profile_is_a_stream_to_be_given() -> None:
    program = text(before="Import(<urn:s> <http://www.w3.org/ns/stream/NTriples>)")
    system = squall.compile(program, lexer="rifps")
    assert streams(system) == (Stream("urn:s"),)
    assert translator(presentation.lexer(program, "<text>")) == system


def test_programs_that_say_the_same_in_jena_and_rif_are_equal_systems() -> None:
    jena = f"@prefix : <{E}>.\n[one: (?x :p ?y) (?y :q 'a') -> (?x :q ?y) (?y :p ?x)] [(?x rdf:type :c) -> (?x :p :a)]"
    rif = text(
        '(* "one" *) Forall ?x ?y (And(?x[ex:q -> ?y] ?y[ex:p -> ?x]) :- And(?x[ex:p -> ?y] ?y[ex:q -> "a"]))',
        "Forall ?x (?x[ex:p -> ex:a] :- ?x # ex:c)",
    )
    assert squall.compile(rif, lexer="rifps") == squall.compile(jena, lexer="jena")


def test_an_iri_with_letters_beyond_ascii_is_that_of_the_data() -> None:
    city = iri(E + "Orléans")
    (fact,) = derived("Forall ?x (?x[ex:q -> ex:Orléans] :- ?x[ex:p -> ex:Orléans])", facts=(Triple(A, P, city),))
    assert fact == Triple(A, Q, city)
    blank = f'"{E}a b"^^rif:iri'
    (fact,) = derived(f"ex:a[ex:q -> {blank}]")
    assert fact == Triple(A, Q, iri(E + "a%20b")), "what no IRI has is escaped"
