"""Third parties' cases, run through our stages; ``python -m tests.conformance --help`` says how.

The cases are not part of this repository: `corpus` tells where they are looked for.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from importlib import import_module
from itertools import islice
from pathlib import Path
from types import FrameType

from squall.errors import SquallError

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
}
"""The suites by name (a folder of the corpus), each with the module whose ``cases(folder)`` gives its cases."""

PLACES = {"jena-owl": Path("jena-rules", "owl_ruleset_tests.json")}
"""The paths of the cases of suites that have no folder of their own."""

STATUSES = ("passed", "failed", "left out", "known bad")
"""The possible results of a case."""

SECONDS = {"iterator": 60.0, "beam": 600.0}
"""The seconds that one case may take on a builder, by the clock. (In the middle of a call to Spark's JVM, an alarm
would end the session, and with it all other cases. A Beam pipeline may take 20 s of a core that has other work,
too.)"""


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
    cases: Iterable[Case] = import_module(SUITES[suite]).cases(place_of(suite, folder))
    for case in islice(cases, 0, None, every):
        status, reason = _outcome(case, stages)
        yield Outcome(suite, case.name, status, reason)


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
        raise TimeoutError(f"takes more than {seconds:g} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
