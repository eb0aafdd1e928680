"""owl:sameAs by representative: programs read the quotient of their data, in which the terms of a clique are one.

The cliques are known before the run. Sources have them, so that scans read representatives (`squall.rdf.cliques`); here
programs get them: in their constants, in what looks into the text of terms, and in patterns of owl:sameAs itself.
docs/semantics.md has the meaning.

Source: B. Motik, Y. Nenov, R. Piro, I. Horrocks: Handling owl:sameAs via Rewriting (AAAI 2015).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from squall import functions
from squall.errors import SourceError, TranslatorError, TranslatorWarning, UsageError, raise_all
from squall.functions import SAME_VALUE
from squall.functions.jena import function_iri
from squall.functions.same_as import (
    OWN_FUNCTIONS,
    PAIRS,
    REPRESENTATIVE,
    REPRESENTATIVES,
    ROWS_OF_MEMBERS,
    SOME_MEMBER,
    VALUES_OF_MEMBERS,
    VALUES_OR_UNBOUND,
    called_functions,
    quoted,
)
from squall.functions.sparql.names import FN, OWN, SPARQL
from squall.functions.sparql.tables import TABLE
from squall.model.consequences import Construct, Delete, Insert, Select
from squall.model.expressions import (
    Bind,
    Call,
    Expression,
    Filter,
    Optional,
    Order,
    Predicate,
    TableFunction,
    Union,
)
from squall.model.fixed_schema import FixedSchema
from squall.model.patterns import AtomPattern, FactPattern, Pattern, Slot, Variable
from squall.model.reading import rules, variables
from squall.model.rewriting import map_parts
from squall.model.sources import ARRIVAL, GRAPH, GRAPH_EXISTS, Source
from squall.model.systems import Joinable, System
from squall.rdf import XSD, Term, Triple, is_literal, literal
from squall.rdf.cliques import SAME_AS, VOCABULARIES, Cliques
from squall.rdf.compounds import parse_compound

_USE_AXIOMS = "treat owl:sameAs by axioms (`--same-as axioms`), which read what streams and rules say"


def read_cliques(triples: Iterable[Triple], system: System) -> Cliques:
    """Returns the cliques that static data and the facts of programs say.

    Args:
        triples: The static data.
        system: The programs. A rule without a body that derives triples of owl:sameAs says what holds.

    Raises:
        SourceError: A literal is the same as something.
        UsageError: A term of RDF, RDFS or OWL is in a clique.
    """
    cliques = _cliques_of((*triples, *_facts(system)))
    for term in (term for clique in cliques.members.values() for term in clique):
        if term.startswith(VOCABULARIES):
            hint = "say it by owl:equivalentProperty or owl:equivalentClass, or treat owl:sameAs by axioms"
            raise UsageError(f"{term} has a meaning of its own, and cannot be the same as other terms", hint=hint)
    return cliques


def _cliques_of(triples: Iterable[Triple]) -> Cliques:
    pairs: list[tuple[Term, Term]] = []
    for triple in triples:
        if triple.predicate != SAME_AS:
            continue
        if is_literal(triple.subject) or is_literal(triple.object):
            hint = "a literal names its value and nothing else: leave the statement out, or name a resource"
            raise SourceError(f"a literal is not the same as anything: {triple}", hint=hint)
        pairs.append((triple.subject, triple.object))
    return Cliques.of(pairs)


def _facts(system: System) -> Iterator[Triple]:
    """Yields the triples of rules that have no body."""
    for rule in rules(system):
        if not (rule.joinables or rule.predicates or rule.grouping or rule.slice):
            for consequence in rule.consequences:
                for template in consequence.template if isinstance(consequence, Construct) else ():
                    if isinstance(template, Pattern) and not any(isinstance(slot, Variable) for slot in template.slots):
                        yield Triple(*(Term(str(slot)) for slot in template.slots))


def with_axioms(system: System, triples: Iterable[Triple]) -> System:
    """Returns the system with the static facts of owl:sameAs beside the rule set of the axioms of equality.

    Each closure of the rule set has these facts, that of a window as well.

    Raises:
        SourceError: A literal is the same as something.
    """
    cliques = _cliques_of(triples)
    if not cliques.members:
        return system
    names = (Variable("representative"), Variable("member"))
    pairs = TableFunction(names, PAIRS, (cliques.term,))
    return _with_axiom(system, pairs, Pattern(names[0], SAME_AS, names[1]))


def _with_axiom(system: System, rows: TableFunction, fact: Pattern) -> System:
    """Returns the system with a rule of the background that derives a fact of each row."""
    consequences = (Construct((fact,), internal=True),)
    axiom = System("sameAs", predicates=(rows,), consequences=consequences, is_background=True)
    return replace(system, subsystems=(axiom, *system.subsystems))


# By representative


def with_representatives(system: System, cliques: Cliques) -> System:
    """Returns the system over the quotient of its data, but for sources and patterns of owl:sameAs.

    Args:
        system: The system, with all windows. Its constants become representatives.
        cliques: The cliques.

    Raises:
        TranslatorError: A program derives owl:sameAs, or deletes; or the text of a term in a clique is seen by a
            function that also depends on the time or creates new terms.
    """
    raise_all(list(refusals(system)))
    rewriting = _Rewriting(cliques)
    rewritten: System = replace(rewriting.part(system), warnings=(*system.warnings, *open_heads(system)))
    raise_all(rewriting.errors)
    return rewritten


def with_cliques(system: System, cliques: Cliques) -> System:
    """Returns the system whose sources have the cliques."""

    def part(component: Any) -> Any:
        if isinstance(component, Source):
            return replace(component, cliques=cliques)
        changed = map_parts(component, part)
        return replace(changed, cliques=cliques) if isinstance(changed, FixedSchema) else changed

    rewritten: System = part(system)
    return replace(rewritten, cliques=cliques)


def with_links(system: System, cliques: Cliques) -> System:
    """Returns the system whose sources have the cliques, and whose streams may change these while it runs.

    The terms that the programs and the schema name represent their cliques throughout, so that patterns stay as they
    are.

    Raises:
        TranslatorError: A function of the programs depends on the cliques.
    """
    raise_all(list(_dependent_functions(system)))
    schema = system.fixed_schema
    of_schema = (term for triple in schema.triples for term in triple) if schema is not None else ()
    named = frozenset(term for term in (*_names(system), *of_schema) if not is_literal(term))
    return with_cliques(system, cliques.changing(named))


def _names(system: System) -> set[Term]:
    """Returns the IRIs, blank nodes and compound terms of a system, with the terms inside of the latter."""
    names: set[Term] = set()

    def add(part: Any) -> Any:
        if isinstance(part, str) and not isinstance(part, Variable):
            names.add(Term(part))
            if (built := parse_compound(Term(part))) is not None:
                add(built.arguments)
        map_parts(part, add)
        return part

    add(system)
    return {name for name in names if name.startswith(("<", "_:"))}


def _depends_on_names(call: Call | TableFunction) -> bool:
    """Returns whether the value of a call may change with the cliques although the representatives do not."""
    if call.function == SOME_MEMBER:
        *_, quotation = (argument for argument in call.arguments[:3] if isinstance(argument, str))
        return not _OF_NAMED.issuperset(called_functions(Term(quotation)))
    return call.function.startswith(OWN_FUNCTIONS)


def _dependent_functions(system: System) -> Iterator[TranslatorError]:
    """Yields an error for each call of a function that takes the cliques."""

    def calls(part: Any) -> Iterator[Call | TableFunction]:
        if isinstance(part, Call | TableFunction) and _depends_on_names(part):
            yield part
        inner: list[Any] = []

        def collect(component: Any) -> Any:
            inner.append(component)
            return component

        map_parts(part, collect)
        for component in inner:
            yield from calls(component)

    for rule in rules(system):
        for call in calls(rule):
            message = f"`{rule.name}` has a function that depends on the names of a term, which streams may change"
            origin = (call.origin if isinstance(call, Call) else None) or rule.origin
            hint = "give what is known before the run (leave `--schema-changes follow` out), or use `--same-as axioms`"
            yield TranslatorError(message, origin, hint)


def _programs(system: System) -> list[System]:
    parts = system.subsystems or (system,)
    return [part for part in parts if not part.is_background]


def _templates(system: System) -> Iterator[tuple[System, FactPattern]]:
    """Yields the templates of facts that rules of programs derive from a body, with their rules."""
    for program in _programs(system):
        for rule in rules(program):
            for consequence in rule.consequences if rule.joinables or rule.predicates else ():
                if isinstance(consequence, Construct | Insert):
                    yield from ((rule, template) for template in consequence.template)


def refusals(system: System) -> Iterator[TranslatorError]:
    """Yields an error for each rule of programs that derives owl:sameAs or deletes facts."""
    for rule, template in _templates(system):
        if isinstance(template, Pattern) and template.predicate == SAME_AS:
            message = f"`{rule.name}` derives owl:sameAs, which has to be known before the run"
            yield TranslatorError(message, template.origin or rule.origin, _USE_AXIOMS)
    for program in _programs(system):
        for rule in rules(program):
            if any(isinstance(consequence, Delete) for consequence in rule.consequences):
                message = f"`{rule.name}` deletes facts: which of the terms that are the same they had is not known"
                yield TranslatorError(message, rule.origin, "treat owl:sameAs by axioms (`--same-as axioms`)")


def open_heads(system: System) -> Iterator[TranslatorWarning]:
    """Yields a warning for each rule that derives triples of any predicate."""
    for rule, template in _templates(system):
        if isinstance(template, Pattern) and isinstance(template.predicate, Variable):
            message = f"nothing follows from what `{rule.name}` derives of owl:sameAs, if it derives any"
            yield TranslatorWarning(message, template.origin or rule.origin, _USE_AXIOMS)


COMPARING = frozenset((
    *(namespace + name for namespace in (SPARQL, OWN) for name in ("equals", "not-equals", "sameTerm", "in", "not-in")),
    *map(function_iri, ("equal", "notEqual", "identical", "notIdentical")), SAME_VALUE,
))  # fmt: skip
"""The functions that compare terms: they compare what the terms name."""
_TEXTUAL = frozenset((
    *(namespace + name for namespace in (SPARQL, OWN) for name in ("str", "iri", "uri", "isIRI", "isURI", "isBlank")),
    XSD + "string",
))  # fmt: skip
"""The functions of SPARQL that see more of a term that is no literal than that it is none."""
_NAMING = frozenset((SPARQL + "iri", SPARQL + "uri", SPARQL + "if", SPARQL + "coalesce", SPARQL + "datatype"))
"""The functions of SPARQL whose values may be IRIs."""
_OF_LITERALS = frozenset(map(function_iri, (
    "lessThan", "greaterThan", "le", "ge", "sum", "difference", "product", "quotient", "min", "max", "addOne",
    "subtractOne", "bound", "unbound", "isLiteral", "notLiteral", "now",
)))  # fmt: skip
"""The functions of Jena's rules that see no more of a term that is no literal than that it is none."""
_OF_NAMED = frozenset((*(SPARQL + name for name in ("isIRI", "isURI")), function_iri("notBNode")))
"""The tests that are true of a representative if they are of some member: an IRI comes before all blank nodes."""
PLAIN_NAMESPACES = (SPARQL, OWN, FN, XSD, "urn:x-squall:compound:", "urn:x-squall:same-as:")


