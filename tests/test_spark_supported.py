"""What does not run on Spark yet is refused by name before anything starts."""

from __future__ import annotations

import pytest

import squall
from squall.errors import BuilderError
from squall.rdf import iri
from squall.system import (
    GRAPH,
    AtomPattern,
    Bind,
    Construct,
    Delete,
    Graphs,
    Grouping,
    Maybe,
    Pattern,
    Report,
    Select,
    Slice,
    Source,
    System,
    Variable,
)
from squall.windows import Range

X, Y, Z = map(Variable, "xyz")
P, Q = iri("urn:p"), iri("urn:q")
BODY = (Pattern(X, P, Y),)
COPY = (Construct((Pattern(X, Q, Y),)),)
SELECT = (Select((X,)),)
OPTIONAL = (Maybe(System(joinables=BODY)),)

REFUSED = {
    "the window RANGE 5ms": squall.compile("[(?x <urn:p> ?y) -> (?x <urn:q> ?y)]", lexer="jena", window=Range(5)),
    "streams that carry removals": squall.compile(
        "[(?x <urn:p> ?y) -> (?x <urn:q> ?y)]", lexer="jena", removals=True
    ),
    r"left joins \(OPTIONAL\)": System("r", joinables=BODY, predicates=OPTIONAL, consequences=COPY),
    "aggregates": System("r", joinables=BODY, grouping=Grouping((X,), ()), consequences=SELECT),
    r"slices \(ORDER BY, LIMIT\)": System("r", joinables=BODY, slice=Slice(limit=1), consequences=COPY),
    "queries that select solutions": System("r", joinables=BODY, consequences=SELECT),
    "rules that delete or insert facts": System("r", joinables=BODY, consequences=(Delete(BODY),)),
    "values that a solution may do without": System(
        "r", joinables=BODY, predicates=(Bind(Z, X, keeps=True),), consequences=COPY
    ),
    "queries that are told that an answer is empty": System(
        "r", joinables=BODY, consequences=COPY, reentrant=False, report=Report(empty=True)
    ),
    "patterns that read where or when facts came": System(
        "r", (Graphs(),), (AtomPattern(GRAPH, (Z, X, P, Y)),), consequences=COPY
    ),
    "streams that the program makes": System(
        subsystems=(
            System(subsystems=(System("m", joinables=BODY, consequences=COPY, reentrant=False),), stream="urn:s"),
            System("r", (Source("urn:s"),), (Pattern(X, Q, Y),), consequences=(Construct((Pattern(X, Q, X),)),)),
        )
    ),
    "programs that are told in several ways": System(
        subsystems=(
            System("r", joinables=BODY, consequences=COPY),
            System(subsystems=(System("s", joinables=BODY, consequences=COPY),), output="rstream"),
        )
    ),
    "the report policy `change`": System("r", joinables=BODY, consequences=COPY, report=Report("change")),
}  # fmt: skip


@pytest.mark.parametrize(("what", "system"), REFUSED.items(), ids=list(REFUSED))
def test_what_does_not_run_on_spark_is_refused_by_name(what: str, system: System) -> None:
    pytest.importorskip("pyspark")
    with pytest.raises(BuilderError, match=f"does not run {what} yet") as caught:
        squall.build(squall.plan(system), "spark")
    assert "--builder iterator" in (caught.value.hint or "")
