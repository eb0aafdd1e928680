"""The Spark builder runs on the oldest and on the newest PySpark that the extra `spark` allows."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent

pytestmark = [pytest.mark.spark, pytest.mark.slow]

VERSIONS = {"oldest": "pyspark==4.0.0", "newest": "pyspark>=4,<5"}
"""The versions that are installed for each test; setup.cfg allows versions from the oldest up to the next major
version."""

SELECTED = ("tests/test_spark.py", "tests/test_spark_dataframes.py", "tests/test_spark_datasource.py")


@pytest.mark.parametrize("version", VERSIONS)
def test_it_runs_on_this_pyspark(version: str, tmp_path: Path) -> None:
    site = tmp_path / "site"
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--target", str(site)]
    installed = subprocess.run([*install, VERSIONS[version]], capture_output=True, text=True, check=False)
    if installed.returncode:
        pytest.skip(f"{VERSIONS[version]} cannot be installed: {installed.stderr.strip().splitlines()[-1]}")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "SPARK_"))}
    environment["PYTHONPATH"] = f"{site}{os.pathsep}{ROOT}"
    shown = subprocess.run(
        [sys.executable, "-c", "import pyspark; print(pyspark.__version__, pyspark.__file__)"],
        env=environment, capture_output=True, text=True, check=True,
    ).stdout.split()  # fmt: skip
    assert shown[1].startswith(str(site))
    assert shown[0] == "4.0.0" if version == "oldest" else shown[0] >= "4.1"
    # Py4J of PySpark 4.0 leaves sockets to the garbage collector.
    leaks = ["-W", "ignore::ResourceWarning", "-W", "ignore::pytest.PytestUnraisableExceptionWarning"]
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "not slow", *leaks, *SELECTED]
    tests = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert tests.returncode == 0, tests.stdout[-5000:]
    assert " passed" in tests.stdout