def _sees_text(function: str) -> bool:
    """Returns whether the result of a function may be another for another term of a clique.

    Terms that are built of terms are built of representatives.
    """
    if function in _TEXTUAL:
        return True
    if function in COMPARING or function in _OF_LITERALS or function.startswith(PLAIN_NAMESPACES):
        return False
    return not functions.lookup(function).nests


def may_name(expression: Expression) -> bool:
    """Returns whether the value of an expression may be a term of a clique that is no representative."""
    if not isinstance(expression, Call):
        return False
    is_plain = expression.function.startswith(PLAIN_NAMESPACES) or expression.function in _OF_LITERALS
    return expression.function in _NAMING or not is_plain


def _seen_variables(expression: Expression, inside: bool = False) -> Iterator[Variable]:
    """Yields the variables whose text a function sees."""
    match expression:
        case Variable() if inside:
            yield expression
        case Call(function=function, arguments=arguments):
            is_seen = inside if function not in COMPARING else False
            for argument in arguments:
                yield from _seen_variables(argument, is_seen or _sees_text(function))


def _calls(expression: Expression) -> Iterator[Call]:
    if isinstance(expression, Call):
        yield expression
        for argument in expression.arguments:
            yield from _calls(argument)


class _Rewriting:
    """The rewriting of a system with cliques."""

    def __init__(self, cliques: Cliques) -> None:
        self.cliques = cliques
        self.errors: list[TranslatorError] = []

    def part(self, part: Any) -> Any:
        """Returns a part of a system over representatives."""
        match part:
            case Pattern():
                subject, predicate, object = map(self.slot, part.slots)
                return replace(part, subject=subject, predicate=predicate, object=object)
            case AtomPattern(relation=relation, arguments=slots):
                prefix = len(slots) - 3 if relation in (GRAPH, ARRIVAL) else 0
                return replace(part, arguments=(*slots[:prefix], *map(self.slot, slots[prefix:])))
            case System(name=name) if name == GRAPH_EXISTS:
                return part
            case System():
                rewritten = map_parts(replace(part, predicates=()), self.part)
                return replace(rewritten, predicates=tuple(self._predicates(part.predicates)))
            case Optional(condition=Call() as condition):
                changed = map_parts(replace(part, condition=None), self.part)
                return replace(changed, condition=self._test(condition))
            case Order(expression=expression):
                return replace(part, expression=self.expression(expression))
            case Call():
                return self.expression(part)
            case _:
                return map_parts(part, self.part)

    def slot(self, slot: Slot) -> Slot:
        return slot if isinstance(slot, Variable) else self.cliques.representative(slot)

    # Expressions. What no function sees the text of has the same value for all terms of a clique.

    def expression(self, expression: Expression) -> Expression:
        """Returns an expression over representatives, in which terms are compared by what they name."""
        if not isinstance(expression, Call):
            return expression
        arguments = tuple(map(self.expression, expression.arguments))
        if expression.function in COMPARING:
            arguments = tuple(map(self._named, arguments))
        return replace(expression, arguments=arguments)

    def _named(self, expression: Expression) -> Expression:
        """Returns an expression whose value is a representative."""
        if isinstance(expression, str):
            return self.cliques.representative(Term(expression))
        return Call(REPRESENTATIVE, (self.cliques.term, expression)) if may_name(expression) else expression

    def _predicates(self, predicates: Sequence[Predicate]) -> Iterator[Predicate]:
        """Yields predicates over representatives. Filters that see the text of terms are one, where the last is."""
        seeing = [part for part in predicates if isinstance(part, Filter) and any(_seen_variables(part.expression))]
        for predicate in predicates:
            match predicate:
                case Filter() if predicate in seeing:
                    if predicate is seeing[-1]:
                        tests = tuple(test.expression for test in dict.fromkeys(seeing))
                        call = tests[0] if len(tests) == 1 else Call(OWN + "logical-and", tests, tests[0].origin)
                        yield Filter(self._test(call))
                case Filter(expression=expression):
                    yield Filter(self._test(expression))
                case Bind():
                    yield self._bind(predicate)
                case TableFunction(function=TABLE.iri, arguments=(width, *terms)):
                    yield replace(predicate, arguments=(width, *map(self._named, terms)))
                case TableFunction(function=function, arguments=arguments):
                    yield self._table(predicate, Call(function, arguments))
                case _:
                    yield self.part(predicate)

    def _test(self, test: Call) -> Call:
        """Returns a test that is true if some choice of members makes it so."""
        if not any(_seen_variables(test)):
            rewritten = self.expression(test)
            assert isinstance(rewritten, Call)
            return rewritten
        return Call(SOME_MEMBER, self._over_members(test), test.origin)

    def _bind(self, bind: Bind) -> Predicate:
        """Returns a `Bind`, or what extends a solution by each value that there is for some choice of members."""
        expression = bind.expression
        if not (isinstance(expression, Call) and any(_seen_variables(expression))):
            return replace(bind, expression=self._named(self.expression(expression)))
        function = VALUES_OR_UNBOUND if bind.keep_unbound else VALUES_OF_MEMBERS
        return TableFunction((bind.variable,), function, self._over_members(expression))

    def _table(self, table: TableFunction, call: Call) -> TableFunction:
        if not any(_seen_variables(call)):
            return replace(table, arguments=tuple(map(self.expression, call.arguments)))
        return replace(table, function=ROWS_OF_MEMBERS, arguments=self._over_members(call))

    def _over_members(self, call: Call) -> tuple[Expression, ...]:
        """Returns the arguments of a function that evaluates a call for members of the terms whose text it sees."""
        seen_variables = tuple(dict.fromkeys(_seen_variables(call)))
        names = (*seen_variables, *(name for name in dict.fromkeys(variables(call)) if name not in seen_variables))
        self.errors += self._unsupported(call)
        body = self._compared_by_name(self.expression(call), seen_variables)
        quotation = quoted(body, {name: place for place, name in enumerate(names)})
        return (self.cliques.term, literal(str(len(seen_variables)), XSD + "integer"), quotation, *names)

    def _compared_by_name(self, expression: Expression, seen_variables: tuple[Variable, ...]) -> Expression:
        """Returns an expression over members in which comparisons are of their representatives."""
        if not isinstance(expression, Call):
            return expression
        arguments = tuple(self._compared_by_name(argument, seen_variables) for argument in expression.arguments)
        if expression.function in COMPARING:
            arguments = tuple(
                Call(REPRESENTATIVE, (self.cliques.term, argument)) if argument in seen_variables else argument
                for argument in arguments
            )
        return replace(expression, arguments=arguments)

    def _unsupported(self, call: Call) -> Iterator[TranslatorError]:
        for inner in _calls(call):
            function = functions.lookup(inner.function)
            if function.timed or function.seeded is not None or not function.pure:
                what = "reads the time" if function.timed else "has a new value for each solution"
                message = f"the function <{function.iri}>, which {what}, is in one expression with the text of terms"
                hint = "owl:sameAs gives a term several texts: bind the text first (`BIND(STR(?x) AS ?text)`)"
                yield TranslatorError(message, inner.origin or call.origin, hint)


