"""The restrictions on rules with ontologies under OWL's direct semantics: classes and properties are no individuals.

Source: RIF RDF and OWL Compatibility, section 4.1.2 (DL-document formulas).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from squall.errors import TranslatorError
from squall.lexers.rif import tree
from squall.rdf import OWL, RDF, RDFS
from squall.rdf.compounds import VIOLATED
from squall.translators.rif.clauses import Clause
from squall.translators.rif.conditions import Literal
from squall.translators.rif.terms import INCONSISTENT

_TYPE = RDF + "type"
_RESERVED = (RDF, RDFS, OWL)


def check_direct(documents: Sequence[tree.Document]) -> list[TranslatorError]:
    """Returns an error for each frame and each ``#`` that has no meaning under the direct semantics."""
    nodes = (node for document in documents for node in tree.parts(document.group))
    return [error for node in nodes for error in _errors(node)]


def restrict_to_individuals(clause: Clause) -> Clause:
    """Returns the clause, or one that derives an inconsistency where it would hold of data values.

    A clause may state a class or property of anything at all. Then it contradicts OWL as soon as its condition holds:
    no data value is an individual, and there are data values (section 4.2).
    """
    members = [conclusion.instance for conclusion in clause.conclusions if isinstance(conclusion, tree.Member)]
    framed = [
        conclusion.object
        for conclusion in clause.conclusions
        if isinstance(conclusion, tree.Frame) and conclusion.slots
    ]
    variables = {conclusion.name for conclusion in (*members, *framed) if isinstance(conclusion, tree.Var)}
    anything = {clause.names[name] for name in variables if name in clause.names}
    parts = ((conclusion, part) for conclusion in clause.conjunction for part in tree.parts(conclusion.formula))
    if anything <= {conclusion.names.get(part.name) for conclusion, part in parts if isinstance(part, tree.Var)}:
        return clause
    arguments = (tree.Const(_DATA_VALUE, tree.IRI), tree.text_constant("any data value"))
    ends = tree.External(tree.Atom(tree.Const(VIOLATED, tree.IRI), arguments))
    inconsistency = tree.Atom(tree.Const(INCONSISTENT[1:-1], tree.IRI))
    return replace(clause, conclusions=(inconsistency,), conjunction=(*clause.conjunction, Literal(ends, {})))


_DATA_VALUE = "urn:x-squall:data-value"
"""The rule of ontologies (`squall.translators.owl.axioms`) that separates individuals and data values."""


def _errors(node: tree.Node) -> Iterator[TranslatorError]:
    if isinstance(node, tree.Frame):
        for attribute, value in node.slots:
            yield from _attribute(node, attribute, value)
    elif isinstance(node, tree.Member) and not isinstance(node.cls, tree.Const):
        yield _error("this class is no constant", node, "classes are no individuals: name it")
    elif isinstance(node, tree.Subclass) and not all(
        isinstance(class_term, tree.Const) for class_term in (node.sub, node.sup)
    ):
        yield _error("a class of this `##` is no constant", node, "classes are no individuals: name them")


def _attribute(node: tree.Frame, attribute: tree.Term, value: tree.Term) -> Iterator[TranslatorError]:
    if not isinstance(attribute, tree.Const):
        what = "a variable" if isinstance(attribute, tree.Var) else "no constant"
        yield _error(
            f"this frame has an attribute that is {what}", node, "there are no variables for properties: name it"
        )
    elif attribute.lexical == _TYPE:
        if not isinstance(value, tree.Const):
            yield _error("this class is no constant", node, "classes are no individuals: name it")
    elif (
        attribute.space == tree.IRI and attribute.lexical.startswith(_RESERVED) and attribute.lexical != OWL + "sameAs"
    ):
        name = attribute.lexical
        yield _error(
            f"<{name}> is no property of individuals", node, "the ontology is not read by rules: what follows is"
        )


def _error(message: str, node: tree.Node, hint: str) -> TranslatorError:
    source = "(profile OWL-Direct: RIF RDF and OWL Compatibility, section 4.1.2)"
    return TranslatorError(message, node.origin, f"{hint} {source}")
