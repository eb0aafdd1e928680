"""Third parties' cases, run through our stages; ``python -m tests.conformance --help`` says how.

The cases are not part of this repository: `corpus` tells where they are looked for.
"""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from itertools import islice
from pathlib import Path
from types import FrameType
from typing import Any

from squall.errors import Errors, LexerError, SquallError

SUITES = {
    "squall": "tests.conformance.squall_suite",
    "jena-rules": "tests.conformance.jena_rules_suite",
    "jena-owl": "tests.conformance.jena_owl",
    "rif-w3c": "tests.conformance.rif_suite",
    "rif-owl2rl-weaver": "tests.conformance.rif_weaver_suite",
    "w3c-rdf-tests": "tests.conformance.w3c_suite",
    "csparql-engine": "tests.conformance.csparql_engine_suite",
    "csrbench": "tests.conformance.csrbench_suite",
    "yabench": "tests.conformance.yabench_suite",
    "cqels": "tests.conformance.cqels_suite",
    "lubm": "tests.conformance.lubm_suite",
    "owl1-wg-tests": "tests.conformance.owl1_suite",
    "owl2-tests": "tests.conformance.owl2_suite",
    "rsp-query-sets": "tests.conformance.stream_queries_suite",
    "instans": "tests.conformance.instans_suite",
    "ep-sparql-etalis": "tests.conformance.ep_sparql_suite",
}
"""The suites by name (a folder of the corpus), each with the module whose ``cases(folder)`` gives its cases."""

PLACES = {"jena-owl": Path("jena-rules", "owl_ruleset_tests.json")}
"""The paths of the cases of suites that have no folder of their own."""

STATUSES = ("passed", "failed", "left out", "known bad")
"""The possible results of a case."""

SECONDS = {"iterator": 60.0, "beam": 600.0}
"""The CPU seconds that one case may take on a builder. (In the middle of a call to Spark's JVM, an alarm would end the
session, and with it all other cases.)"""


@dataclass(frozen=True)
class Stages:
    """The stages with which the cases are run."""

    planner: str = "rete"
    builder: str = "iterator"


@dataclass(frozen=True)
class Case:
    """A case of a suite. `run` raises AssertionError where it fails, `LeftOut` where squall does not support it, and
    `KnownBad` where its expected result is known to be wrong or missing."""

    name: str
    run: Callable[[Stages], None]


class LeftOut(Exception):
    """Why a case is not run."""


class KnownBad(Exception):
    """Says what is known to be wrong or missing in a case. What should be expected has been held against our answer."""


@dataclass(frozen=True)
class Outcome:
    """The outcome of a case. `status` is one of `STATUSES`; `reason` says why the case has not passed."""

    suite: str
    case: str
    status: str
    reason: str = ""

    def __str__(self) -> str:
        return f"{self.status}: {self.suite} {self.case}: {self.reason}"


def corpus() -> Path:
    """Returns the folder of the cases: that of the environment variable ``SQUALL_CONFORMANCE``, or else
    ``../shared/conformance``."""
    beside = Path(__file__).parents[3] / "shared" / "conformance"
    return Path(os.environ.get("SQUALL_CONFORMANCE", beside))


def place_of(suite: str, corpus: Path) -> Path:
    """Returns where the cases of a suite are: its folder, or a file."""
    return corpus / PLACES.get(suite, suite)


def run(suite: str, folder: Path, stages: Stages, every: int = 1) -> Iterator[Outcome]:
    """Yields the outcomes of a suite's cases.

    Args:
        folder: The folder of the corpus.
        every: Runs only every n-th case, as a sample.
    """
    for case in islice(cases_of(suite, folder), 0, None, every):
        status, reason = _outcome(case, stages)
        yield Outcome(suite, case.name, status, reason)


def cases_of(suite: str, folder: Path) -> Iterator[Case]:
    """Yields the cases of a suite of the corpus in a folder."""
    return _listed(import_module(SUITES[suite]).cases(place_of(suite, folder)))


def _listed(cases: Iterable[Case]) -> Iterator[Case]:
    """Yields the cases of a suite. If the list of cases cannot be read to its end, a case that fails says so."""
    try:
        yield from cases
    except Exception as error:
        yield Case("the list of cases", partial(_fail, f"{type(error).__name__}: {error}"))


def _fail(reason: str, stages: Stages) -> None:
    raise AssertionError(reason)


def leave_out(reason: str, stages: Stages) -> None:
    """Is the run of a case that is left out."""
    raise LeftOut(reason)


def entries(path: Path, key: str = "") -> list[dict[str, Any]]:
    """Returns the entries of an index in JSON, which are under a key if it has one. There are none if a corpus does not
    have the file."""
    if not path.is_file():
        return []
    document = json.loads(path.read_text(encoding="utf-8"))
    listed: list[dict[str, Any]] = document[key] if key else document
    return listed


@contextmanager
def refusal() -> Iterator[None]:
    """Raises AssertionError unless what is done within is refused as a text that is not of its language."""
    try:
        yield
    except (LexerError, Errors):
        return
    raise AssertionError("it is not refused")


def _outcome(case: Case, stages: Stages) -> tuple[str, str]:
    try:
        with _limited(SECONDS[stages.builder]) if stages.builder in SECONDS else nullcontext():
            case.run(stages)
    except LeftOut as reason:
        return "left out", str(reason)
    except KnownBad as reason:
        return "known bad", str(reason)
    except (AssertionError, SquallError) as error:
        return "failed", " | ".join(str(error).splitlines())
    except Exception as error:  # A defect that one case shows must not hide what the others show.
        return "failed", f"{type(error).__name__}: {error}"
    return "passed", ""


@contextmanager
def _limited(seconds: float) -> Iterator[None]:
    """Raises TimeoutError within, when the time is over. In the main thread only."""

    def stop(signal: int, frame: FrameType | None) -> None:
        raise TimeoutError(f"takes more than {seconds:g} s of CPU")

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