# Patterns of owl:sameAs


def with_cliques_as_facts(system: System, cliques: Cliques) -> System:
    """Returns the system in which patterns also have the triples of owl:sameAs that hold in the quotient.

    These are ``r owl:sameAs r`` for each representative r. Scans leave them out, so that they come once. Beside rule
    sets they are facts that rules read; otherwise patterns read them in place of what scans leave out.
    """
    if any(part.is_background for part in system.subsystems):
        fact = Pattern(_REPRESENTATIVE, SAME_AS, _REPRESENTATIVE)
        return _with_axiom(system, _representatives(cliques), fact)
    has_rules = any(
        rule.reentrant and isinstance(consequence, Construct | Insert)
        for rule in rules(system)
        for consequence in rule.consequences
    )
    rewritten: System = _SameAsPatterns(cliques, has_rules).part(system, ())
    return rewritten


_REPRESENTATIVE = Variable("representative")


def _representatives(cliques: Cliques, variable: Variable = _REPRESENTATIVE) -> TableFunction:
    return TableFunction((variable,), REPRESENTATIVES, (cliques.term,))


class _SameAsPatterns:
    """The rewriting of the patterns that may match triples of owl:sameAs.

    Args:
        cliques: The cliques.
        has_rules: Whether rules may derive such triples as well, so that solutions may come twice.
    """

    def __init__(self, cliques: Cliques, has_rules: bool) -> None:
        self.cliques = cliques
        self.has_rules = has_rules
        self._variable_count = 0

    def part(self, part: Any, sources: tuple[Source, ...]) -> Any:
        match part:
            case System(name=name) if name == GRAPH_EXISTS:
                return part
            case System():
                inside = partial(self.part, sources=part.sources)
                return replace(
                    part,
                    joinables=tuple(map(inside, part.joinables)),
                    predicates=tuple(map(inside, part.predicates)),
                    subsystems=tuple(map(inside, part.subsystems)),
                )
            case Pattern():
                return self._pattern(part, sources)
            case AtomPattern(relation=relation) if relation == GRAPH:
                return self._pattern(part, sources)
            case AtomPattern():
                return part
            case _:
                return map_parts(part, partial(self.part, sources=sources))

    def _pattern(self, pattern: FactPattern, sources: tuple[Source, ...]) -> Joinable:
        *prefix, subject, predicate, object = pattern.slots
        if not (isinstance(predicate, Variable) or predicate == SAME_AS) or not self.cliques.members:
            return pattern
        names = tuple(dict.fromkeys(variables(pattern)))
        cliques = self._cliques(subject, predicate, object)
        of_cliques = System("", sources, self._in_graph(prefix), tuple(cliques), consequences=(Select(names),))
        facts = System("", sources, (pattern,), consequences=(Select(names),))
        return System(
            f"what is the same: {' '.join(map(str, pattern.slots))}",
            sources,
            (Union((facts, of_cliques)),),
            distinct=self.has_rules,
            consequences=(Select(names),),
            origin=pattern.origin,
        )

    def _cliques(self, subject: Slot, predicate: Slot, object: Slot) -> Iterator[Predicate]:
        """Yields the predicates that bind the slots of a pattern to each representative, and owl:sameAs."""
        representative = self._variable()
        yield _representatives(self.cliques, representative)
        values: dict[Variable, Expression] = {}
        for slot, value in ((subject, representative), (predicate, SAME_AS), (object, representative)):
            if not isinstance(slot, Variable):
                if slot != value:
                    yield Filter(Call(OWN + "sameTerm", (slot, value)))
            elif slot not in values:
                values[slot] = value
            elif values[slot] != value:
                yield Filter(Call(OWN + "sameTerm", (values[slot], value)))
        yield from (Bind(variable, value) for variable, value in values.items())

    def _in_graph(self, prefix: Sequence[Slot]) -> tuple[Joinable, ...]:
        """Returns a pattern that any triple of a named graph has, if the pattern is one of a named graph."""
        if not prefix:
            return ()
        return (AtomPattern(GRAPH, (*prefix, self._variable(), self._variable(), self._variable())),)

    def _variable(self) -> Variable:
        self._variable_count += 1
        return Variable(f"representative {self._variable_count}")
