"""The entailment regime of a run: what its options, its programs and their queries choose."""

from __future__ import annotations

from collections.abc import Iterator

from squall.errors import UsageError
from squall.model import System

NONE = "none"
"""The name of the regime in which patterns have no more than what they read."""


def regime_of(system: System, default: str) -> str:
    """Returns the entailment regime of the patterns of a system.

    Args:
        system: A program, or a system of programs.
        default: The regime of programs that name none.

    Returns:
        The regime of some programs; ``none`` if none of them has one.

    Raises:
        UsageError: There are two.
    """
    regimes = sorted(set(_regimes(system, default)) - {NONE})
    if len(regimes) > 1:
        message = f"the programs of a run have one entailment regime, not both `{regimes[0]}` and `{regimes[1]}`"
        raise UsageError(message, hint="run them one by one, or give some of them `none`")
    return regimes[0] if regimes else NONE


def names_regime_within(system: System) -> bool:
    """Returns whether a program of a system, or a query of a program, names an entailment regime of its own."""
    return any(part.entailment or names_regime_within(part) for part in system.subsystems)


def _regimes(system: System, default: str) -> Iterator[str]:
    """Yields the regimes of programs and queries: that which is named nearest to their patterns."""
    regime = system.entailment or default
    if not names_regime_within(system):
        yield regime
        return
    for part in system.subsystems:
        yield from _regimes(part, regime)
