"""The Python of Spark's workers: it must have squall, and the version of this process.

Otherwise the first job fails with the tracebacks of all processes that were on the way.
"""

from __future__ import annotations

import os
import sys
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from squall import errors
from squall.errors import BuilderError

if TYPE_CHECKING:
    from pyspark import SparkContext

VARIABLE = "PYSPARK_PYTHON"
"""The environment variable that names the Python of workers. Spark reads it when a session starts."""
PACKAGES = ("squall", "pyarrow", "pyoxigraph")
"""The packages that workers import."""
_MISSING = f"[name for name in {PACKAGES} if __import__('importlib.util').util.find_spec(name) is None]"
"""The expression that a worker evaluates: the packages that it does not have. It needs none of them itself."""
_OTHER_VERSION = "PYTHON_VERSION_MISMATCH"
"""The error class of Spark for workers of another version than the driver."""


def package_root() -> str:
    """Returns the folder from which this process imports squall."""
    return str(Path(errors.__file__).parent.parent)


@lru_cache(maxsize=1)
def ensure(context: SparkContext) -> None:
    """Ensures that the workers of a session can import squall.

    On this machine they get the Python of this process, unless the environment names another one, and import squall
    from where this process does. Any other Python is tried by a job of one task.

    Raises:
        BuilderError: They have another version of Python, or lack a package, or cannot be started.
    """
    if (context.master or "").partition("[")[0] == "local":
        if VARIABLE not in os.environ:
            context.pythonExec = sys.executable
        entries = context.environment.get("PYTHONPATH", "").split(os.pathsep)
        paths = os.pathsep.join(dict.fromkeys([package_root(), *filter(None, entries)]))
        context.environment = {**context.environment, "PYTHONPATH": paths}  # other threads may be reading the old one
        if context.pythonExec == sys.executable:
            return
    _check(context)


def _check(context: SparkContext) -> None:
    from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
    from pyspark.errors import PySparkException

    try:
        missing = context.parallelize([_MISSING], 1).map(eval).first()
    except (Py4JJavaError, PySparkException) as error:
        text = str(error)
        if _OTHER_VERSION in text:
            version = ".".join(map(str, sys.version_info[:2]))
            _refuse(context, f"another version of Python than this process, which has {version}")
        causes = [line for line in text.splitlines() if "Exception: " in line or "Error: " in line]
        _refuse(context, f"a Python that does not work: {(causes or [text])[-1].strip()}")
    if missing:
        _refuse(context, f"a Python without {', '.join(f'`{name}`' for name in missing)}")


def _refuse(context: SparkContext, reason: str) -> NoReturn:
    hint = f"set {VARIABLE} before the session starts, on this machine to `{sys.executable}`; on a cluster, install " \
           "squall for that Python on all machines, or send it with the job (docs/spark.md, On a cluster)"  # fmt: skip
    raise BuilderError(f"Spark's workers run `{context.pythonExec}`: {reason}", hint=hint)
