"""The syntax tree of an OWL 2 ontology: its axioms, which print as functional syntax.

Object and data forms are one class (`Some` is both ObjectSomeValuesFrom and DataSomeValuesFrom); they print by what is
in them. Annotations have no meaning, and are left out. IRIs are complete. `origin` does not take part in equality.

Source: OWL 2 Structural Specification and Functional-Style Syntax (second edition).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from squall.errors import Origin
from squall.rdf import OWL, Term, iri, is_literal

THING, NOTHING = iri(OWL + "Thing"), iri(OWL + "Nothing")


@dataclass(frozen=True)
class Class:
    """A class by its name."""

    name: Term

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Datatype:
    """A datatype by its name."""

    name: Term

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Property:
    """A property by its name, of objects or of data; or the inverse of one of objects."""

    name: Term
    is_data: bool = False
    inverse: bool = False

    def __str__(self) -> str:
        return f"ObjectInverseOf({self.name})" if self.inverse else self.name


@dataclass(frozen=True)
class Intersection:
    """What is in all members."""

    members: tuple[Expression, ...]

    def __str__(self) -> str:
        return _form(self, "IntersectionOf", self.members)


@dataclass(frozen=True)
class Union:
    """What is in one of the members at least."""

    members: tuple[Expression, ...]

    def __str__(self) -> str:
        return _form(self, "UnionOf", self.members)


@dataclass(frozen=True)
class Complement:
    """What is not in the operand."""

    operand: Expression

    def __str__(self) -> str:
        return _form(self, "ComplementOf", (self.operand,))


@dataclass(frozen=True)
class OneOf:
    """Individuals, or literals, by enumeration."""

    members: tuple[Term, ...]

    def __str__(self) -> str:
        return _form(self, "OneOf", self.members)


@dataclass(frozen=True)
class Restricted:
    """The values of a datatype within facets: pairs of an IRI and a literal."""

    datatype: Term
    facets: tuple[tuple[Term, Term], ...]

    def __str__(self) -> str:
        return _call("DatatypeRestriction", (self.datatype, *(part for facet in self.facets for part in facet)))


@dataclass(frozen=True)
class Some:
    """What has a value of the property in the filler."""

    property: Property
    filler: Expression

    def __str__(self) -> str:
        return _form(self, "SomeValuesFrom", (self.property, self.filler))


@dataclass(frozen=True)
class All:
    """What has no value of the property outside of the filler."""

    property: Property
    filler: Expression

    def __str__(self) -> str:
        return _form(self, "AllValuesFrom", (self.property, self.filler))


@dataclass(frozen=True)
class HasValue:
    """What has this value of the property."""

    property: Property
    value: Term

    def __str__(self) -> str:
        return _form(self, "HasValue", (self.property, self.value))


@dataclass(frozen=True)
class HasSelf:
    """What is a value of the property for itself."""

    property: Property

    def __str__(self) -> str:
        return _form(self, "HasSelf", (self.property,))


@dataclass(frozen=True)
class Cardinality:
    """What has so many values of the property in the filler. `bound` is ``Min``, ``Max`` or ``Exact``."""

    bound: str
    count: int
    property: Property
    filler: Expression | None = None

    def __str__(self) -> str:
        filler = () if self.filler is None else (self.filler,)
        return _form(self, f"{self.bound}Cardinality", (self.count, self.property, *filler))


Expression = (
    Class | Datatype | Intersection | Union | Complement | OneOf | Restricted | Some | All | HasValue | HasSelf
    | Cardinality
)  # fmt: skip
"""A class expression or a data range."""


def is_data_range(expression: Expression) -> bool:
    """Returns whether an expression is a data range, and no class expression."""
    match expression:
        case Intersection(members=members) | Union(members=members):
            return any(map(is_data_range, members))
        case Complement(operand=operand):
            return is_data_range(operand)
        case OneOf(members=values):
            return any(map(is_literal, values))
        case _:
            return isinstance(expression, Datatype | Restricted)


def _form(part: Expression, name: str, arguments: Iterable[object]) -> str:
    uses_data = part.property.is_data if isinstance(part, _RESTRICTIONS) else is_data_range(part)
    return _call(f"{'Data' if uses_data else 'Object'}{name}", arguments)


_RESTRICTIONS = (Some, All, HasValue, HasSelf, Cardinality)


def _call(name: str, arguments: Iterable[object]) -> str:
    return f"{name}({' '.join(map(str, arguments))})"


@dataclass(frozen=True)
class _Axiom:
    origin: Origin | None = field(default=None, compare=False, repr=False, kw_only=True)


@dataclass(frozen=True)
class Declaration(_Axiom):
    """Says of what kind a name is: ``Class``, ``Datatype``, ``ObjectProperty``, ``DataProperty``,
    ``AnnotationProperty`` or ``NamedIndividual``."""

    kind: str
    name: Term

    def __str__(self) -> str:
        return f"Declaration({self.kind}({self.name}))"


@dataclass(frozen=True)
class SubClassOf(_Axiom):
    """What is in one class is in the other."""

    sub: Expression
    sup: Expression

    def __str__(self) -> str:
        return _call("SubClassOf", (self.sub, self.sup))


@dataclass(frozen=True)
class EquivalentClasses(_Axiom):
    """The classes have the same members."""

    members: tuple[Expression, ...]

    def __str__(self) -> str:
        return _call("EquivalentClasses", self.members)


@dataclass(frozen=True)
class DisjointClasses(_Axiom):
    """No two of the classes have a common member."""

    members: tuple[Expression, ...]

    def __str__(self) -> str:
        return _call("DisjointClasses", self.members)


@dataclass(frozen=True)
class DisjointUnion(_Axiom):
    """The class is the union of the members, of which no two have a common member."""

    name: Term
    members: tuple[Expression, ...]

    def __str__(self) -> str:
        return _call("DisjointUnion", (self.name, *self.members))


@dataclass(frozen=True)
class DatatypeDefinition(_Axiom):
    """The datatype has the values of a data range."""

    name: Term
    range: Expression

    def __str__(self) -> str:
        return _call("DatatypeDefinition", (self.name, self.range))


@dataclass(frozen=True)
class SubPropertyOf(_Axiom):
    """What a chain of properties relates (often of one) is related by the property."""

    chain: tuple[Property, ...]
    sup: Property

    def __str__(self) -> str:
        sub = self.chain[0] if len(self.chain) == 1 else _call("ObjectPropertyChain", self.chain)
        return _of_properties("Sub", self.sup, "PropertyOf", (sub, self.sup))


@dataclass(frozen=True)
class EquivalentProperties(_Axiom):
    """The properties relate the same things."""

    members: tuple[Property, ...]

    def __str__(self) -> str:
        return _of_properties("Equivalent", self.members[0], "Properties", self.members)


@dataclass(frozen=True)
class DisjointProperties(_Axiom):
    """No two of the properties relate the same two things."""

    members: tuple[Property, ...]

    def __str__(self) -> str:
        return _of_properties("Disjoint", self.members[0], "Properties", self.members)


@dataclass(frozen=True)
class InverseProperties(_Axiom):
    """Each property is the inverse of the other."""

    first: Property
    second: Property

    def __str__(self) -> str:
        return _call("InverseObjectProperties", (self.first, self.second))


@dataclass(frozen=True)
class Domain(_Axiom):
    """What has a value of the property is in the class."""

    property: Property
    domain: Expression

    def __str__(self) -> str:
        return _of_properties("", self.property, "PropertyDomain", (self.property, self.domain))


@dataclass(frozen=True)
class Range(_Axiom):
    """What is a value of the property is in the class or data range."""

    property: Property
    range: Expression

    def __str__(self) -> str:
        return _of_properties("", self.property, "PropertyRange", (self.property, self.range))


CHARACTERISTICS = (
    "Functional", "InverseFunctional", "Reflexive", "Irreflexive", "Symmetric", "Asymmetric", "Transitive",
)  # fmt: skip


@dataclass(frozen=True)
class Characteristic(_Axiom):
    """The property is, say, ``Transitive``: `kind` is one of `CHARACTERISTICS`."""

    kind: str
    property: Property

    def __str__(self) -> str:
        return _of_properties(self.kind, self.property, "Property", (self.property,))


@dataclass(frozen=True)
class HasKey(_Axiom):
    """Members of the class that have a common value of each property are the same."""

    expression: Expression
    properties: tuple[Property, ...]

    def __str__(self) -> str:
        objects, data = ([item for item in self.properties if item.is_data == is_data] for is_data in (False, True))
        return _call("HasKey", (self.expression, _call("", objects), _call("", data)))


@dataclass(frozen=True)
class SameIndividual(_Axiom):
    """The names are of one individual."""

    members: tuple[Term, ...]

    def __str__(self) -> str:
        return _call("SameIndividual", self.members)


@dataclass(frozen=True)
class DifferentIndividuals(_Axiom):
    """No two of the names are of one individual."""

    members: tuple[Term, ...]

    def __str__(self) -> str:
        return _call("DifferentIndividuals", self.members)


@dataclass(frozen=True)
class ClassAssertion(_Axiom):
    """The individual is in the class."""

    expression: Expression
    individual: Term

    def __str__(self) -> str:
        return _call("ClassAssertion", (self.expression, self.individual))


@dataclass(frozen=True)
class PropertyAssertion(_Axiom):
    """The individual has the value of the property; or does not have it, if `negative`."""

    property: Property
    individual: Term
    value: Term
    negative: bool = False

    def __str__(self) -> str:
        arguments = (self.property, self.individual, self.value)
        return _of_properties("Negative" if self.negative else "", self.property, "PropertyAssertion", arguments)


def _of_properties(before: str, property: Property, after: str, arguments: Iterable[object]) -> str:
    return _call(f"{before}{'Data' if property.is_data else 'Object'}{after}", arguments)


Axiom = (
    Declaration | SubClassOf | EquivalentClasses | DisjointClasses | DisjointUnion | DatatypeDefinition | SubPropertyOf
    | EquivalentProperties | DisjointProperties | InverseProperties | Domain | Range | Characteristic | HasKey
    | SameIndividual | DifferentIndividuals | ClassAssertion | PropertyAssertion
)  # fmt: skip


@dataclass(frozen=True)
class Import:
    """The IRI of an ontology that an ontology imports."""

    location: str
    origin: Origin | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True)
class Ontology:
    """An ontology.

    Attributes:
        name: The name of its text.
        iri: Its IRI, or ``""``.
        imports: What it imports.
        axioms: Its axioms.
        is_declared: Whether the text says that it is an ontology.
    """

    name: str = field(compare=False)
    iri: str = ""
    imports: tuple[Import, ...] = ()
    axioms: tuple[Axiom, ...] = ()
    is_declared: bool = field(default=True, compare=False)

    def __str__(self) -> str:
        header = f" <{self.iri}>" if self.iri else ""
        lines = [*(f"Import(<{item.location}>)" for item in self.imports), *map(str, self.axioms)]
        return "\n".join((f"Ontology({header.strip()}", *(f"  {line}" for line in lines), ")"))
