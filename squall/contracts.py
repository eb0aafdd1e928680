"""The contracts of the four stages: lexer, translator, planner and builder.

A third party implements them to add a language, a planner or an engine (docs/extending.md). This module also has what
a builder is given (`Options`), what it declares (`BuilderCapabilities`), and what a job may ask of its input and sink.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, Protocol, cast, runtime_checkable

from squall.errors import BuilderError
from squall.model import System
from squall.plan import MAX_CREATED_TERMS, Plan, Planning
from squall.rdf import Boolean, Evaluated, Event, Fact, Quad, Solution, Term

Result = Fact | Quad | Solution | Boolean | Evaluated
"""The types that an output may carry: a derived fact or quad, a query's answer, or the mark that ends an evaluation."""

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    from squall.plan.node_metrics import NodeMetric

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
        change: ``insert`` or ``delete``, of the R2S operator `changes`: whether it became true or ceased to be true.
            ``""`` of the other operators, each of which outputs one of the two, or neither.
    """

    fact: R
    time: int
    rule: str
    change: str = ""


@runtime_checkable
class Lexer(Protocol):
    """A lexer parses the text of a program to a syntax tree.

    The file extensions of its language are entry points of the package (`squall.plugins.EXTENSIONS`), so that the
    language of a file is known without loading a lexer.

    One with a parameter `prefixes` is given prefixes from outside: a mapping of prefixes to IRIs, which the program may
    use without declaring them. What it declares itself wins.

    It may also have a method ``written(tree) -> str``, which writes a tree as text of the language. Then its name is a
    format of ``squall explain --stage tree`` for all languages with the same translator.
    """

    def __call__(self, text: str, name: str, /) -> Any:
        """Parses a program.

        Args:
            text: The text of the program.
            name: A name for the text, such as its path, for messages.

        Returns:
            The syntax tree: immutable data that prints as text of the language. Only the translator of the same name
            knows its type.

        Raises:
            LexerError: The text is not in the language. Its attribute `partial` may hold the tree of what could be read
                nevertheless (see `SquallError`).
            Errors: There are several errors in the text.
        """
        ...


@runtime_checkable
class Translator(Protocol):
    """A translator turns a syntax tree into a Translated Production System.

    It may also have an attribute ``written``, a function from a system to a tree of the language, which the lexer
    writes as text. Then its name is a format of ``squall explain --stage tps`` for all languages.
    """

    def __call__(self, tree: Any, /) -> System:
        """Translates a tree of the lexer of the same name.

        A translator with a parameter `documents` is given the files of the programs that the program may import, by
        their IRIs. One with a parameter `profile` is given the name of the profile (`squall.model.profiles`). One
        with a parameter `prefixes` is given the prefixes from outside, for programs that the program imports.

        Raises:
            TranslatorError: The program cannot be translated.
            Errors: There are several errors. All of a program's errors are raised at once.
        """
        ...


@runtime_checkable
class Planner(Protocol):
    """A planner turns a Translated Production System into a Planned Production System."""

    def __call__(self, system: System, /) -> Plan:
        """Plans a system.

        A planner with a parameter `statistics` is given the `squall.plan.cardinality.Statistics` of the data, if there
        are any.

        Returns:
            A plan that `squall.plan.validation.check` accepts. Equal systems give equal plans.

        Raises:
            PlannerError: The system cannot be planned.
        """
        ...


class Interval(NamedTuple):
    """An interval between checkpoints, in statements or in time.

    Attributes:
        statements: The number of statements between two checkpoints, or None.
        milliseconds: The time between two checkpoints in ms, or None.
    """

    statements: int | None = None
    milliseconds: int | None = None


@dataclass(frozen=True)
class Replanning:
    """How a run replaces its plan while it runs, where another order of joins is cheaper for what it has stored.

    The plan that the run begins with has to be replaceable (`squall.plan`).

    Attributes:
        interval: After how many statements the run looks for a better plan.
        min_gain: How many times as expensive the present plan has to be, as estimated.
        confirmations: How many times in a row it has to be.
        max_share: The largest share of the run's processor time that looking for better plans may take.
        backward: Whether the run looks at what it has stored, after a batch.
        forward: Whether it looks at a sample of its input, when it begins and before each large batch: one with at
            least a tenth as many statements as rows are stored.
    """

    interval: int = 2000
    min_gain: float = 1.5
    confirmations: int = 2
    max_share: float = 0.02
    backward: bool = True
    forward: bool = False


class BatchMetrics(NamedTuple):
    """The metrics of a batch of events that a job has processed.

    Attributes:
        arrived: When the first of its events arrived, in seconds of `time.monotonic`: when a thread of a live source
            received it, or else when the job got the batch.
        began: When its processing began.
        ended: When its outputs had been taken.
        statements: The number of its statements; 0 of a heartbeat.
        watermark: The time (integer ms) up to which all instants have been processed then.
        events: Its events, if they pass through the process that runs the job; else None.
    """

    arrived: float
    began: float
    ended: float
    statements: int
    watermark: int
    events: Sequence[Event] | None = None


@dataclass(frozen=True)
class Options:
    """The options of a run. What a builder supports of them is in its `BuilderCapabilities`.

    Attributes:
        checkpoint: The folder of offsets and operator state, from which a killed run resumes. None: no checkpoint.
        conf: Settings of the engine, by its own names.
        ledger: Where dead letters (malformed and late statements) are counted and kept.
        sink: What the outputs are written to, if the run can truncate it to the start of an interrupted batch, or
            recover it from a checkpoint; or a folder, which the job writes itself: then `Job.run` yields no outputs.
        run_as_one_batch: Whether a builder that runs micro-batches processes its whole, bounded input as one batch.
        measure: Whether to count the rows and measure the time of each node (`squall.plan.node_metrics`).
        max_update_steps: How many steps updates may take that only depend on other updates, without an event in
            between, before that is an error.
        max_depth: How deep rules may nest the terms that they create (compounds, new nodes) before that is an error.
            Their lists may have ten times as many members.
        max_terms: How many terms a recursion of rules may create at a time of terms that it created (a long one counts
            as several), before that is an error. If it has many rows, it may create ten for each of them.
        now: The time (integer ms) of static data for functions of time (``NOW()``). None: see
            `squall.streams.clock.beginning`.
        checkpoint_interval: How often a checkpoint is saved, if the builder lets its user choose.
        batch_interval: How long (integer ms) events are gathered for a micro-batch of live input, if the builder has
            micro-batches. None: as long as the one before takes. No output depends on it.
        memory_limit: How many bytes of main memory the process of a run may take, if the builder measures that. A run
            that needs more ends with an error that names the node, and the reason. None: there is no limit.
        allow_removed_rules: Whether a run may resume from the checkpoint of a program that had more rules, if the state
            of the remaining rules can be separated exactly.
        seed: What makes the terms that the run creates (blank nodes, UUIDs, random numbers) differ from those of other
            runs (`squall.plan.seeds.with_seed`). Runs with equal seeds create equal ones. None: `squall.build` draws
            one. A run that resumes from a checkpoint has the seed that is saved there.
        replan: How the run replaces its plan while it runs. None: the plan stays.
        on_batch: It is called with the metrics of each batch that has been processed, if the builder measures them.
            None: nothing is measured. See `squall.observe.latency.Latencies`.
    """

    checkpoint: Path | None = None
    conf: tuple[tuple[str, str], ...] = field(default=())
    ledger: DeadLetterLedger | None = None
    sink: TruncatableSink | CheckpointedSink | Folder | None = None
    run_as_one_batch: bool = False
    measure: bool = False
    max_update_steps: int = 10_000
    max_depth: int = 100
    max_terms: int = MAX_CREATED_TERMS
    now: int | None = None
    checkpoint_interval: Interval = field(default=Interval(milliseconds=1000))
    batch_interval: int | None = None
    memory_limit: int | None = None
    allow_removed_rules: bool = False
    seed: int | None = None
    replan: Replanning | None = None
    on_batch: Callable[[BatchMetrics], None] | None = None

    def __post_init__(self) -> None:
        if self.checkpoint is not None:
            object.__setattr__(self, "checkpoint", Path(self.checkpoint))  # it may be a text


@dataclass(frozen=True)
class BuilderCapabilities:
    """The capabilities that a builder declares. The default is none: such a builder runs plans over event time only.

    The command line asks for them before it builds a job, so that it can say which builders have what is missing.

    Attributes:
        checkpoints: It keeps offsets and operator state in `Options.checkpoint`, and resumes from there.
        checkpoint_interval: It saves a checkpoint as often as `Options.checkpoint_interval` says.
        batch_interval: It gathers events for `Options.batch_interval` before it processes them.
        memory_limit: It ends a run that needs more than `Options.memory_limit`.
        removed_rules: It resumes from the checkpoint of a program with more rules (`Options.allow_removed_rules`).
        recoverable_sinks: It saves the state of a `CheckpointedSink` in its checkpoints and recovers the sink from
            there. Without it, a run that resumes appends to its sink.
        folder_sinks: It writes its outputs itself if the sink is a `Folder`.
        wall_clock: It processes each event when it arrives, so that the time of arrival can be the time of events.
        one_batch: It processes bounded input as one batch if `Options.run_as_one_batch` is set.
        settings: It accepts settings of an engine (`Options.conf`).
        node_metrics: Its jobs have a method ``node_metrics()`` (`MeasuresNodes`) that gives rows and times if
            `Options.measure` is set.
        statistics: It reads all events in the process that calls `Job.run`, so that statistics can be collected there.
        replans: It replaces its plan while it runs (`Options.replan`).
        looks_ahead: It also does so for a sample of its input (`Replanning.forward`).
        resumes_with_any_plan: A run that resumes moves from the plan of its checkpoint to the plan that it is given.
        batch_metrics: It measures each batch (`Options.on_batch`).
    """

    checkpoints: bool = False
    checkpoint_interval: bool = False
    batch_interval: bool = False
    memory_limit: bool = False
    removed_rules: bool = False
    recoverable_sinks: bool = False
    folder_sinks: bool = False
    wall_clock: bool = False
    one_batch: bool = False
    settings: bool = False
    node_metrics: bool = False
    statistics: bool = False
    replans: bool = False
    looks_ahead: bool = False
    resumes_with_any_plan: bool = False
    batch_metrics: bool = False


B = TypeVar("B", bound=Callable[..., Any])


def declare_capabilities(
    capabilities: BuilderCapabilities, read_planning: Callable[[Path], Planning | None] | None = None
) -> Callable[[B], B]:
    """Decorates a builder with what it declares.

    Args:
        capabilities: Its capabilities, which become its attribute `capabilities`.
        read_planning: Returns how the program of a checkpoint was planned, or None if the folder does not say so. It
            becomes its attribute `read_planning`.
    """

    def decorated(builder: B) -> B:
        builder.capabilities = capabilities  # type: ignore[attr-defined]
        builder.read_planning = read_planning  # type: ignore[attr-defined]
        return builder

    return decorated


def capabilities_of(builder: Any) -> BuilderCapabilities:
    """Returns the capabilities that a builder declares; none if it declares nothing."""
    declared = getattr(builder, "capabilities", None)
    return declared if isinstance(declared, BuilderCapabilities) else BuilderCapabilities()


def saved_planning(builder: Any, checkpoint: Path) -> Planning | None:
    """Returns how the program of a builder's checkpoint was planned, so that a run that resumes is planned alike.

    None: There is no checkpoint yet, or it does not say so.
    """
    read_planning = getattr(builder, "read_planning", None)
    return cast(Planning | None, read_planning(checkpoint)) if callable(read_planning) else None


def check_options(options: Options, builder: Any, name: str) -> None:
    """Checks that a builder supports what the options ask for. `squall.build` calls it.

    Raises:
        BuilderError: The builder does not declare a capability that an option needs.
    """
    capabilities = capabilities_of(builder)
    defaults = Options()
    needs = (
        (options.checkpoint is not None, capabilities.checkpoints, "keeps no checkpoint", "checkpoint"),
        (options.checkpoint_interval != defaults.checkpoint_interval, capabilities.checkpoint_interval,
         "decides itself when a checkpoint is saved", "checkpoint-interval"),
        (options.batch_interval is not None, capabilities.batch_interval,
         "processes events as they arrive", "batch-interval"),
        (options.memory_limit is not None, capabilities.memory_limit,
         "leaves memory to its engine, whose workers hold the state", "memory-limit"),
        (options.allow_removed_rules, capabilities.removed_rules,
         "resumes only from a checkpoint of the same program", "allow-removed-rules"),
        (options.run_as_one_batch, capabilities.one_batch, "has no batches", "batch"),
        (bool(options.conf), capabilities.settings,
         f"has no setting `{options.conf[0][0] if options.conf else ''}`", "conf"),
        (options.measure, capabilities.node_metrics, "does not measure nodes", "profile-nodes"),
        (options.replan is not None, capabilities.replans, "does not replace its plan while it runs", "adapt"),
        (options.replan is not None and options.replan.forward, capabilities.looks_ahead,
         "does not look at its input before it processes it", "adapt forward"),
        (options.on_batch is not None, capabilities.batch_metrics, "does not measure its batches", "latency"),
        (isinstance(options.sink, Folder), capabilities.folder_sinks, "writes no folder", "sink"),
    )  # fmt: skip
    for is_needed, is_supported, reason, option in needs:
        if is_needed and not is_supported:
            remedy = "name a file as the sink" if option == "sink" else f"leave `--{option}` out"
            hint = f"{remedy}, or use a builder that supports it: `squall list builders`"
            raise BuilderError(f"the builder `{name}` {reason}", hint=hint)


class DeadLetterLedger(Protocol):
    """A ledger of dead letters: it counts and keeps the statements that a run could not use."""

    def record(self, cause: str, source: str, line: int | None, reason: str, text: str) -> None:
        """Records one dead letter.

        Args:
            cause: ``malformed``, ``late``, or another cause in one word.
            source: The source, or the stream, of the statement.
            line: The line number in the source, from 1, or None.
            reason: Why the statement cannot be used.
            text: The statement.
        """
        ...


@runtime_checkable
class HasDigests(Protocol):
    """Static data by which a checkpoint recognises them: a run that resumes does not read them again."""

    def digests(self) -> Mapping[str, str]:
        """Returns a digest of the content by address; ``""`` where the content is not known before it is read."""
        ...


@runtime_checkable
class TruncatableSink(Protocol):
    """A sink, or a ledger, that can be cut back to an earlier position after a crash in the middle of a batch."""

    def position(self) -> int:
        """Flushes everything written to disk, and returns the durable length so far in bytes."""
        ...

    def truncate(self, position: int) -> None:
        """Drops what was written after a position."""
        ...


@runtime_checkable
class CheckpointedSink(Protocol):
    """A sink, or a ledger, whose state is part of a checkpoint.

    In another process it resumes from the checkpoint as if nothing had been written since.
    """

    def snapshot(self, last: bool = False) -> Any:
        """Returns the state from which the sink can resume, as a JSON value.

        Everything written is then on disk, or part of that state.

        Args:
            last: Whether nothing follows for the time being.
        """
        ...

    def restore(self, state: Any) -> None:
        """Resumes from a state that `snapshot` returned. It is called before anything is written."""
        ...


@runtime_checkable
class TwoPhaseCommitSink(CheckpointedSink, Protocol):
    """A sink that holds outputs back until a checkpoint has them, since it could not retract them.

    `snapshot` is the first phase of the commit (pre-commit), `commit` the second.
    """

    def commit(self) -> bool:
        """Commits what `snapshot` returned last, once that is in a checkpoint.

        It returns when the outputs have arrived, and says whether there were any.
        """
        ...


@runtime_checkable
class Folder(Protocol):
    """A folder as a sink. A job writes a sub-folder of files into it for each batch.

    Attributes:
        path: The folder.
        format: The format of the files.
        types: The type of the values of a column, by the column's name, as the engine names types. None: columns hold
            whole terms.
        written: How many outputs have been written.
    """

    path: Path
    format: str
    types: Mapping[str, str] | None
    written: int


@runtime_checkable
class SupportsFilterPushDown(Protocol):
    """Batches whose sources can leave out triples that a job does not use."""

    def push_down(self, predicates: Collection[Term]) -> None:
        """Declares that only triples with one of these predicates are used. Others may still come.

        It is called before reading begins, and only if neither each triple counts (as in count windows) nor each event
        is an instant of its own.
        """
        ...


@runtime_checkable
class AcceptsDeadLetters(Protocol):
    """Batches whose sources may have dead letters, and record them in a ledger."""

    def set_ledger(self, ledger: DeadLetterLedger | None) -> None:
        """Sets the ledger of the run, for sources that have none of their own.

        With None there is no ledger, and a dead letter is an error. It is called before reading begins.
        """
        ...


class PlanChange(NamedTuple):
    """A change of the plan of a run.

    Attributes:
        watermark: The time (integer ms) up to which the run had processed its input.
        gain: How many times as expensive the plan before was, as estimated. None: the run has resumed, and the plan
            before was that of its checkpoint.
    """

    watermark: int
    gain: float | None


@runtime_checkable
class ReplacesPlans(Protocol):
    """A job that replaces its plan while it runs (`Options.replan`)."""

    @property
    def plan_changes(self) -> Sequence[PlanChange]:
        """The changes of the plan so far."""
        ...

    @property
    def refused_plan(self) -> str:
        """Why the last better plan could not replace the present one, or ``""``."""
        ...


@runtime_checkable
class CountsDroppedFacts(Protocol):
    """A job that counts what windows drop which are bounded by time and number
    (`squall.model.windows.BoundedCountWindow`)."""

    @property
    def dropped_facts(self) -> int:
        """How many facts have left a window because of its number before their time had passed, since the job began.

        It may be called from another thread while the job runs.
        """
        ...


@runtime_checkable
class MeasuresNodes(Protocol):
    """A job that measures the nodes of its plan."""

    def node_metrics(self) -> Mapping[str, NodeMetric]:
        """Returns the metrics of each node so far, by the node's id.

        It may be called from another thread while the job runs. It may raise RuntimeError if a collection changes
        meanwhile: then it is called again.
        """
        ...


@runtime_checkable
class Job(Protocol):
    """A plan that one builder has prepared to run.

    A job may have more: ``describe() -> str`` (for ``squall explain --stage job``), ``as_data()`` (the same as JSON
    data, for ``--format json``), the method of `MeasuresNodes`, and an attribute `watermark`, the time (integer ms) up
    to which it has processed its input.
    """

    def run(self, batches: Iterable[Sequence[Event]], static: Iterable[Event] = ()) -> Iterator[Output[Any]]:
        """Yields the outputs for a stream of events, in the order of time, as soon as they are certain.

        How a stream is cut into batches never changes the outputs (semantics.md, law 2). An event with an earlier time
        than one before it is *late*, and goes to the ledger. A job runs once (a job of Spark as often as it is called,
        each time anew or from its checkpoint).

        Args:
            batches: The events in non-decreasing time, each batch what is available at once. It may be a
                `squall.streams.Sources`, whose splits a distributed builder reads on its workers.
            static: Events whose facts always hold. They are read first.
        """
        ...


@runtime_checkable
class Builder(Protocol):
    """A builder prepares a Planned Production System to run on an engine.

    It declares its `BuilderCapabilities` as an attribute `capabilities` (`declare_capabilities`).
    """

    def __call__(self, plan: Plan, options: Options, /) -> Job:
        """Makes a plan a job.

        Raises:
            BuilderError: The builder cannot run the plan, or the options ask for something that it does not support.
        """
        ...
