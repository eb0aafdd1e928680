"""Tuning of the garbage collector: it runs less often and still collects cycles."""

from __future__ import annotations

import subprocess
import sys


def test_frozen_objects_are_scanned_every_sixteenth_time() -> None:
    """The test runs in a process of its own, because the setting concerns the whole process."""
    script = """
import gc, weakref
from squall.process.gc_tuning import spare_collector

class Cycle:
    def __init__(self):
        self.itself = self

def task():
    seen.append(weakref.ref(Cycle()))
    spare_collector()
    gc.collect()
    return sum(cycle() is not None for cycle in seen)

gc.disable()
seen = []
print(*(task() for _ in range(33)))
"""
    text = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    assert list(map(int, text.split())) == [*range(1, 16), 0, *range(1, 16), 0, 1]
