"""From axioms to triples: OWL 2 Mapping to RDF Graphs (second edition), section 2, of what is in OWL 2 RL."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import count, pairwise

from squall.lexers.owl import tree
from squall.rdf import OWL, RDF, RDFS, XSD, Term, Triple, blank, iri, is_literal, literal
from squall.rdf.vocabulary import TYPE

FIRST, REST, NIL = (iri(RDF + name) for name in ("first", "rest", "nil"))


def _owl(name: str) -> Term:
    return iri(OWL + name)


def triples_of(axioms: Iterable[tree.Axiom]) -> list[Triple]:
    """Returns the triples of axioms, with a header."""
    writer = _Writer()
    writer.add(iri("http://example.org/ontology"), TYPE, _owl("Ontology"))
    for axiom in axioms:
        writer.axiom(axiom)
    return writer.triples


class _Writer:
    def __init__(self) -> None:
        self.triples: list[Triple] = []
        self.numbers = count(1)

    def add(self, subject: Term, predicate: Term, object: Term) -> None:
        self.triples.append(Triple(subject, predicate, object))

    def node(self) -> Term:
        return blank(f"n{next(self.numbers)}")

    def list(self, members: Sequence[Term]) -> Term:
        cells = [*(self.node() for _ in members), NIL]
        for (cell, following), member in zip(pairwise(cells), members, strict=True):
            self.add(cell, FIRST, member)
            self.add(cell, REST, following)
        return cells[0]

    def property(self, property: tree.Property) -> Term:
        if not property.inverse:
            return property.name
        node = self.node()
        self.add(node, _owl("inverseOf"), property.name)
        return node

    def expressions(self, members: Iterable[tree.Expression]) -> Term:
        return self.list([self.expression(member) for member in members])

    def expression(self, expression: tree.Expression) -> Term:
        if isinstance(expression, tree.Class | tree.Datatype):
            return expression.name
        node = self.node()
        match expression:
            case tree.Intersection(members=members):
                self.add(node, _owl("intersectionOf"), self.expressions(members))
            case tree.Union(members=members):
                self.add(node, _owl("unionOf"), self.expressions(members))
            case tree.Complement(operand=operand):
                self.add(node, _owl("complementOf"), self.expression(operand))
            case tree.OneOf(members=values):
                self.add(node, _owl("oneOf"), self.list(values))
            case tree.Some(property=property, filler=filler):
                self.add(node, _owl("onProperty"), self.property(property))
                self.add(node, _owl("someValuesFrom"), self.expression(filler))
            case tree.All(property=property, filler=filler):
                self.add(node, _owl("onProperty"), self.property(property))
                self.add(node, _owl("allValuesFrom"), self.expression(filler))
            case tree.HasValue(property=property, value=value):
                self.add(node, _owl("onProperty"), self.property(property))
                self.add(node, _owl("hasValue"), value)
            case tree.Cardinality(bound="Max", count=number, property=property, filler=filler):
                self.add(node, _owl("onProperty"), self.property(property))
                qualified = "maxCardinality" if filler is None else "maxQualifiedCardinality"
                self.add(node, _owl(qualified), literal(str(number), XSD + "nonNegativeInteger"))
                if filler is not None:
                    on = "onDataRange" if tree.is_data_range(filler) else "onClass"
                    self.add(node, _owl(on), self.expression(filler))
            case _:
                raise AssertionError(f"{expression} is not in OWL 2 RL")
        return node

    def axiom(self, axiom: tree.Axiom) -> None:
        match axiom:
            case tree.Declaration(kind=kind, name=name):
                space = RDFS if kind == "Datatype" else OWL
                self.add(name, TYPE, iri(space + ("DatatypeProperty" if kind == "DataProperty" else kind)))
            case tree.SubClassOf(sub=sub, sup=sup):
                self.add(self.expression(sub), iri(RDFS + "subClassOf"), self.expression(sup))
            case tree.EquivalentClasses(members=(first, second)):
                self.add(self.expression(first), _owl("equivalentClass"), self.expression(second))
            case tree.DisjointClasses(members=(first, second)):
                self.add(self.expression(first), _owl("disjointWith"), self.expression(second))
            case tree.DisjointClasses(members=members):
                self.group("AllDisjointClasses", self.expressions(members))
            case tree.HasKey(expression=expression, properties=properties):
                keys = self.list([self.property(item) for item in properties])
                self.add(self.expression(expression), _owl("hasKey"), keys)
            case tree.SameIndividual(members=(one, other)):
                self.add(one, _owl("sameAs"), other)
            case tree.DifferentIndividuals(members=(one, other)):
                self.add(one, _owl("differentFrom"), other)
            case tree.DifferentIndividuals(members=names):
                self.group("AllDifferent", self.list(names))
            case tree.ClassAssertion(expression=expression, individual=individual):
                self.add(individual, TYPE, self.expression(expression))
            case tree.PropertyAssertion(property=property, individual=individual, value=value, negative=True):
                node = self.node()
                self.add(node, TYPE, _owl("NegativePropertyAssertion"))
                self.add(node, _owl("sourceIndividual"), individual)
                self.add(node, _owl("assertionProperty"), property.name)
                self.add(node, _owl("targetValue" if is_literal(value) else "targetIndividual"), value)
            case tree.PropertyAssertion(property=property, individual=individual, value=value):
                self.add(individual, property.name, value)
            case _:
                self.of_properties(axiom)

    def of_properties(self, axiom: tree.Axiom) -> None:
        match axiom:
            case tree.SubPropertyOf(chain=(sub,), sup=sup):
                self.add(self.property(sub), iri(RDFS + "subPropertyOf"), self.property(sup))
            case tree.SubPropertyOf(chain=chain, sup=sup):
                self.add(self.property(sup), _owl("propertyChainAxiom"), self.list([*map(self.property, chain)]))
            case tree.EquivalentProperties(members=(first, second)):
                self.add(self.property(first), _owl("equivalentProperty"), self.property(second))
            case tree.DisjointProperties(members=(first, second)):
                self.add(self.property(first), _owl("propertyDisjointWith"), self.property(second))
            case tree.DisjointProperties(members=members):
                self.group("AllDisjointProperties", self.list([*map(self.property, members)]))
            case tree.InverseProperties(first=first, second=second):
                self.add(first.name, _owl("inverseOf"), second.name)
            case tree.Domain(property=property, domain=domain):
                self.add(self.property(property), iri(RDFS + "domain"), self.expression(domain))
            case tree.Range(property=property, range=range_):
                self.add(self.property(property), iri(RDFS + "range"), self.expression(range_))
            case tree.Characteristic(kind=kind, property=property):
                self.add(self.property(property), TYPE, _owl(f"{kind}Property"))
            case _:
                raise AssertionError(f"{axiom} is not in OWL 2 RL")

    def group(self, kind: str, members: Term) -> None:
        node = self.node()
        self.add(node, TYPE, _owl(kind))
        self.add(node, _owl("members"), members)
