"""The function library of RIF: all built-ins of RIF Datatypes and Built-Ins (DTB, second edition), section 4.

docs/languages/rif-builtins.md lists them, and what squall decides where the text leaves it open.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from squall.functions.rif.names import Members

    FUNCTIONS: Members


def __getattr__(name: str) -> Members:
    """Loads `FUNCTIONS`, the functions of the entry point `rif` of the group ``squall.functions``.

    All languages compare literals by `squall.functions.rif.spaces`, and few programs call RIF's functions.
    """
    if name != "FUNCTIONS":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from squall.functions.rif import booleans, casts, dates, guards, lists, numeric, plain, strings, xml

    modules = (guards, casts, numeric, booleans, strings, dates, xml, plain, lists)
    return tuple(member for module in modules for member in module.MEMBERS)
