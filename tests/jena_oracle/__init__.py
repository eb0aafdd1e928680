"""Apache Jena as an oracle for rules and queries, where a JDK and Jena's jars are at hand (`make jena`).

One JVM runs `Peer.java` for all requests of a session.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path
from zipfile import ZipFile

FOLDERS = (Path(__file__).parents[2] / ".venv" / "jena" / "usr" / "share" / "java", Path("/usr/share/java"))
"""Where Debian's packages have the jars: unpacked by `make jena`, or installed."""
JARS = (
    "jena-core", "jena-arq", "jena-base", "jena-iri", "slf4j-api", "slf4j-nop", "commons-lang3", "commons-csv",
    "commons-io", "commons-codec", "commons-cli", "commons-compress", "dexx.collection", "gson", "guava",
    "failureaccess", "jackson-core", "jackson-databind", "jackson-annotations", "jsonld-java", "thrift", "protobuf",
    "jakarta.json-api", "titanium-json-ld", "httpclient", "httpcore",
)  # fmt: skip
"""Jena's jars, and those of what it uses."""
_RENAMED = "org/apache/jena/ext/"
"""The packages that Debian's build of Jena has renamed in classes, and not in the names of resources."""


def jars() -> Path | None:
    """Returns the folder with Jena's jars: that of the environment variable ``SQUALL_JENA``, or one of `FOLDERS`."""
    folders = [Path(os.environ["SQUALL_JENA"])] if "SQUALL_JENA" in os.environ else FOLDERS
    return next((folder for folder in folders if (folder / "jena-core.jar").exists()), None)


def missing() -> str:
    """Returns why there is no oracle, or ``""``."""
    if shutil.which("javac") is None:
        return "there is no JDK"
    return "" if jars() else "Jena's jars not found: `make jena`, or set SQUALL_JENA"


class Jena:
    """A JVM with Jena.

    Args:
        scratch: A folder for the resources that Debian's build does not find.
    """

    def __init__(self, scratch: Path) -> None:
        folder = jars()
        assert folder is not None
        _unpack_resources(folder / "jena-core.jar", scratch)
        path = os.pathsep.join([*(str(folder / f"{name}.jar") for name in JARS), str(scratch)])
        source = Path(__file__).with_name("Peer.java")
        self.process = subprocess.Popen(
            ["java", "-XX:+UseSerialGC", "-cp", path, str(source)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            encoding="utf-8",
        )

    def rules(self, program: str, facts: Iterable[object]) -> list[list[str]]:
        """Returns all facts that hold after forward rules, as the texts of their terms.

        Jena's forward engine without RETE runs them. Its RETE engine loses answers where a pattern that is not the
        first repeats a variable of its own: ``(?x :p ?x) (?y :p ?y) -> (?x :r ?y)`` derives nothing there.
        """
        return self._ask("rules", program, facts)

    def query(self, text: str, facts: Iterable[object]) -> list[list[str]]:
        """Returns the names of variables, and then the solutions, as the texts of their terms; of ASK ``true`` or
        ``false``."""
        return self._ask("query", text, facts)

    def _ask(self, what: str, program: str, facts: Iterable[object]) -> list[list[str]]:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        data = "".join(f"{fact}\n" for fact in facts)
        self.process.stdin.write(f"{what}\n.\n{program}\n.\n{data}.\n")
        self.process.stdin.flush()
        rows: list[list[str]] = []
        for line in iter(self.process.stdout.readline, ".\n"):
            assert line, "the JVM has ended"
            assert not line.startswith("error: "), f"Jena refuses it: {line}\n{program}"
            rows.append(line.removesuffix("\n").split("\t"))
        return rows

    def close(self) -> None:
        """Ends the JVM."""
        self.process.communicate(timeout=30)


def _unpack_resources(jar: Path, scratch: Path) -> None:
    """Unpacks the resources of renamed packages under the names by which classes look for them."""
    with ZipFile(jar) as archive:
        for name in archive.namelist():
            if name.startswith(_RENAMED) and name.endswith(".properties"):
                target = scratch / name.removeprefix(_RENAMED)
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(archive.read(name))
