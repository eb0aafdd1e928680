"""What does not run on Spark yet is refused by name before anything starts."""

from __future__ import annotations

import pytest

import squall
from squall.errors import BuilderError
from squall.rdf import iri
from squall.system import Construct, Delete, Pattern, Source, System, Variable
from squall.windows import Count

X, Y = map(Variable, "xy")
P, Q = iri("urn:p"), iri("urn:q")
BODY = (Pattern(X, P, Y),)
COPY = (Construct((Pattern(X, Q, Y),)),)
RULE = "[(?x <urn:p> ?y) -> (?x <urn:q> ?y)]"

REFUSED = {
    "the window TRIPLES 5": squall.compile(RULE, lexer="jena", window=Count(5)),
    "streams that carry removals": squall.compile(RULE, lexer="jena", removals=True),
    "rules that delete or insert facts": System("r", joinables=BODY, consequences=(Delete(BODY),)),
    "streams that the program makes": System(
        subsystems=(
            System(subsystems=(System("m", joinables=BODY, consequences=COPY, reentrant=False),), stream="urn:s"),
            System("r", (Source("urn:s"),), (Pattern(X, Q, Y),), consequences=(Construct((Pattern(X, Q, X),)),)),
        )
    ),
}  # fmt: skip


@pytest.mark.parametrize(("what", "system"), REFUSED.items(), ids=list(REFUSED))
def test_what_does_not_run_on_spark_is_refused_by_name(what: str, system: System) -> None:
    pytest.importorskip("pyspark")
    with pytest.raises(BuilderError, match=f"does not run {what} yet") as caught:
        squall.build(squall.plan(system), "spark")
    assert "--builder iterator" in (caught.value.hint or "")
