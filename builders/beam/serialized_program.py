"""A program that is pickled once, and unpickled once in each process, however many steps run it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import cast

from squall.builders.beam.beam_import import beam
from squall.builders.distributed.exec.program import Program


@dataclass(frozen=True)
class SerializedPlan(Program):
    """A program with a cached pickle."""

    @cached_property
    def _packed(self) -> bytes:
        return cast(
            bytes,
            beam.internal.pickler.dumps(Program(self.physical, self.user_functions, self.static_time)),
        )

    def __reduce__(self) -> tuple[Callable[[bytes], Program], tuple[bytes]]:
        return _unpacked, (self._packed,)


@lru_cache(maxsize=4)
def _unpacked(packed: bytes) -> Program:
    return cast(Program, beam.internal.pickler.loads(packed))
