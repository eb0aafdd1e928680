"""The garbage collector, out of the way of what makes many objects and no cycles of them."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count

_asked = count(1)
_SPARED = 16


@contextmanager
def no_collection() -> Iterator[None]:
    """Compiling and planning make many objects and no cycles of them: looking for such takes a third of the time."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def calm_collector() -> None:
    """Statements and rows are many small objects without cycles: the collector looks for these less often, in this
    process. (It made reading take 1.7 times as long, joins a fifth longer.)"""
    gc.set_threshold(100_000, 50, 100)


def spare_collector() -> None:
    """The collector passes over what there is now, in this process, however it is called; each 16th time that this is
    asked for it does not. (PySpark calls it behind each task, when all that a worker holds of the state is there.)"""
    if next(_asked) % _SPARED:
        gc.freeze()
    else:
        gc.unfreeze()
