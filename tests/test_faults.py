"""The registry of reported faults: each entry has a test with its inputs."""

from __future__ import annotations

from collections import Counter

import pytest

from tests import faults


@pytest.mark.more
def test_each_entry_has_a_test() -> None:
    names = set(faults.marked())
    assert names <= set(faults.FAULTS)
    assert set(faults.FAULTS) - names <= set(faults.OPEN)


def test_an_unknown_entry_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert faults.main(["W1", "X1"]) == 2
    assert capsys.readouterr().err == "no entry: X1\n"


def test_a_line_has_the_worst_outcome() -> None:
    assert faults.line("W1", Counter(passed=3, failed=1)).startswith("W1   failed   1 failed, 3 passed")
    assert faults.line("W1", Counter(passed=3)).startswith("W1   passed   3 passed")
    assert faults.line("W1", Counter(skipped=2)).startswith("W1   skipped  2 skipped")
    assert faults.line("W1", Counter()).startswith("W1   no test  -")
