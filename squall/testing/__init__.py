"""Tools for tests of programs and of plug-ins: hand-written streams, the oracle, cases, suites, strategies.

The suites and the strategies need pytest and hypothesis (the extra ``test``), and are loaded when they are used.
Nothing else in squall imports this package.
"""

from __future__ import annotations

from contextlib import suppress
from importlib import import_module
from typing import TYPE_CHECKING, Any

# The suites' bare asserts explain themselves like those of a test module only if pytest hears of them first.
with suppress(Exception):  # a pytest that is broken is reported when the suites are used
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
        PluginError: pytest or hypothesis is not installed, or is broken.
    """
    if name not in (*_SUITES, "strategies"):
        raise AttributeError(f"module `{__name__}` has no attribute `{name}`")
    for library, attribute in (*_LIBRARIES, _PYTEST) if name in _SUITES else _LIBRARIES:
        _check_library(name, library, attribute)
    module = import_module(f"{__name__}.{'suites' if name in _SUITES else name}")
    return getattr(module, name) if name in _SUITES else module


_LIBRARIES = (("hypothesis", "given"),)
_PYTEST = ("pytest", "register_assert_rewrite")
"""A library, and what squall uses of it."""


def _check_library(name: str, library: str, attribute: str) -> None:
    """Raises PluginError if a library, which an attribute of this package needs, cannot be imported."""
    try:
        module = import_module(library)
        if not hasattr(module, attribute):
            raise ImportError(f"{getattr(module, '__file__', library)} has no `{attribute}`")
    except Exception as error:
        if isinstance(error, ModuleNotFoundError) and error.name == library:
            message = f"`{__name__}.{name}` needs `{library}`, which is not installed"
            raise PluginError(message, hint=install_hint("squall[test]")) from error
        message = f"`{__name__}.{name}` needs `{library}`, which cannot be imported: {error}"
        raise PluginError(message, hint=f"repair it: pip install --force-reinstall {library}") from error
