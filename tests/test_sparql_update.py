"""SPARQL Update requests that are applied once: each operation, errors, and atomicity."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest

from squall.errors import Errors, LexerError, SquallError, TranslatorError, UpdateError, UsageError, single_errors
from squall.rdf import Term, Triple, is_blank
from squall.sparql_update import apply_update, check, parse
from squall.sparql_update.datasets import Dataset, Quad
from squall.testing import isomorphic

PREFIX = "PREFIX : <http://example.org/>\n"
E = "http://example.org/"


def term(text: str) -> Term:
    return Term(text.replace(":", f"<{E}", 1) + ">" if text.startswith(":") else text)


def dataset(text: str) -> Dataset:
    """Triples of a line each, behind the name of their graph and a bar where they have one; ``:g|`` is a graph."""
    graphs: dict[str, set[Triple]] = {"": set()}
    for line in text.split(";"):
        name, bar, statement = line.rpartition("|")
        graph = graphs.setdefault(name.strip() if bar else "", set())
        if statement.strip():
            graph.add(Triple(*map(term, statement.split())))
    names = {term(name): frozenset(graph) for name, graph in graphs.items() if name}
    return Dataset(frozenset(graphs[""]), names)


DATA = dataset(":a :p :b; :b :p :c; :g|:a :q :b; :h|")


def isomorphic_datasets(result: Dataset, expected_data: Dataset) -> bool:
    return set(result.named) == set(expected_data.named) and isomorphic(result.quads(), expected_data.quads())


@pytest.mark.parametrize(
    ("request_", "expected_data"),
    [
        ("", ":a :p :b; :b :p :c; :g|:a :q :b; :h|"),
        ("INSERT DATA { :n :p :a, :b . GRAPH :k { :n :p :c } }",
         ":a :p :b; :b :p :c; :n :p :a; :n :p :b; :g|:a :q :b; :h|; :k|:n :p :c"),
        ("INSERT DATA { :n :p _:x . GRAPH :h { _:x :p _:y } }",
         ":a :p :b; :b :p :c; :n :p _:x; :g|:a :q :b; :h|_:x :p _:y"),
        ("DELETE DATA { :a :p :b . :never :p :b . GRAPH :g { :a :q :b } GRAPH :nowhere { :a :q :b } }",
         ":b :p :c; :g|; :h|"),
        ("DELETE WHERE { ?x :p ?y . GRAPH :g { ?x ?q ?y } }", ":b :p :c; :g|; :h|"),
        ("DELETE { ?x :p ?y } INSERT { ?y :p ?x } WHERE { ?x :p ?y }", ":b :p :a; :c :p :b; :g|:a :q :b; :h|"),
        ("DELETE { ?x :p ?y } INSERT { ?x :p ?y } WHERE { ?x :p ?y }", ":a :p :b; :b :p :c; :g|:a :q :b; :h|"),
        ("INSERT { :done :p :c } WHERE { }", ":a :p :b; :b :p :c; :done :p :c; :g|:a :q :b; :h|"),
        ("INSERT { :done :p :c } WHERE { ?x :nothing ?y }", ":a :p :b; :b :p :c; :g|:a :q :b; :h|"),
        ("WITH :g DELETE { ?x :q ?y } INSERT { ?y :q ?x . GRAPH :k { ?x :q ?y } } WHERE { ?x :q ?y }",
         ":a :p :b; :b :p :c; :g|:b :q :a; :h|; :k|:a :q :b"),
        ("WITH :h INSERT { ?x :r ?y } USING :g WHERE { ?x ?p ?y }", ":a :p :b; :b :p :c; :g|:a :q :b; :h|:a :r :b"),
        ("WITH :h INSERT { ?x :r ?y } WHERE { GRAPH :g { ?x ?p ?y } }",
         ":a :p :b; :b :p :c; :g|:a :q :b; :h|:a :r :b"),
        ("INSERT { ?x :r ?y } USING NAMED :g WHERE { { ?x :p ?y } UNION { GRAPH ?g { ?x :q ?y } } }",
         ":a :p :b; :b :p :c; :a :r :b; :g|:a :q :b; :h|"),
        ("INSERT { ?x :r ?y } USING :nowhere USING :g WHERE { ?x ?p ?y }",
         ":a :p :b; :b :p :c; :a :r :b; :g|:a :q :b; :h|"),
        ("INSERT { GRAPH ?g { ?g :is :named } } WHERE { GRAPH ?g { } }",
         ":a :p :b; :b :p :c; :g|:a :q :b; :g|:g :is :named; :h|:h :is :named"),
        ("LOAD SILENT <http://example.org/elsewhere> INTO GRAPH :k", ":a :p :b; :b :p :c; :g|:a :q :b; :h|"),
        ("CREATE GRAPH :k ; CREATE SILENT GRAPH :g", ":a :p :b; :b :p :c; :g|:a :q :b; :h|; :k|"),
        ("CLEAR GRAPH :g ; CLEAR SILENT GRAPH :k", ":a :p :b; :b :p :c; :g|; :h|"),
        ("CLEAR DEFAULT", ":g|:a :q :b; :h|"),
        ("CLEAR NAMED", ":a :p :b; :b :p :c; :g|; :h|"),
        ("CLEAR ALL", ":g|; :h|"),
        ("DROP GRAPH :g ; DROP SILENT GRAPH :g", ":a :p :b; :b :p :c; :h|"),
        ("DROP DEFAULT", ":g|:a :q :b; :h|"),
        ("DROP NAMED", ":a :p :b; :b :p :c"),
        ("DROP ALL ; INSERT DATA { :a :p :b }", ":a :p :b"),
        ("ADD :g TO DEFAULT", ":a :p :b; :b :p :c; :a :q :b; :g|:a :q :b; :h|"),
        ("COPY :g TO DEFAULT", ":a :q :b; :g|:a :q :b; :h|"),
        ("COPY DEFAULT TO :k", ":a :p :b; :b :p :c; :g|:a :q :b; :h|; :k|:a :p :b; :k|:b :p :c"),
        ("MOVE DEFAULT TO :g", ":g|:a :p :b; :g|:b :p :c; :h|"),
        ("MOVE :g TO :h", ":a :p :b; :b :p :c; :h|:a :q :b"),
        ("MOVE :g TO :g ; COPY :g TO :g ; ADD :g TO :g", ":a :p :b; :b :p :c; :g|:a :q :b; :h|"),
        ("COPY SILENT :k TO :g ; MOVE SILENT :k TO DEFAULT ; ADD SILENT :k TO :new",
         ":a :p :b; :b :p :c; :g|:a :q :b; :h|"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("planner", ["greedy", "rete"])
def test_what_a_request_does(request_: str, expected_data: str, planner: str) -> None:
    result = apply_update(DATA, PREFIX + request_, planner=planner)
    assert isomorphic_datasets(result, dataset(expected_data)), [*result.quads()]


def test_operations_see_what_those_before_them_did() -> None:
    request = (
        "INSERT { GRAPH :k { ?x :r ?y } } WHERE { ?x :p ?y } ; DELETE { ?x :p ?y } WHERE { GRAPH :k { ?x :r ?y } }"
    )
    assert isomorphic_datasets(
        apply_update(DATA, PREFIX + request), dataset(":g|:a :q :b; :h|; :k|:a :r :b; :k|:b :r :c")
    )


def test_the_input_dataset_is_not_changed() -> None:
    before = dataset(":a :p :b; :g|:a :q :b")
    apply_update(before, "DROP ALL")
    assert before == dataset(":a :p :b; :g|:a :q :b")


# Templates


def made(template: str, pattern: str) -> set[Quad]:
    """Returns the facts that an INSERT adds."""
    result = apply_update(DATA, f"{PREFIX} INSERT {{ {template} }} WHERE {{ {pattern} }}")
    return {*result.quads()} - {*DATA.quads()}


@pytest.mark.parametrize(
    ("template", "pattern"),
    [
        ("?unbound :r ?y", "?x :p ?y OPTIONAL { ?x :never ?unbound }"),
        ("?y :r :b", "?x :p ?z BIND ('text' AS ?y)"),
        (":b ?y :b", "?x :p ?z BIND ('text' AS ?y)"),
        (":b ?y :b", "?x :p ?z BIND (BNODE() AS ?y)"),
        ("GRAPH ?y { :b :r :b }", "?x :p ?z BIND ('text' AS ?y)"),
        ("GRAPH ?y { :b :r :b }", "?x :p ?z BIND (BNODE() AS ?y)"),
        ("GRAPH ?unbound { :b :r :b }", "?x :p ?z OPTIONAL { ?x :never ?unbound }"),
        ("'text' :r :b", ""),
    ],
)
def test_invalid_triples_are_skipped(template: str, pattern: str) -> None:
    assert not made(template, pattern)
    assert len(made(f"{template} . :whole :r :b", pattern)) == 1


def test_blank_nodes_of_a_template_are_new_for_each_solution() -> None:
    result = made("?x :r _:n . GRAPH :g { _:n :r ?y }", "?x :p ?y")
    nodes = {item for quad in result for item in quad if item and is_blank(item)}
    assert len(nodes) == 2
    assert {len([quad for quad in result if node in quad]) for node in nodes} == {2}


def test_equal_solutions_make_blank_nodes_each() -> None:
    result = made("[] :r :b", "{ :a :p :b } UNION { :a :p ?y }")
    assert len(result) == 2


def test_fresh_terms_differ_by_operation_and_request() -> None:
    request = PREFIX + "INSERT { :x :r ?node, ?id, _:n } WHERE { BIND (BNODE() AS ?node) BIND (UUID() AS ?id) }"
    once = apply_update(Dataset(), f"{request} ; {request}")
    assert len(once.default) == 6
    assert len(apply_update(once, request).default) == 9


def test_now_is_the_same_everywhere_in_a_request() -> None:
    item = "INSERT { :x :at ?t } WHERE { BIND (NOW() AS ?t) }"
    other = "INSERT { :x :at ?t } WHERE { { SELECT (MAX(?u) AS ?t) { :x ?p ?u FILTER (?u <= NOW()) } } }"
    (triple,) = apply_update(Dataset(), f"{PREFIX} {item} ; {other}", now=5000).default
    assert triple.object == '"1970-01-01T00:00:05Z"^^<http://www.w3.org/2001/XMLSchema#dateTime>'
    (triple,) = apply_update(Dataset(), PREFIX + item).default
    assert triple.object > '"2026'


# LOAD


def test_a_document_is_found_beside_the_request_by_address_and_by_option(tmp_path: Path) -> None:
    (tmp_path / "x.ttl").write_text("<a> <http://example.org/p> [] .")
    request = tmp_path / "load.ru"
    file = (tmp_path / "x.ttl").as_uri()
    request.write_text(f"LOAD <x.ttl> ; LOAD <{file}> INTO GRAPH <http://example.org/g> ; LOAD <{E}doc>")
    result = apply_update(DATA, request, {f"{E}doc": str(tmp_path / "x.ttl")})
    loaded = [quad for quad in result.quads() if quad not in set(DATA.quads())]
    near, message = f"<{tmp_path.as_uri()}/a>", f"<{E}a>"
    assert [(quad[0], quad[3]) for quad in loaded] == [(near, None), (message, None), (near, term(":g"))]
    assert len({quad[2] for quad in loaded}) == 3, "each time the blank nodes are others"


def test_an_empty_document_creates_its_graph(tmp_path: Path) -> None:
    (tmp_path / "empty.nt").write_text("")
    result = apply_update(Dataset(), f"LOAD <{(tmp_path / 'empty.nt').as_uri()}> INTO GRAPH <{E}k>")
    assert result == dataset(":k|")


# Errors


def refused(request: str) -> SquallError:
    with pytest.raises(SquallError) as caught:
        apply_update(DATA, f"{PREFIX} INSERT DATA {{ :never :p :b }} ;\n{request}")
    return caught.value


@pytest.mark.parametrize(
    ("request_", "message", "hint"),
    [
        ("CREATE GRAPH :g", f"there is a graph <{E}g> already", "`CREATE SILENT` leaves it as it is"),
        ("DROP GRAPH <urn:x>", "there is no graph <urn:x>", "`DROP SILENT` goes on without"),
        ("CLEAR GRAPH :k", f"there is no graph <{E}k>", f"did you mean `<{E}h>` or `<{E}g>`?"),
        ("ADD <urn:x> TO :g", "there is no graph <urn:x>", "`ADD SILENT` goes on without"),
        ("COPY <urn:x> TO <urn:x>", "there is no graph <urn:x>", "`COPY SILENT` goes on without"),
        ("MOVE <urn:x> TO DEFAULT", "there is no graph <urn:x>", "`MOVE SILENT` goes on without"),
        ("LOAD <http://example.org/doc>", "the graph <http://example.org/doc> is not loaded from there",
         "download it, and name its file: `--graph http://example.org/doc=FILE`"),
        ("LOAD <nowhere.ttl>", "`nowhere.ttl` cannot be read: No such file or directory", None),
    ],
)  # fmt: skip
def test_what_cannot_be_done(request_: str, message: str, hint: str | None) -> None:
    error = refused(request_)
    assert isinstance(error, UpdateError)
    assert (error.message, error.hint) == (message, hint)
    assert error.origin is not None
    assert (error.origin.line, error.origin.length) == (3, len(request_))


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("x.trig", "GRAPH <urn:g> { <urn:a> <urn:p> <urn:b> }", "is no graph: it has named graphs"),
        ("x.ttl", "<urn:a> <urn:p> .", "x.ttl:1: "),
        ("x.txt", "", "cannot be inferred from its name"),
        ("x.ntt", "", "is timed: it is no data set"),
    ],
)
def test_documents_that_are_no_graph(tmp_path: Path, name: str, text: str, message: str) -> None:
    (tmp_path / name).write_text(text)
    file = (tmp_path / name).as_uri()
    error = refused(f"LOAD <{file}>")
    assert isinstance(error, UpdateError)
    assert message in error.message
    assert apply_update(DATA, f"LOAD SILENT <{file}>") == DATA


def test_all_errors_of_a_request_are_reported_before_anything_is_applied() -> None:
    error = refused("SELECT * { ?s ?p ?o } ; INSERT DATA { 'a' :p :b } ; DELETE { ?s ?p ?o } "
                    "WHERE { ?s ?p ?o SERVICE :s { } GRAPH ?g { SERVICE :s { } } GRAPH :h { SERVICE :s { } } } ; "
                    "DROP GRAPH :nowhere")  # fmt: skip
    assert isinstance(error, Errors)
    assert [item.message for item in single_errors(error)] == [
        "`SELECT` is no update",
        "a literal cannot be the subject of a triple",
        *["`SERVICE` is not supported: a run asks no other servers"] * 3,
    ]
    assert all(isinstance(item, TranslatorError) and item.origin for item in single_errors(error))


def test_a_text_that_is_none() -> None:
    with pytest.raises(LexerError, match="cannot stand here"):
        apply_update(DATA, "INSERT DATUM { }")
    with pytest.raises(UsageError, match="does not exist"):
        apply_update(DATA, Path("nowhere.ru"))


def messages(request: str) -> Iterable[tuple[str, str | None]]:
    return [(warning.message, warning.hint) for warning in check(parse(PREFIX + request))]


def test_warnings() -> None:
    assert messages("INSERT { ?x :p ?y } WHERE { ?x :p ?y } ; DELETE WHERE { GRAPH ?g { ?s ?p ?o } } ; DROP ALL") == []
    result = messages("DELETE { ?roon :p ?y } INSERT { 'x' :p ?y . GRAPH ?g { ?room :p ?y } } WHERE { ?room :p ?y }")
    assert result == [
        ("`?roon` is in the template, but nothing binds it", "did you mean `?room`?"),
        ("this triple is never made: a literal cannot be the subject of a triple", None),
        ("`?g` is in the template, but nothing binds it", "bind it in the pattern, or leave the triple out"),
    ]
