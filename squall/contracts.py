"""The contracts of the four stages: what a third party writes to add a language, a planner or a builder."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, Protocol, runtime_checkable

from squall.model import System
from squall.plan import Plan
from squall.rdf import Boolean, Evaluated, Event, Fact, Quad, Solution, Term

Result = Fact | Quad | Solution | Boolean | Evaluated
"""What an output may carry: a derived fact or quad, the answer of a query, or the mark that ends an evaluation."""

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    R = TypeVar("R", bound=Result, default=Result, covariant=True)
else:
    from typing import TypeVar

    R = TypeVar("R", covariant=True)


class Output(NamedTuple, Generic[R]):
    """One output of a program, and when it holds. `Output[Triple]` carries a triple; a bare `Output` any `Result`.

    Attributes:
        fact: The derived fact or quad, the solution or boolean of a query, or `squall.rdf.Evaluated`, which says that
            an evaluation is complete.
        time: Integer ms at which it became true (istream), ceased to be true (dstream) or was in the answer (rstream);
            `squall.rdf.ALWAYS` for what follows from static data alone.
        rule: The name of a rule that derives it: at that time (istream), or at some time since when it has held
            (dstream, rstream).
    """

    fact: R
    time: int
    rule: str


@runtime_checkable
class Lexer(Protocol):
    """Text to tree."""

    @property
    def extensions(self) -> tuple[str, ...]:
        """The file endings of the language, with their dots."""
        ...

    def __call__(self, text: str, name: str, /) -> Any:
        """The tree of a program's text. Its type is known to the translator of the same name only; it is frozen and
        prints as text of the language. `name` is used in messages. Raises LexerError or Errors; what could be read
        nevertheless may be given as their `partial` (see `SquallError`)."""
        ...


@runtime_checkable
class Translator(Protocol):
    """Tree to Translated Production System."""

    def __call__(self, tree: Any, /) -> System:
        """Raises TranslatorError or Errors, with all of the program's errors at once. A translator that takes
        `documents` as well is given the files of programs that the program may import, by their IRIs."""
        ...


@runtime_checkable
class Planner(Protocol):
    """Translated to Planned Production System."""

    def __call__(self, system: System, /) -> Plan:
        """A plan that `squall.plan.validation.check` accepts. Equal systems give equal plans. Raises PlannerError."""
        ...


class Interval(NamedTuple):
    """How often something is done: behind so many statements, or when so much time has passed (integer ms)."""

    statements: int | None = None
    milliseconds: int | None = None


@dataclass(frozen=True)
class Options:
    """What a run is told besides its plan.

    checkpoint: a folder that holds offsets and state, so that a killed run goes on where it was (None: none is kept).
    every: how often that is saved, where the builder lets its user say so.
    migrate: go on where a run was whose program had more rules, if what is left can be told exactly.
    conf: settings of the engine, by its own names.
    ledger: where what could not be used (malformed, late) is counted and kept.
    sink: what the outputs are written to, if it can be rewound to where a cut-off batch began, or recovered; or a
    folder, which the job writes by itself: then `Job.run` gives no outputs.
    batch: all that is read is there, and is worked off at once (of a builder that works batch by batch).
    measure: count and time what each node does (`squall.plan.node_metrics`), where the builder can.
    steps: how often updates may act on what updates have done without an event in between, before that is an error.
    max_depth: how deep rules may nest the terms that they make (compounds, new nodes), before that is an error; their
    lists may have ten times as many members.
    now: what functions of time (``NOW()``) take for the time of what always holds (integer ms; None: see
    `squall.streams.clock.beginning`).
    """

    checkpoint: Path | None = None
    conf: tuple[tuple[str, str], ...] = field(default=())
    ledger: Ledger | None = None
    sink: TruncatableSink | CheckpointedSink | Folder | None = None
    batch: bool = False
    measure: bool = False
    steps: int = 10_000
    max_depth: int = 100
    now: int | None = None
    every: Interval = field(default=Interval(milliseconds=1000))
    migrate: bool = False


class Ledger(Protocol):
    """Counts and keeps what a run could not use."""

    def record(self, cause: str, source: str, line: int | None, reason: str, text: str) -> None:
        """One lost statement. cause: ``malformed``, ``late``, or another reason in a word; line: its number from 1,
        where it has one."""
        ...


@runtime_checkable
class TruncatableSink(Protocol):
    """A sink or a ledger whose end can be marked, and which can be cut back to it (after a crash in mid batch)."""

    def mark(self) -> int:
        """The durable length so far, in bytes, everything written flushed to disk."""
        ...

    def rewind(self, mark: int) -> None:
        """Drops what was written after the mark."""
        ...


@runtime_checkable
class CheckpointedSink(Protocol):
    """A sink or a ledger that goes on in another process where it was at a checkpoint, as if nothing had followed."""

    def save(self, last: bool = False) -> Any:
        """What has to be known to go on from here, as what JSON can hold; what has been written is on disk, or in
        there. last: nothing follows for the time being."""
        ...

    def recover(self, saved: Any) -> None:
        """Goes on from there; said before anything is written."""
        ...


@runtime_checkable
class TwoPhaseCommitSink(CheckpointedSink, Protocol):
    """A sink that holds back what is written until a checkpoint has it, since it could not be taken back."""

    def deliver(self) -> bool:
        """What `save` gave last is in a checkpoint: hands it on. Comes back when it is where it should be; whether
        there was anything."""
        ...


@runtime_checkable
class Folder(Protocol):
    """A folder as a sink, which gets a sub-folder of files for each batch.

    format: of the files. types: by the name of a column the type that its values are to have, as the engine names it
    (None: terms are told whole). written: how many outputs have been written.
    """

    path: Path
    format: str
    types: Mapping[str, str] | None
    written: int


@runtime_checkable
class SupportsFilterPushDown(Protocol):
    """Batches of which a job may say what it has use for."""

    def want(self, predicates: Collection[Term]) -> None:
        """No triples are of use but those with one of these predicates. To be said before reading begins, and only
        where neither each triple counts nor each event is an instant of its own. Others may still come."""
        ...


@runtime_checkable
class AcceptsDeadLetters(Protocol):
    """Batches of what may lose something, and records it."""

    def adopt(self, ledger: Ledger | None) -> None:
        """What is lost goes to this ledger, that of the run, where it has no other place to go; None: there is none,
        and it is an error. To be said before reading begins."""
        ...


@runtime_checkable
class Job(Protocol):
    """A plan made ready to run by one builder."""

    def run(self, batches: Iterable[Sequence[Event]], static: Iterable[Event] = ()) -> Iterator[Output[Any]]:
        """The outputs for a stream of events in non-decreasing time, as soon as they are known, in the order of time.

        A batch is what is at hand: how a stream is cut into batches never changes the outputs (semantics.md, law 2).
        `batches` may be a `squall.streams.Sources`, whose parts a distributed builder reads where it runs.
        `static` holds always and is read first. An event earlier than one before it is *late*: it goes to the
        ledger."""
        ...


@runtime_checkable
class Builder(Protocol):
    """Planned Production System to a job."""

    def __call__(self, plan: Plan, options: Options, /) -> Job:
        """Raises BuilderError where the plan cannot be run."""
        ...
