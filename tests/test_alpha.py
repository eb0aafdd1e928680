"""The alpha network gives each match the rows that it would get by comparing itself with each fact."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from squall.builders.runtime.alpha import AlphaNetwork, Matched, fact_kind
from squall.builders.runtime.operators import stateless
from squall.builders.runtime.zset import Delta, Row
from squall.functions.values import value_key
from squall.model import Source
from squall.plan import Input, Node, Plan
from squall.plan import operators as ops
from squall.plan.operators import Cell, OneOf, Value
from squall.rdf import FOREVER, Term, is_literal
from tests.laws import examples_of
from tests.snapshots import ALSO_ONE, ONE, REL, TWO, A, B, C

OTHER = "@<urn:other>"
TERMS = (A, B, ONE, ALSO_ONE, TWO)
CELLS: tuple[Cell, ...] = (0, 1, 2, None, A, B, ONE, Value(ONE), Value(TWO), OneOf((A, B)), OneOf((B, ONE)))


def fits(cell: Cell, term: str, bound: dict[int, str]) -> bool:
    match cell:
        case int():
            return bound.setdefault(cell, term) == term
        case Value(term=other):
            return is_literal(term) and value_key(Term(term)) == value_key(other)
        case OneOf(terms=terms):
            return term in terms
        case None:
            return True
        case _:
            return cell == term


def row_of(cells: Sequence[Cell], fact: Sequence[str]) -> Row | None:
    """Returns the row of a fact for a match; None if it does not match."""
    mark = cells[0] if isinstance(cells[0], str) and cells[0][0] == "@" else None
    if len(fact) != len(cells) or (fact[0] if fact[0][0] == "@" else None) != mark:
        return None
    bound: dict[int, str] = {}
    if not all(fits(cell, term, bound) for cell, term in zip(cells, fact, strict=True)):
        return None
    return tuple(bound[column] for column in sorted(bound))


def numbered(cells: Iterable[Cell]) -> tuple[Cell, ...]:
    """Returns the cells with their columns counted from 0."""
    numbers: dict[int, int] = {}
    return tuple(numbers.setdefault(cell, len(numbers)) if isinstance(cell, int) else cell for cell in cells)


def plan(matches: Sequence[tuple[Cell, ...]], *before: Node) -> Plan:
    """Matches that the last node of `before` feeds, each under its place in the sequence."""
    nodes = before or (Node("read", ops.Scan(Source())),)
    last = Input(nodes[-1].id)
    return Plan((*nodes, *(Node(str(place), ops.Match(cells), (last,)) for place, cells in enumerate(matches))))


def delta_of(*fact: str, rule: str = "") -> Delta:
    return (*fact, rule, 3, FOREVER, 1)


def rows_by_match(matches: Iterator[Matched]) -> Mapping[str, Counter[Row]]:
    """Returns the rows of each match that has any."""
    rows: dict[str, Counter[Row]] = {}
    for id, deltas in matches:
        for *row, start, end, weight in deltas:
            assert (start, end, weight) == (3, FOREVER, 1)
            rows.setdefault(id, Counter())[tuple(row)] += 1
    return rows


def expected(matches: Sequence[tuple[Cell, ...]], facts: Iterable[tuple[str, ...]]) -> Mapping[str, Counter[Row]]:
    rows: dict[str, Counter[Row]] = {}
    for fact in facts:
        for place, cells in enumerate(matches):
            if (row := row_of(cells, fact)) is not None:
                rows.setdefault(str(place), Counter())[row] += 1
    return rows


triples = st.tuples(*[st.sampled_from(TERMS)] * 3)
atoms = st.lists(st.sampled_from(TERMS), max_size=3).flatmap(
    lambda arguments: st.sampled_from([(REL, *arguments), (OTHER, *arguments)])
)
MATCHES = st.lists(
    st.tuples(*[st.sampled_from(CELLS)] * 3).map(numbered)
    | st.tuples(st.sampled_from([Term(REL), Term(OTHER)]), st.lists(st.sampled_from(CELLS), max_size=2)).map(
        lambda made: numbered([made[0], *made[1]])
    ),
    min_size=1, max_size=6,
)  # fmt: skip


@given(matches=MATCHES, facts=st.lists(triples | atoms, max_size=8))
@settings(max_examples=examples_of(150), deadline=None)
def test_each_fact_reaches_the_matches_that_it_fits(
    matches: list[tuple[Cell, ...]], facts: list[tuple[str, ...]]
) -> None:
    alpha = AlphaNetwork(plan(matches), "read")
    assert rows_by_match(alpha.rows([delta_of(*fact) for fact in facts])) == expected(matches, facts)


@given(matches=MATCHES, facts=st.lists(triples | atoms, max_size=8))
@settings(max_examples=examples_of(60), deadline=None)
def test_facts_may_be_wrapped(matches: list[tuple[Cell, ...]], facts: list[tuple[str, ...]]) -> None:
    """`squall.builders.runtime.operators.scan.ScannedFacts` wraps facts in this way."""
    alpha = AlphaNetwork(plan(matches), "read")
    boxes: dict[Term, list[Delta]] = {}
    full_result = [delta_of(*fact) for fact in facts if fact[0][0] != "@"]
    for item in full_result:
        boxes.setdefault(item[1], []).append((item[0], item[2], *item[4:]))
    results = list(alpha.triples(boxes, full_result))
    for fact in facts:
        if fact[0][0] == "@":
            results += alpha.atoms_rows(fact_kind(delta_of(*fact)), [delta_of(*fact)])
    assert rows_by_match(iter(results)) == expected(matches, facts)


TEMPLATES: tuple[tuple[int | Term, ...], ...] = (
    (0, A, 1), (0, B, 1), (0, 1, A), (A, A, 0), (Term(REL), 0, 1), (Term(REL), 0), (Term(OTHER), 0, 1),
)  # fmt: skip


def made(template: tuple[int | Term, ...], row: Sequence[str]) -> tuple[str, ...]:
    return tuple(row[cell] if isinstance(cell, int) else cell for cell in template)


@given(
    matches=MATCHES, templates=st.lists(st.sampled_from(TEMPLATES), min_size=1, max_size=3, unique=True),
    rows=st.lists(st.tuples(*[st.sampled_from(TERMS)] * 2), max_size=4), unique=st.booleans(),
)  # fmt: skip
@settings(max_examples=examples_of(100), deadline=None)
def test_what_rules_make_reaches_the_same_matches(
    matches: list[tuple[Cell, ...]], templates: list[tuple[int | Term, ...]], rows: list[tuple[str, ...]], unique: bool
) -> None:
    """If the facts that a node constructs are known in advance, they are not looked up one by one."""
    start = Node("read", ops.Scan(Source())), Node("match", ops.Match((0, 1)), (Input("read"),))
    emits = [Node(f"emit{n}", ops.Construct(item), (Input("match"),)) for n, item in enumerate(templates)]
    if unique:
        ends = [Node("set", ops.Distinct(3), tuple(Input(emit.id) for emit in emits))]
    else:
        emits, ends, templates = emits[:1], [], templates[:1]
    nodes = (*start, *emits, *ends)
    facts = [made(template, row) for template in templates for row in rows]
    alpha = AlphaNetwork(plan(matches, *nodes), nodes[-1].id)
    assert rows_by_match(alpha.rows([delta_of(*fact, rule="r") for fact in facts])) == expected(matches, facts)


def test_a_node_that_reads_another_twice_gets_its_deltas_twice() -> None:
    """The set behind the node merges them again."""
    nodes = Node("read", ops.Scan(Source())), Node("0", ops.Match((0, A, 1)), (Input("read"), Input("read")))
    assert rows_by_match(AlphaNetwork(Plan(nodes), "read").rows([delta_of(A, A, B)])) == {"0": Counter({(A, B): 2})}


def test_cells_that_the_index_has_matched_are_not_compared_again() -> None:
    step = stateless.match_step((0, A, B), bound_columns=(1, 2))
    assert step([delta_of(A, C, C)]) == [(A, 3, FOREVER, 1)]


@pytest.mark.parametrize("many", [10, 1000])
def test_a_fact_meets_only_what_it_fits_however_many_rules_there_are(many: int) -> None:
    """Facts are looked up by predicate, and by their other constants."""
    matches: list[tuple[Cell, ...]] = [(0, Term(f"<urn:p{n}>"), 1) for n in range(many)]
    matches += [(0, A, Term(f"<urn:o{n}>")) for n in range(many)]
    matches += [(0, B, Value(Term(f'"{n}"'))) for n in range(many)]
    alpha = AlphaNetwork(plan(matches), "read")
    rows = list(alpha.rows([delta_of(A, "<urn:p7>", C), delta_of(C, A, "<urn:o7>"), delta_of(C, B, '"7"')]))
    assert dict(rows) == {
        "7": [(A, C, 3, FOREVER, 1)], str(many + 7): [(C, 3, FOREVER, 1)], str(2 * many + 7): [(C, 3, FOREVER, 1)]
    }  # fmt: skip
    assert len(rows) == 3
