"""The Translated Production System (TPS): what a program means, in names, whatever language it was written in.

The five kinds of component of the four-stage design (SourceProvider, JoinableComponent, Predicate, Consequence,
sub-TPS) as frozen data. Equality is meaning: `origin` does not take part in it.
"""

from __future__ import annotations

from squall.model.consequences import Ask, Consequence, Construct, Delete, Insert, Select
from squall.model.expressions import (
    Aggregate,
    Bind,
    Call,
    Exists,
    Expression,
    Filter,
    Grouping,
    Minus,
    Negation,
    NotExists,
    Optional,
    Order,
    Predicate,
    Slice,
    TableFunction,
    Union,
)
from squall.model.outputs import OutputSpec, derived_streams, has_own_output, output_specs
from squall.model.patterns import UNNAMED, AtomPattern, FactPattern, Pattern, Slot, Variable
from squall.model.reading import documents, is_initial, is_update, rules, streams, variables, visible, warnings
from squall.model.reports import CLOSE, Report
from squall.model.rewriting import map_parts
from squall.model.sequences import Between, Consumption, Iteration, SequenceJoin
from squall.model.sources import ARRIVAL, GRAPH, GRAPH_EXISTS, Arrivals, Graph, Graphs, Occurrences, Source
from squall.model.systems import Document, Joinable, Stream, System
from squall.model.temporal import At, Dilate, Erode, Schedule, Temporal
from squall.model.windowing import with_windows

__all__ = [
    "ARRIVAL",
    "CLOSE",
    "GRAPH",
    "GRAPH_EXISTS",
    "UNNAMED",
    "Aggregate",
    "Arrivals",
    "Ask",
    "At",
    "AtomPattern",
    "Between",
    "Bind",
    "Call",
    "Consequence",
    "Construct",
    "Consumption",
    "Delete",
    "Dilate",
    "Document",
    "Erode",
    "Exists",
    "Expression",
    "FactPattern",
    "Filter",
    "Graph",
    "Graphs",
    "Grouping",
    "Insert",
    "Iteration",
    "Joinable",
    "Minus",
    "Negation",
    "NotExists",
    "Occurrences",
    "Optional",
    "Order",
    "OutputSpec",
    "Pattern",
    "Predicate",
    "Report",
    "Schedule",
    "Select",
    "SequenceJoin",
    "Slice",
    "Slot",
    "Source",
    "Stream",
    "System",
    "TableFunction",
    "Temporal",
    "Union",
    "Variable",
    "derived_streams",
    "documents",
    "has_own_output",
    "is_initial",
    "is_update",
    "map_parts",
    "output_specs",
    "rules",
    "streams",
    "variables",
    "visible",
    "warnings",
    "with_windows",
]  # fmt: skip
