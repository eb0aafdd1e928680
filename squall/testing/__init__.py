"""Tools for tests of programs and of plug-ins: hand-written streams, the oracle, cases, suites, strategies.

The suites and the strategies need pytest and hypothesis (the extra ``dev``), and are loaded when they are used. Nothing
else in squall imports this package.
"""

from __future__ import annotations

from contextlib import suppress
from importlib import import_module
from typing import TYPE_CHECKING, Any

# The suites' bare asserts explain themselves like those of a test module only if pytest hears of them first.
with suppress(ModuleNotFoundError):
    import pytest

    pytest.register_assert_rewrite("squall.testing.check", "squall.testing.suites")

from squall.errors import PluginError, install_hint
from squall.testing import cases, oracle
from squall.testing.check import assert_as_oracle, assert_outputs, run
from squall.testing.compare import difference, isomorphic
from squall.testing.streams import PREFIXES, Timed, static, stream, term, timed

if TYPE_CHECKING:
    from squall.testing import strategies
    from squall.testing.suites import BuilderSuite, LexerSuite, PlannerSuite

__all__ = [
    "PREFIXES", "BuilderSuite", "LexerSuite", "PlannerSuite", "Timed", "assert_as_oracle", "assert_outputs", "cases",
    "difference", "isomorphic", "oracle", "run", "static", "strategies", "stream", "term", "timed",
]  # fmt: skip

_SUITES = ("BuilderSuite", "LexerSuite", "PlannerSuite")


def __getattr__(name: str) -> Any:
    """Loads the suites and the strategies.

    Raises:
        PluginError: pytest or hypothesis is not installed.
    """
    if name not in (*_SUITES, "strategies"):
        raise AttributeError(f"module `{__name__}` has no attribute `{name}`")
    try:
        module = import_module(f"{__name__}.{'suites' if name in _SUITES else name}")
    except ModuleNotFoundError as error:
        if error.name not in ("pytest", "hypothesis"):
            raise
        message = f"`{__name__}.{name}` needs `{error.name}`, which is not installed"
        raise PluginError(message, hint=install_hint("squall[dev]")) from error
    return getattr(module, name) if name in _SUITES else module
