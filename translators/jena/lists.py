"""RDF lists in Jena rules: rules that derive the members of each list, and the built-ins of heads over lists.

``MEMBERS(node, members)``: the RDF list that begins at the node has these members, as one term
(`squall.rdf.compounds`). A list that does not end in ``rdf:nil``, or that contains itself, has no members. A node with
several ``rdf:first`` or ``rdf:rest`` begins several lists.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import blake2b

from squall.functions.jena_lists import HAS_NOT, MEMBERS_OF, PAIRS_OF
from squall.model import AtomPattern, Bind, Call, Construct, Filter, Pattern, Slot, System, TableFunction, Variable
from squall.rdf import OWL, RDF, Term, iri
from squall.rdf.compounds import JOIN, LIST, compound

MEMBERS = "urn:x-squall:jena:members"
"""The IRI (without brackets) of the relation of a node, the members of its list, and the nodes of the list."""

PLACES = {
    "listContains": (0,),
    "listNotContains": (0,),
    "listEntry": (0,),
    "listLength": (0,),
    "listEqual": (0, 1),
    "listNotEqual": (0, 1),
}
"""The positions of the list arguments of built-ins."""


@dataclass(frozen=True)
class ListBuiltin:
    """A built-in of a head that states something of each member of a list.

    Attributes:
        place: The position of the list among the arguments.
        function: The table function that gives rows of members.
        width: The number of members in a row.
        fact: Returns the fact for a row.
    """

    place: int
    function: str
    width: int
    fact: Callable[[Sequence[Slot], Sequence[Variable]], Pattern]

    def of(
        self, slots: Sequence[Slot], members: Variable, fresh: Callable[[], Variable]
    ) -> tuple[TableFunction, Pattern]:
        """Returns the table function that gives the rows, and the template of their facts."""
        row = tuple(fresh() for _ in range(self.width))
        return TableFunction(row, self.function, (members,)), self.fact(slots, row)


HEADS = {
    "listMapAsObject": ListBuiltin(2, MEMBERS_OF, 1, lambda slots, row: Pattern(slots[0], slots[1], row[0])),
    "listMapAsSubject": ListBuiltin(0, MEMBERS_OF, 1, lambda slots, row: Pattern(row[0], slots[1], slots[2])),
    "assertDisjointPairs": ListBuiltin(
        0, PAIRS_OF, 2, lambda _, row: Pattern(row[0], iri(OWL + "differentFrom"), row[1])
    ),
}
"""The built-ins of heads that state something of each member of a list, or of each pair of members."""


def relation(sources: str) -> Term:
    """Returns the relation of the lists in some sources, given as text; ``""`` for all streams."""
    return iri(f"{MEMBERS}:{blake2b(sources.encode(), digest_size=8).hexdigest()}" if sources else MEMBERS)


def pattern(node: Slot, members: Variable, relation: Term) -> AtomPattern:
    """Returns the pattern for the members of the list that begins at a node."""
    return AtomPattern(relation, (node, members, Variable(f"{members.name} nodes")))


_NODE, _FIRST, _REST, _AFTER, _ALL, _NODES, _ALL_NODES = (
    Variable(name) for name in ("node", "first", "rest", "after", "all", "nodes", "all nodes")
)
_NIL = iri(RDF + "nil")


def rules(relation: Term) -> tuple[System, ...]:
    """Returns the rules that derive the members of lists, from ``rdf:nil`` on, as facts of a relation."""

    def head(*slots: Slot) -> tuple[Construct]:
        return (Construct((AtomPattern(relation, slots),), internal=True),)

    cells = (
        Pattern(_NODE, iri(RDF + "first"), _FIRST),
        Pattern(_NODE, iri(RDF + "rest"), _REST),
        AtomPattern(relation, (_REST, _AFTER, _NODES)),
    )
    predicates = (
        Filter(Call(HAS_NOT, (_NODES, _NODE))),
        Bind(_ALL, Call(JOIN, (_AFTER, _FIRST))),
        Bind(_ALL_NODES, Call(JOIN, (_NODES, _NODE))),
    )
    return (
        System("lists", consequences=head(_NIL, compound(LIST, ()), compound(LIST, (_NIL,)))),
        System("lists", joinables=cells, predicates=predicates, consequences=head(_NODE, _ALL, _ALL_NODES)),
    )
