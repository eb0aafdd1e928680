"""A physical plan that is pickled once, and unpickled once in each process, however many steps run it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import cast

from squall.builders.beam.beam_import import beam
from squall.builders.distributed.exec.routing import PhysicalPlan


@dataclass(frozen=True)
class SerializedPlan(PhysicalPlan):
    """A physical plan with a cached pickle."""

    @cached_property
    def _packed(self) -> bytes:
        return cast(
            bytes,
            beam.internal.pickler.dumps(PhysicalPlan(self.plan, self.stages, self.user_functions, self.static_time)),
        )

    def __reduce__(self) -> tuple[Callable[[bytes], PhysicalPlan], tuple[bytes]]:
        return _unpacked, (self._packed,)


@lru_cache(maxsize=4)
def _unpacked(packed: bytes) -> PhysicalPlan:
    return cast(PhysicalPlan, beam.internal.pickler.loads(packed))
