"""The rules of axioms: those of OWL 2 RL/RDF (OWL 2 Profiles, section 4.3), each for the names of one axiom."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import pairwise

from squall import rulesets
from squall.errors import Origin
from squall.functions.datatypes import KNOWN, OWN
from squall.functions.jena import function_iri
from squall.lexers.owl import tree
from squall.model import Bind, Call, Construct, FactPattern, Filter, Joinable, Pattern, System, Variable
from squall.rdf import OWL, Term, iri, iri_text, is_literal, literal
from squall.rdf.vocabulary import TYPE
from squall.translators.owl.expressions import (
    SAME,
    Body,
    Expressions,
    Head,
    Issue,
    differ_in_name,
    shortened,
    system,
    violation,
)

DIFFERENT = iri(OWL + "differentFrom")
_X, _Y, _Z = (Variable(name) for name in "xyz")


def _helper(name: str) -> Term:
    """Returns a predicate of facts that rules derive only for each other (`squall.rulesets.prepared`)."""
    return Term(f"{rulesets.HELPER}{name}>")


_DATATYPE = _helper("datatype")
"""The predicate of datatypes, each with itself."""


def _compared(property: Term) -> Term:
    """Returns the predicate of the values of a property of data as terms that are equal if the values are."""
    return _helper(f"compared:{iri_text(property)}")


@dataclass(frozen=True)
class AxiomIssue:
    """What is not in OWL 2 RL of an axiom."""

    axiom: tree.Axiom
    issue: Issue

    @property
    def origin(self) -> Origin | None:
        return self.axiom.origin

    def __str__(self) -> str:
        return f"`{shortened(str(self.axiom))}` is not in OWL 2 RL: {self.issue.text}"


@dataclass
class Axioms:
    """The rules of the axioms of one ontology.

    Attributes:
        ontology: The axioms.
        has_cases: Whether a superclass may be a union (`Expressions`).
        keeps_apart: Whether what is both an individual and a data value is a violation, as in the direct semantics.
        issues: What is left out, since it is not in OWL 2 RL.
    """

    ontology: Sequence[tree.Axiom]
    has_cases: bool = False
    keeps_apart: bool = False
    issues: list[AxiomIssue] = field(default_factory=list)
    _facts: list[FactPattern] = field(default_factory=list)
    _compared: dict[Term, None] = field(default_factory=dict)
    _groups: int = 0

    def systems(self) -> list[System]:
        """Returns the rules, with those of equality if individuals can be the same."""
        systems = self.rules()
        return [*systems, *(equality() if any(map(_mentions_equality, systems)) else ())]

    def rules(self) -> list[System]:
        """Returns the rules of the axioms. What these state of individuals is one rule without a body."""
        definitions = {axiom.name: axiom.range for axiom in self.ontology if isinstance(axiom, tree.DatatypeDefinition)}
        self._refuse_circular(definitions)
        rules: dict[System, None] = {}
        for axiom in self.ontology:
            self.expressions = Expressions(definitions, self.has_cases, self.keeps_apart)
            is_stated = isinstance(axiom, tree.ClassAssertion) and isinstance(axiom.expression, tree.Class)
            axiom_rules = [self._normal(rule, is_stated) for rule in self._of(axiom)]
            self.issues += (AxiomIssue(axiom, issue) for issue in self.expressions.issues)
            for rule in axiom_rules:
                if rule is not None:
                    rules.setdefault(replace(rule, origin=axiom.origin))
        systems = [*rules, *map(self._comparison, self._compared), *self._wrong_types()]
        if self._facts:
            facts = tuple(dict.fromkeys(self._facts))
            systems.append(System("assertions", consequences=(Construct(facts, internal=True),)))
        return systems

    def _refuse_circular(self, definitions: dict[Term, tree.Expression]) -> None:
        """Removes definitions of datatypes by themselves, and records them."""
        for axiom in self.ontology:
            if isinstance(axiom, tree.DatatypeDefinition) and axiom.name in _names(axiom.range, definitions):
                del definitions[axiom.name]
                self.issues.append(AxiomIssue(axiom, Issue("it is defined by itself", "define it by other datatypes")))

    def _normal(self, rule: System, is_stated: bool) -> System | None:
        """Returns a rule, or None if it derives nothing new, or a fact that the ontology states, which is recorded."""
        (template,) = rule.consequences[0].template  # type: ignore[union-attr]
        if template in rule.joinables:
            return None
        if not is_stated or rule.joinables or rule.predicates or template.slots[1:2] == (rulesets.VIOLATED_BY,):
            return rule
        self._facts.append(template)
        return None

    # In one piece: what each axiom means.
    def _of(self, axiom: tree.Axiom) -> Iterator[System]:
        match axiom:
            case tree.SubClassOf(sub=sub, sup=sup):
                yield from self._subclass("cax-sco", sub, sup)
            case tree.EquivalentClasses(members=members):
                for sub, sup in pairwise((*members, members[0])):
                    yield from self._subclass("cax-eqc", sub, sup)
            case tree.DisjointClasses(members=members):
                yield from self._disjoint_classes(members)
            case tree.ClassAssertion(expression=expression, individual=individual):
                yield from self._rules("cax-sco", Body(), self.expressions.heads(expression, individual))
            case tree.HasKey():
                yield from self._key(axiom)
            case tree.SameIndividual(members=members):
                self._facts += (Pattern(first, SAME, second) for first, second in pairwise(members))
            case tree.DifferentIndividuals(members=members):
                yield from self._different(members)
            case tree.Declaration():
                yield from self._declared(axiom)
            case tree.DatatypeDefinition():
                return
            case tree.DisjointUnion():
                self._refuse("`DisjointUnion` is no rule", "state that the classes are disjoint and are subclasses")
            case _:
                yield from self._of_properties(axiom)

    def _of_properties(self, axiom: tree.Axiom) -> Iterator[System]:
        pattern = self.expressions.pattern
        match axiom:
            case tree.SubPropertyOf(chain=chain, sup=sup):
                slots = [_X, *(Variable(f"z{number}") for number in range(1, len(chain))), _Y]
                body = Body(tuple(pattern(item, *ends) for item, ends in zip(chain, pairwise(slots), strict=True)))
                yield system("prp-spo1" if len(chain) == 1 else "prp-spo2", body, Head(pattern(sup, _X, _Y)))
            case tree.EquivalentProperties(members=members):
                for sub, sup in pairwise((*members, members[0])):
                    yield system("prp-eqp", Body((pattern(sub, _X, _Y),)), Head(pattern(sup, _X, _Y)))
            case tree.DisjointProperties(members=members):
                yield from self._disjoint_properties(members)
            case tree.InverseProperties(first=first, second=second):
                for rule, (one, other) in (("prp-inv1", (first, second)), ("prp-inv2", (second, first))):
                    yield system(rule, Body((pattern(one, _X, _Y),)), Head(pattern(other, _Y, _X)))
            case tree.Domain(property=property, domain=domain):
                heads = self.expressions.heads(domain, _X)
                yield from self._rules("prp-dom", Body((pattern(property, _X, _Y),)), heads)
            case tree.Range(property=property, range=range_):
                heads = self.expressions.heads(range_, _Y)
                yield from self._rules("prp-rng", Body((pattern(property, _X, _Y),)), heads)
            case tree.Characteristic(kind=kind, property=property):
                yield from self._characteristic(kind, property)
            case tree.PropertyAssertion():
                yield from self._assertion(axiom)

    def _refuse(self, text: str, remedy: str) -> None:
        self.expressions.issues.append(Issue(text, remedy))

    # Classes

    def _subclass(self, rule: str, sub: tree.Expression, sup: tree.Expression) -> Iterator[System]:
        heads = self.expressions.heads(sup, _X)
        for body in self.expressions.bodies(sub, _X):
            yield from self._rules(rule, body, heads)

    def _rules(self, rule: str, body: Body, heads: Iterable[Head]) -> Iterator[System]:
        return (system(rule, body, head) for head in heads)

    def _disjoint_classes(self, members: Sequence[tree.Expression]) -> Iterator[System]:
        """Yields one rule for two classes. For more of them, each has a rule that says which of them has a member."""
        bodies = [self.expressions.bodies(member, _X) for member in members]
        if len(members) == 2:
            for first in bodies[0]:
                yield from (system("cax-dw", first, violation("cax-dw", _X, second)) for second in bodies[1])
            return
        disjoint = self._group("disjoint")
        for number, alternatives in enumerate(bodies):
            member = Pattern(_X, disjoint, literal(str(number)))
            yield from (system("cax-adc", body, Head(member)) for body in alternatives)
        pair = tuple(Pattern(_X, disjoint, number) for number in (_Y, _Z))
        yield system("cax-adc", Body(pair, (differ_in_name(_Y, _Z),)), violation("cax-adc", _X))

    def _group(self, name: str) -> Term:
        """Returns the predicate of the members of a group."""
        self._groups += 1
        return _helper(f"{name}:{self._groups}")

    def _key(self, axiom: tree.HasKey) -> Iterator[System]:
        values = [self.expressions.fresh() for _ in axiom.properties]
        shared = Body(
            tuple(
                self._comparable(property, individual, value)
                for individual in (_X, _Y)
                for property, value in zip(axiom.properties, values, strict=True)
            ),
            (differ_in_name(_X, _Y),),
        )
        others = self.expressions.filler_bodies(axiom.expression, _Y)
        for body in self.expressions.filler_bodies(axiom.expression, _X):
            yield from (system("prp-key", body & other & shared, Head(Pattern(_X, SAME, _Y))) for other in others)

    def _comparable(self, property: tree.Property, individual: Variable, value: Variable) -> Joinable:
        """Returns a pattern of a property in which equal values are one term."""
        if not property.is_data:
            return self.expressions.pattern(property, individual, value)
        self._compared[property.name] = None
        return Pattern(individual, _compared(property.name), value)

    def _comparison(self, property: Term) -> System:
        """Returns the rule that derives the values of a property of data as terms that are equal if the values are."""
        value = Bind(_Z, Call(OWN + "comparableOf", (_Y,)))
        compared = Construct((Pattern(_X, _compared(property), _Z),))
        return System("dt-value", joinables=(Pattern(_X, property, _Y),), predicates=(value,), consequences=(compared,))

    # Properties

    def _disjoint_properties(self, members: Sequence[tree.Property]) -> Iterator[System]:
        rule = "prp-pdw" if len(members) == 2 else "prp-adp"
        for place, first in enumerate(members):
            for second in members[place + 1 :]:
                pair = Body((self._comparable(first, _X, _Y), self._comparable(second, _X, _Y)))
                yield system(rule, pair, violation(rule, _X))

    def _characteristic(self, kind: str, property: tree.Property) -> Iterator[System]:
        def related(subject: Variable, object: Variable) -> Body:
            return Body((self.expressions.pattern(property, subject, object),))

        match kind:
            case "Functional":
                pair = related(_X, _Y) & related(_X, _Z)
                yield system("prp-fp", Body(), self.expressions.same(property, _Y, _Z, pair, "prp-fp"))
            case "InverseFunctional":
                pair = related(_X, _Z) & related(_Y, _Z) & Body(predicates=(differ_in_name(_X, _Y),))
                yield system("prp-ifp", pair, Head(Pattern(_X, SAME, _Y)))
            case "Irreflexive":
                yield system("prp-irp", related(_X, _X), violation("prp-irp", _X))
            case "Symmetric":
                yield system("prp-symp", related(_X, _Y), Head(self.expressions.pattern(property, _Y, _X)))
            case "Asymmetric":
                yield system("prp-asyp", related(_X, _Y) & related(_Y, _X), violation("prp-asyp", _X))
            case "Transitive":
                pair = related(_X, _Y) & related(_Y, _Z)
                yield system("prp-trp", pair, Head(self.expressions.pattern(property, _X, _Z)))
            case _:
                self._refuse(
                    "`ReflexiveObjectProperty` relates all things", "say of which class: rules only see what data name"
                )

    def _declared(self, declaration: tree.Declaration) -> Iterator[System]:
        """Yields what keeps individuals and data values apart (OWL 2 Direct Semantics, section 2.2)."""
        rules = {
            "ObjectProperty": ("object-property", "isLiteral"),
            "DataProperty": ("data-property", "notLiteral"),
        }
        if self.keeps_apart and declaration.kind in rules:
            rule, test = rules[declaration.kind]
            wrong = Body((Pattern(_X, declaration.name, _Y),), (Filter(Call(function_iri(test), (_Y,))),))
            yield system(rule, wrong, violation(rule, _X))

    def _wrong_types(self) -> Iterator[System]:
        """Yields the violations by facts that something is of a datatype, of which programs may derive any."""
        if not self.keeps_apart:
            return
        declared = (
            axiom for axiom in self.ontology if isinstance(axiom, tree.Declaration) and axiom.kind == "Datatype"
        )
        names = dict.fromkeys((*map(iri, sorted(KNOWN)), *(axiom.name for axiom in declared)))
        self._facts += (Pattern(name, _DATATYPE, name) for name in names)
        typed = (Pattern(_Y, _DATATYPE, _Y), Pattern(_X, TYPE, _Y))
        no_value = Call(OWN + "isNoValueOf", (_X, _Y))
        tests = {"data-value": Call(function_iri("notLiteral"), (_X,)), "dt-not-type": no_value}
        for rule, test in tests.items():
            yield system(rule, Body(typed, (Filter(test),)), violation(rule, _X))

    # Individuals

    def _assertion(self, axiom: tree.PropertyAssertion) -> Iterator[System]:
        fact = self.expressions.pattern(axiom.property, axiom.individual, axiom.value)
        if axiom.negative:
            rule = "prp-npa2" if is_literal(axiom.value) else "prp-npa1"
            yield system(rule, Body((fact,)), violation(rule, axiom.individual))
        else:
            self._facts.append(fact)

    def _different(self, members: Sequence[Term]) -> Iterator[System]:
        if len(members) == 2:
            self._facts.append(Pattern(members[0], DIFFERENT, members[1]))
            return
        different = self._group("different")
        # Members have numbers, for one may get other names: where rules read a helper as they read any property.
        first, second = (self.expressions.fresh() for _ in range(2))
        self._facts += (Pattern(member, different, literal(str(place))) for place, member in enumerate(members))
        pair = (Pattern(_X, different, first), Pattern(_Y, different, second), Pattern(_X, SAME, _Y))
        yield system("eq-diff2", Body(pair, (differ_in_name(first, second),)), violation("eq-diff2", _X))
        for member, count in Counter(members).items():
            if count > 1:
                yield system("eq-diff2", Body(), violation("eq-diff2", member))


def _mentions_equality(rule: System) -> bool:
    templates = (fact for part in rule.consequences if isinstance(part, Construct) for fact in part.template)
    return any(
        isinstance(part, Pattern) and part.predicate in (SAME, DIFFERENT) for part in (*rule.joinables, *templates)
    )


_EQUALITY = ("eq-sym", "eq-trans", "eq-other", "eq-rep-s", "eq-rep-o", "eq-diff1", "dt-diff")
"""The rules of owl2rl by which individuals can be the same. Properties and classes are no individuals."""


@cache
def equality() -> tuple[System, ...]:
    """Returns the rules of individuals that are the same or different."""
    from squall.lexers.jena import lexer
    from squall.translators.jena import translator

    path = rulesets.path("owl2rl")
    all_rules = rulesets.prepared(translator(lexer(path.read_text(encoding="utf-8"), str(path))), background=False)
    different = System(
        "eq-diff1",
        joinables=(Pattern(_X, DIFFERENT, _X),),
        consequences=(Construct((violation("eq-diff1", _X).template,)),),
    )
    return (*(rule for rule in all_rules.subsystems if rule.name in _EQUALITY), different)


def _names(expression: tree.Expression, definitions: dict[Term, tree.Expression]) -> set[Term]:
    """Returns the names of the datatypes in a data range, and in the definitions of these."""
    names: set[Term] = set()
    waiting = [expression]
    while waiting:
        match waiting.pop():
            case tree.Datatype(name=name) if name not in names:
                names.add(name)
                waiting += [definitions[name]] if name in definitions else []
            case tree.Intersection(members=members) | tree.Union(members=members):
                waiting += members
            case tree.Complement(operand=operand):
                waiting.append(operand)
    return names
