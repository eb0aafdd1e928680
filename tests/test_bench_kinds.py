"""The benchmark of kinds of operators: each can be taken away, and the answer stays the same."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from unittest.mock import patch

import pytest

from squall.builders.runtime.operators import distinct
from tests.bench import kinds


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=() if name == "multiway join" else pytest.mark.more) for name in kinds.KINDS],
)
def test_an_answer_is_the_same_without_a_kind(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert kinds.main([name, "--share", "100", "--repeat", "1"]) == 0
    assert f"| {name} | " in capsys.readouterr().out


@pytest.mark.parametrize("name", kinds.KINDS)
def test_the_product_has_what_a_kind_patches(name: str) -> None:
    kind = kinds.KINDS[name]
    with ExitStack() as stack:
        for context in (*kind.with_both(), *kind.without()):
            stack.enter_context(context)


@pytest.mark.more
def test_another_answer_is_shown(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def wrong(self: object, port: int, deltas: object) -> list[object]:
        return []

    broken = replace(kinds.KINDS["append-only distinct"], without=lambda: [
        patch.object(distinct.AppendOnlyDistinct, "apply", wrong)
    ])  # fmt: skip
    monkeypatch.setitem(kinds.KINDS, "append-only distinct", broken)
    assert kinds.main(["append-only distinct", "--share", "100", "--repeat", "1"]) == 1
    assert "other facts" in capsys.readouterr().out
