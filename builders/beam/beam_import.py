"""Apache Beam without what it does to the logging of the whole process; the others import it from here."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from squall.builders.distributed.io.records import Failed


@contextmanager
def logging_kept() -> Iterator[None]:
    """Lets the root logger keep its handlers: Beam gives it one wherever it finds none, and more in its services."""
    root = logging.getLogger()
    before = root.handlers[:]
    if not before and logging.lastResort is not None:
        root.addHandler(logging.lastResort)  # through which goes what nobody handles: so there is one
    guarded = root.handlers[:]
    for handler in guarded:
        handler.addFilter(_is_news)
    try:
        yield
    finally:
        for handler in guarded:
            handler.removeFilter(_is_news)
        for handler in root.handlers[:]:
            if handler not in before and (handler in guarded or type(handler).__module__.startswith("apache_beam")):
                root.removeHandler(handler)


def _is_news(record: logging.LogRecord) -> bool:
    """Whether a record says anything but what an error will say in better words."""
    return Failed.MARK not in record.getMessage()


def _is_said(record: logging.LogRecord) -> bool:
    return False


def _imported() -> None:
    """Imports it once, without its complaints about clients of clouds that nobody asked for."""
    root = logging.getLogger()
    root.addFilter(_is_said)
    try:
        with logging_kept():
            import apache_beam.io.watermark_estimators  # noqa: F401  # which the package leaves out
    finally:
        root.removeFilter(_is_said)


_imported()

import apache_beam as beam  # noqa: E402

__all__ = ["beam", "logging_kept"]
