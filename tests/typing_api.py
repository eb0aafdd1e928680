"""Proves with mypy that our stages satisfy their Protocols and that wrong ones do not.

Nothing here is run. ``warn_unused_ignores`` makes mypy fail where something that has to be refused is accepted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from squall.contracts import (
    Builder,
    DeadLetterLedger,
    Job,
    Lexer,
    Options,
    Output,
    Planner,
    Translator,
    TruncatableSink,
)
from squall.model import System
from squall.plan import Plan
from squall.rdf import Event

if TYPE_CHECKING:
    from squall.builders import beam, spark
    from squall.builders.local import job
    from squall.lexers import jena as jena_lexer
    from squall.planners import greedy, rete
    from squall.streams import DeadLetterFile, FileSink
    from squall.translators import jena as jena_translator

    lexers: list[Lexer] = [jena_lexer.lexer]
    translators: list[Translator] = [jena_translator.translator]
    planners: list[Planner] = [greedy.plan, rete.plan]
    builders: list[Builder] = [job.build, spark.build, beam.build]

    def jobs(plan: Plan, options: Options) -> list[Job]:
        return [job.build(plan, options), spark.build(plan, options), beam.build(plan, options)]

    def ledger(file: DeadLetterFile) -> DeadLetterLedger:
        return file

    def rewindable(sink: FileSink) -> TruncatableSink:
        return sink


class CallableLexer:
    """A lexer needs no attributes: its extensions are declared in the metadata of the plug-in."""

    def __call__(self, text: str, name: str) -> Any:
        return text


def text_only(text: str) -> Any:
    return text


def no_system(tree: Any) -> Plan:
    return Plan(())


def no_plan(system: System) -> System:
    return system


def without_options(plan: Plan) -> Job:
    raise NotImplementedError


class OneByOne:
    """A job that takes events where it has to take batches."""

    def run(self, batches: Iterable[Event], static: Iterable[Event] = ()) -> Iterator[Output]:
        return iter(())


class AllAtOnce:
    """A job that gives sequences of outputs."""

    def run(self, batches: Iterable[Sequence[Event]], static: Iterable[Event] = ()) -> Iterator[Sequence[Output]]:
        return iter(())


right_lexer: Lexer = CallableLexer()
wrong_lexer: Lexer = text_only  # type: ignore[assignment]
wrong_translator: Translator = no_system  # type: ignore[assignment]
wrong_planner: Planner = no_plan  # type: ignore[assignment]
wrong_builder: Builder = without_options  # type: ignore[assignment]
wrong_jobs: list[Job] = [
    OneByOne(),  # type: ignore[list-item]
    AllAtOnce(),  # type: ignore[list-item]
]
