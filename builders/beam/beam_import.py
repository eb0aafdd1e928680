"""Imports Apache Beam without its changes to the logging of the whole process; other modules import Beam from here."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from squall.builders.distributed.io.records import WorkerError


@contextmanager
def preserved_logging() -> Iterator[None]:
    """Restores the handlers of the root logger: Beam adds one wherever it finds none, and more in its services."""
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
    """Returns whether a log record says anything but what an error will report better."""
    return WorkerError.MARK not in record.getMessage()


def _drop_all(record: logging.LogRecord) -> bool:
    return False


def _import_beam() -> None:
    """Imports Beam once, without its warnings about missing cloud clients."""
    root = logging.getLogger()
    root.addFilter(_drop_all)
    try:
        with preserved_logging():
            import apache_beam.io.watermark_estimators  # noqa: F401  # which the package leaves out
    finally:
        root.removeFilter(_drop_all)


_import_beam()

import apache_beam as beam  # noqa: E402

__all__ = ["beam", "preserved_logging"]
