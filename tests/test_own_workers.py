"""Tasks with their own pools of Python workers (`squall.builders.spark.workers.by_own_workers`)."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any, cast

import pytest

from squall.builders.distributed.io.records import constant_step
from squall.builders.spark.workers import by_own_workers
from squall.errors import BuilderError


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


class _Closed(io.BytesIO):
    """A connection that the other side has closed."""

    def flush(self) -> None:
        raise BrokenPipeError


def test_a_worker_ends_silently_when_java_has_closed_the_connection() -> None:
    pytest.importorskip("pyspark")
    from squall.builders.spark_daemon import ending_with_java

    codes: list[int] = []
    for connection in (io.BytesIO(), _Closed()):
        ending_with_java(lambda infile, outfile: None, codes.append)(io.BytesIO(), connection)
    assert codes == [0]


class _Context:
    """A session's context. Its workers lack some packages, or cannot evaluate anything."""

    def __init__(self, master: str, result: Sequence[str] | Exception = ()) -> None:
        self.master, self.result = master, result
        self.pythonExec, self.environment = "python3", {"PYTHONPATH": "/mine"}

    def parallelize(self, items: Sequence[str], _: int) -> _Context:
        return self

    def map(self, _: Callable[..., Any]) -> _Context:
        return self

    def first(self) -> Sequence[str]:
        if isinstance(self.result, Exception):
            raise self.result
        return self.result


@pytest.mark.parametrize(
    ("result", "reason"),
    [
        (["squall", "pyarrow"], "`python3`: a Python without `squall`, `pyarrow`"),
        ("[PYTHON_VERSION_MISMATCH] Python in worker", "another version of Python than this process, which has"),
        (
            "Job aborted\njava.io.IOException: No such file\n\tat x",
            "a Python that does not work: java.io.IOException: No",
        ),
    ],
)
def test_workers_that_cannot_import_squall_are_refused(
    monkeypatch: pytest.MonkeyPatch, result: list[str] | str, reason: str
) -> None:
    errors = pytest.importorskip("pyspark.errors")
    from squall.builders.spark import worker_python

    monkeypatch.delenv(worker_python.VARIABLE, raising=False)
    context: Any = _Context("spark://host", errors.PySparkException(result) if isinstance(result, str) else result)
    with pytest.raises(BuilderError, match=f"{reason}(.|\n)*set PYSPARK_PYTHON before the session starts"):
        worker_python.ensure(context)
    worker_python.ensure(local := cast(Any, _Context("local[2]")))
    assert local.pythonExec == sys.executable
    assert local.environment["PYTHONPATH"].split(os.pathsep) == [worker_python.package_root(), "/mine"]


@pytest.mark.parametrize(("local", "pools"), [(True, ["0", "1"]), (False, ["0", "0"])])
def test_the_environment_of_the_process_is_not_changed(local: bool, pools: list[str]) -> None:
    names = dict.fromkeys(["PYTHONHASHSEED", "one", "two"], "0")
    context = SimpleNamespace(environment=names, seen=[], reading=iter(names))
    context.union = lambda result: result[0]
    nothing: Any = Rdd(context)
    by_own_workers(nothing, [constant_step([])] * 2, local)
    assert [item["SQUALL_WORKER"] for item in context.seen[:2]] == pools
    assert context.environment is names
    assert [*names] == ["PYTHONHASHSEED", "one", "two"]
