"""The Translated Production System (TPS): what a program means, in names, whatever language it was written in.

The five kinds of component of the four-stage design (SourceProvider, JoinableComponent, Predicate, Consequence,
sub-TPS) as frozen data. Equality is meaning: `origin` does not take part in it.
"""

from __future__ import annotations

from squall.system.consequences import Ask, Consequence, Construct, Delete, Insert, Select
from squall.system.expressions import (
    Aggregate,
    Bind,
    Call,
    Compute,
    Either,
    Exists,
    Expression,
    Grouping,
    Maybe,
    Order,
    Predicate,
    Slice,
    Test,
    Without,
)
from squall.system.patterns import UNNAMED, AtomPattern, FactPattern, Pattern, Slot, Variable
from squall.system.reading import documents, is_initial, is_update, rules, streams, variables, visible, warnings
from squall.system.rewriting import rebuilt
from squall.system.sources import CAME, GRAPH, Arrivals, Graph, Graphs, Source
from squall.system.systems import CLOSE, Document, Joinable, Report, Stream, System
from squall.system.tellings import Telling, is_told, made_streams, tellings
from squall.system.windowing import over

__all__ = [
    "CAME", "CLOSE", "GRAPH", "UNNAMED", "Aggregate", "Arrivals", "Ask", "AtomPattern", "Bind", "Call", "Compute",
    "Consequence", "Construct", "Delete", "Document", "Either", "Exists", "Expression", "FactPattern", "Graph",
    "Graphs", "Grouping", "Insert", "Joinable", "Maybe", "Order", "Pattern", "Predicate", "Report", "Select",
    "Slice", "Slot", "Source", "Stream", "System", "Telling", "Test", "Variable", "Without", "documents",
    "is_initial", "is_told", "is_update", "made_streams", "over", "rebuilt", "rules", "streams", "tellings",
    "variables", "visible", "warnings",
]  # fmt: skip
