"""The function library of RIF: all built-ins of RIF Datatypes and Built-Ins (DTB, second edition), section 4.

docs/languages/rif-builtins.md lists them, and what squall decides where the text leaves it open.
"""

from __future__ import annotations

from squall.functions.rif import booleans, casts, dates, guards, lists, numeric, plain, strings, xml
from squall.functions.rif.names import Members

FUNCTIONS: Members = (
    *guards.MEMBERS,
    *casts.MEMBERS,
    *numeric.MEMBERS,
    *booleans.MEMBERS,
    *strings.MEMBERS,
    *dates.MEMBERS,
    *xml.MEMBERS,
    *plain.MEMBERS,
    *lists.MEMBERS,
)
"""The functions of the entry point `rif` of the group ``squall.functions``."""
