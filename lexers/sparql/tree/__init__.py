"""The syntax trees of SPARQL and its stream extensions: frozen data that print as text of their language.

The trees are close to the text, but prefixed names and relative IRIs are resolved. Collections and blank nodes in
brackets are triples with blank nodes of their own. A blank node of a pattern is a variable whose name begins with
``_:``. No text can name it, and ``SELECT *`` does not project it (SPARQL 1.1 Query, section 4.1.4). In a template or in
data it is a term.

Sources: SPARQL 1.1 Query, section 19; SPARQL 1.1 Update, section 3; for stream languages see their grammars.
"""

from __future__ import annotations

from squall.lexers.sparql.tree.datasets import (
    CountRange,
    DatasetClause,
    From,
    FromNamed,
    FromStream,
    FromStreams,
    FromWindow,
    PastRange,
    Range,
    TimeRange,
)
from squall.lexers.sparql.tree.expressions import (
    MEMBERSHIP,
    OPERATORS,
    TIMESTAMP,
    Aggregate,
    Call,
    Exists,
    Expression,
    NotExists,
    Timestamp,
)
from squall.lexers.sparql.tree.groups import (
    Bind,
    Element,
    Filter,
    Graph,
    Group,
    Minus,
    Optional,
    QuadPattern,
    Service,
    StreamWindow,
    SubSelect,
    TriplePattern,
    TriplesBlock,
    Union,
    Values,
    Window,
)
from squall.lexers.sparql.tree.paths import Alternative, Inverse, Negated, Path, Repeat, Steps
from squall.lexers.sparql.tree.printing import Slot, expressed, is_unnamed, iso_duration, slot
from squall.lexers.sparql.tree.programs import Program, ReasoningMode, Registration, Statement, Streaming
from squall.lexers.sparql.tree.queries import (
    NO_MODIFIERS,
    Addition,
    AggregateClause,
    AskQuery,
    ConstructQuery,
    DescribeQuery,
    GroupCondition,
    Modifiers,
    OrderCondition,
    Query,
    SelectItem,
    SelectQuery,
)
from squall.lexers.sparql.tree.scope import (
    assigned,
    in_scope,
    mentioned,
    reads_by_name,
    shown,
    stream_windows,
    substituted,
)
from squall.lexers.sparql.tree.updates import DeleteData, InsertData, Load, Manage, Modify, Operation, Transfer

__all__ = [
    "MEMBERSHIP", "NO_MODIFIERS", "OPERATORS", "TIMESTAMP", "Addition", "Aggregate", "AggregateClause",
    "Alternative", "AskQuery", "Bind", "Call", "ConstructQuery", "CountRange", "DatasetClause", "DeleteData",
    "DescribeQuery", "Element", "Exists", "Expression", "Filter", "From", "FromNamed", "FromStream", "FromStreams",
    "FromWindow", "Graph", "Group", "GroupCondition", "InsertData", "Inverse", "Load", "Manage", "Minus",
    "Modifiers", "Modify", "Negated", "NotExists", "Operation", "Optional", "OrderCondition", "PastRange", "Path",
    "Program", "QuadPattern", "Query", "Range", "ReasoningMode", "Registration", "Repeat", "SelectItem",
    "SelectQuery", "Service", "Slot", "Statement", "Steps", "StreamWindow", "Streaming", "SubSelect", "TimeRange",
    "Timestamp", "Transfer", "TriplePattern", "TriplesBlock", "Union", "Values", "Window", "assigned", "expressed",
    "in_scope", "is_unnamed", "iso_duration", "mentioned", "reads_by_name", "shown", "slot", "stream_windows",
    "substituted",
]  # fmt: skip
