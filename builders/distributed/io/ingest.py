"""Ingestion on the driver: which sources the workers read, which events are late, and which statements are dead
letters."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from squall.builders.distributed.io.parsing import Document, late_dead_letter
from squall.builders.distributed.io.records import DeadLetter
from squall.contracts import DeadLetterLedger
from squall.errors import BuilderError
from squall.rdf import ALWAYS, Event
from squall.streams import FileSource, FolderSource, Source, Sources
from squall.streams.dead_letters import ledger_of
from squall.streams.formats import Format, infer_format, of_path
from squall.streams.formats.text_input import count_lines
from squall.streams.mappings.model import without_places


def is_readable_by_workers(source: Source) -> bool:
    """Returns whether workers can read a source themselves: it consists of files of lines, which can be split."""
    if isinstance(source, FileSource):
        return (
            not source.live
            and of_path(source.path, source.settings.records is not None) is not None
            and _are_lines(source.path, source.format, source.compression)
        )
    if isinstance(source, FolderSource):
        settings = source.settings
        inferred = (
            (path, infer_format(path, settings.format, settings.records is not None)) for path in source.files()
        )
        return all(_are_lines(path, *format) for path, format in inferred)
    return False


def _are_lines(path: str, format: Format, compression: str) -> bool:
    """Returns whether a file is of lines, and plain or of the one compression that workers, and Spark, tell by name."""
    return format.lines and compression == ("gz" if path.endswith(".gz") else "")


def is_live(batches: Iterable[Sequence[Event]]) -> bool:
    """Returns whether more events may come than there are."""
    return batches.live if isinstance(batches, Sources) else not isinstance(batches, list)


def check_bounded(batches: Iterable[Sequence[Event]]) -> None:
    """Raises BuilderError, with the name of the source, if the input is unbounded."""
    if is_live(batches):
        sources = batches.sources if isinstance(batches, Sources) else ()
        name = next((f"`{source.uri}`" for source in sources if source.live), "what events come from")
        raise BuilderError(f"{name} is live: one batch is all that is there", hint="leave `--batch` out")


def check_clock(batches: Iterable[Sequence[Event]], own: Sequence[Source]) -> None:
    """Raises BuilderError if events are to have their arrival times, but workers read some sources themselves."""
    if own and isinstance(batches, Sources) and batches.clock.stamps:
        hint = "use the builder `iterator`, or a clock by which time is what events say"
        raise BuilderError(f"workers read `{own[0].uri}` by themselves: when it arrives is not known", hint=hint)


def document_of(source: Source) -> Document:
    """Returns how workers read a source."""
    assert isinstance(source, FileSource | FolderSource)
    settings = source.settings
    records = None if settings.records is None else without_places(settings.records)
    is_folder = isinstance(source, FolderSource)
    return Document(source.path, settings.stream, settings.format, settings.time, is_folder, records=records)


def drop_late_events(
    batches: Iterable[Sequence[Event]], record: Callable[[DeadLetter], None], latest: int = ALWAYS
) -> Iterator[Sequence[Event]]:
    """Yields the batches without events that are earlier than one before them; these go to the dead letters.

    Args:
        batches: batches of events.
        record: records a dead letter.
        latest: the time of what has come before (integer ms).
    """
    for batch in batches:
        in_order = []
        for event in batch:
            if event.time < latest:
                for fact in (*event.facts, *event.removed):
                    record(late_dead_letter(event.stream, event.time, fact))
            else:
                latest = event.time
                in_order.append(event)
        yield in_order


def record_dead_letter(
    dead_letter: DeadLetter, ledger: DeadLetterLedger | None, sources: Sequence[Source | None] = ()
) -> None:
    """Records a dead letter in the ledger of its source, found by number, or else in that of the run.

    Raises:
        BuilderError: there is no ledger.
    """
    source = sources[dead_letter.number] if 0 <= dead_letter.number < len(sources) else None
    if source is not None and dead_letter.cause == "malformed":
        source.reading.malformed += 1
    ledger = ledger if source is None else ledger_of(source, ledger)
    if ledger is None:
        place = f"{dead_letter.source}:{dead_letter.line}" if dead_letter.line else dead_letter.source
        raise BuilderError(
            f"{dead_letter.cause}: {place}: {dead_letter.reason}", hint="give a `ledger` that keeps dead letters"
        )
    ledger.record(
        dead_letter.cause, dead_letter.source, _line_number(dead_letter), dead_letter.reason, dead_letter.text
    )


def _line_number(dead_letter: DeadLetter) -> int | None:
    """Returns the number, from 1, of a dead letter's line in its file. A later block of a file begins after the line
    that holds its first byte."""
    if not dead_letter.line or not dead_letter.block:
        return dead_letter.line or None
    with open(dead_letter.source, "rb") as file:
        before = count_lines(file.read(dead_letter.block))
    return before + 1 + dead_letter.line
