"""The rule sets that come with squall."""

from __future__ import annotations

import pytest

from squall import rulesets
from squall.errors import UsageError


def test_rule_sets_are_found_by_name() -> None:
    assert "rdfs" in rulesets.names()
    assert rulesets.path("rdfs").read_text().startswith("# RDFS")


def test_an_unknown_rule_set_is_refused_with_what_is_near() -> None:
    with pytest.raises(UsageError, match="did you mean `rdfs`"):
        rulesets.path("rdf")
    with pytest.raises(UsageError, match="there is rdfs"):
        rulesets.path("nothing like it")
