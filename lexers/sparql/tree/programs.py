"""Programs: statements, and the registrations of stream queries."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from squall.errors import Origin
from squall.lexers.sparql.tree.datasets import FromStreams, SessionRange, TimeRange
from squall.lexers.sparql.tree.queries import Query
from squall.lexers.sparql.tree.updates import Operation
from squall.model.windows import duration


@dataclass(frozen=True)
class Registration:
    """The registration ``REGISTER kind name [COMPUTED EVERY period] AS``.

    Attributes:
        kind: ``QUERY`` or ``STREAM``; in RSP-QL and SPARQLStream also an R2S operator, ``RSTREAM``, ``ISTREAM``,
            ``DSTREAM`` or ``CHANGES``.
        name: A word, or the term of an IRI; ``""`` for ``SELECT ISTREAM`` without a registration.
        period: The period in integer ms, or None.
    """

    kind: str
    name: str
    period: int | None = None
    origin: Origin | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        period = "" if self.period is None else f" COMPUTED EVERY {duration(self.period)}"
        return f"REGISTER {self.kind} {self.name}{period} AS\n"


@dataclass(frozen=True)
class ReasoningMode:
    """A mode in the clause ``REASONING [mode, ...]``: ``U`` or ``SM``, as it is written."""

    name: str
    origin: Origin | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Statement:
    """A query, or an operation of an update.

    Attributes:
        base: The IRI against which ``IRI()`` resolves, or ``""``.
        reasoning: The modes of its clause ``REASONING``.
        bare_lengths: Its lengths of time without a unit (RSP-QL), in ms, and where they stand.
    """

    body: Query | Operation
    registration: Registration | None = None
    base: str = ""
    reasoning: tuple[ReasoningMode, ...] = ()
    bare_lengths: tuple[tuple[int, Origin], ...] = field(default=(), compare=False, repr=False)

    def __str__(self) -> str:
        base = f"BASE <{self.base}>\n" if self.base else ""
        reasoning = _reasoning(self) and f"{_reasoning(self)}\n"
        if self.registration is not None and not self.registration.name:
            form, _, pattern_text = str(self.body).partition(" ")
            return f"{base}{reasoning}{form} {self.registration.kind} {pattern_text}\n"
        return f"{base}{self.registration or ''}{reasoning}{self.body}\n"


@dataclass(frozen=True)
class Streaming:
    """The block ``STREAMING { WINDOW [size] SLIDE [step] BATCH [batch] }`` of Strider, or one with ``SESSION [gap]``.

    Attributes:
        window: The window of all streams.
        batch: How long events are gathered for a micro-batch, in integer ms, or None.
    """

    window: FromStreams
    batch: int | None = None

    def __str__(self) -> str:
        batch = "" if self.batch is None else f" BATCH [{_length(self.batch)}]"
        return f"STREAMING {{ {self._window()}{batch} }}\n"

    def _window(self) -> str:
        match self.window.range:
            case TimeRange(size=size, step=step):
                return f"WINDOW [{_length(size)}] SLIDE [{_length(step or size)}]"
            case SessionRange() as sessions:
                return f"SESSION [{sessions.clauses(_length)}]"


def _length(milliseconds: int) -> str:
    return f"{milliseconds} Milliseconds"


@dataclass(frozen=True)
class Program:
    """The statements of a text: one query, several of Strider, or the operations of an update.

    Attributes:
        streaming: What a program of Strider says of all streams. Its statements are queries that are registered.
    """

    statements: tuple[Statement, ...]
    name: str = field(default="", compare=False)
    streaming: Streaming | None = None

    def __str__(self) -> str:
        if self.streaming is None:
            return ";\n".join(map(str, self.statements))
        return "".join(map(str, (self.streaming, *map(_strider_block, self.statements))))


def _strider_block(statement: Statement) -> str:
    """Returns a query as Strider registers it."""
    name = "" if statement.registration is None else statement.registration.name
    query = replace(statement, registration=None, reasoning=())
    reasoning = _reasoning(statement) and f" {_reasoning(statement)}"
    return f"REGISTER {{ QUERYID [{name}]{reasoning} SPARQL [\n{query}] }}\n"


def _reasoning(statement: Statement) -> str:
    """Returns the clause ``REASONING`` of a query, or nothing if it has none."""
    return f"REASONING [{', '.join(map(str, statement.reasoning))}]" if statement.reasoning else ""
