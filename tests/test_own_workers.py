"""Tasks with their own pools of Python workers (`squall.builders.spark.workers.by_own_workers`)."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from squall.builders.distributed.io.records import constant_step, identity_step
from squall.builders.spark.workers import by_own_workers


class Rdd:
    """Takes down in which environment its functions are handed to Spark, as `setName` does that."""

    def __init__(self, context: Any) -> None:
        self.context = context

    def mapPartitionsWithIndex(self, work: Callable[..., Any]) -> Rdd:
        return self

    def setName(self, name: str) -> Rdd:
        self.context.seen.append(dict(self.context.environment))
        next(self.context.reading)  # a RuntimeError, if what is being read has another size
        return self


@pytest.mark.parametrize(("local", "pools"), [(True, ["0", "1"]), (False, ["0", "0"])])
def test_the_environment_of_the_process_is_not_changed(local: bool, pools: list[str]) -> None:
    names = dict.fromkeys(["PYTHONHASHSEED", "one", "two"], "0")
    context = SimpleNamespace(environment=names, seen=[], reading=iter(names))
    context.union = lambda result: result[0]
    nothing: Any = Rdd(context)
    by_own_workers(nothing, [constant_step([]), identity_step], local)
    assert [item["SQUALL_WORKER"] for item in context.seen[:2]] == pools
    assert context.environment is names
    assert [*names] == ["PYTHONHASHSEED", "one", "two"]
