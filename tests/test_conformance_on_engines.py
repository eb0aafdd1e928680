"""Runs cases of the conformance suites on Spark and Beam."""

from __future__ import annotations

import pytest

from tests.conformance import Stages
from tests.test_conformance import outcomes_without_failure

SAMPLES = {
    "squall": 9, "jena-rules": 50, "rif-w3c": 30, "w3c-rdf-tests": 150, "csparql-engine": 15, "csrbench": 50,
    "instans": 20, "rif-owl2rl-weaver": 9, "owl2-tests": 100, "owl1-wg-tests": 70, "jena-owl": 50,
}  # fmt: skip
"""The sampling rates of suites: in `make test-more`, one case in so many runs on other builders; in `make test-all`,
all do."""
ELSEWHERE = [
    pytest.param(suite, builder, often, marks=[getattr(pytest.mark, builder), *slow])
    for builder in ("spark", "beam")
    for suite, every in SAMPLES.items()
    for often, slow in ((every, []), (1, [pytest.mark.slow]))
]


@pytest.mark.more
@pytest.mark.parametrize(("suite", "builder", "every"), ELSEWHERE)
def test_suite_elsewhere(suite: str, builder: str, every: int) -> None:
    pytest.importorskip({"spark": "pyspark", "beam": "apache_beam"}[builder])
    outcomes_without_failure(suite, Stages(builder=builder), every)
