"""Demand transformation (magic sets) for rules that cannot run forward: they derive only demanded facts.

Each atom of a condition demands facts of its relation for the arguments that are bound at that point. The rest of the
condition, and the demand on the rule itself, bind them. A demand is a fact of a relation of its own, which rules
derive. Each demanded rule has the demand as one more atom of its condition, which binds variables of its conclusion. So
a forward engine evaluates rules on demand, over streams as well.

Facts that the program states are not demanded any further if all arguments are bound. That ends a chain of demands.

Sources: Bancilhon, Maier, Sagiv and Ullman, "Magic sets and other strange ways to implement logic programs", PODS 1986;
Beeri and Ramakrishnan, "On the power of magic", J. Logic Programming 10, 1991.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from squall.errors import TranslatorError, TranslatorWarning
from squall.functions.rif.names import FUNC
from squall.lexers.rif import tree
from squall.rdf import XSD, Term
from squall.translators.rif.clauses import Clause
from squall.translators.rif.conditions import AtomicFormula, Literal, UnsafeRule, unbound_variables, unsafe_rule
from squall.translators.rif.terms import (
    DEMAND,
    DEMANDED_TERM,
    EQUAL,
    ORIGINAL_FACT,
    Terms,
    ordered_arguments,
    with_argument_names,
)
from squall.translators.rif.windows import atom_of, is_window

_RelationKey = tuple[Term, int]
"""A relation and its number of arguments."""


class _Demand(NamedTuple):
    """A demand on a relation (an adornment).

    Attributes:
        key: The relation.
        places: The positions of the bound arguments.
    """

    key: _RelationKey
    places: tuple[int, ...]

    def atom(self, arguments: Sequence[tree.Term]) -> tree.Atom:
        """Returns the atom of the demand (the magic predicate).

        Args:
            arguments: All arguments of the relation.
        """
        name = f"{DEMAND}{','.join(map(str, self.places))}:{self.key[0][1:-1]}"
        if self.key == _EQUALITY:
            name = DEMANDED_TERM[1:-1]
        return tree.Atom(tree.Const(name, tree.IRI), tuple(arguments[place] for place in self.places))


class _DemandRule(NamedTuple):
    """A demand, and the clause that derives it (a magic rule)."""

    demand: _Demand
    clause: Clause


class DemandResult(NamedTuple):
    """The transformed clauses.

    Attributes:
        clauses: Clauses that run forward, except for those with errors.
        warnings: A warning for each rule that is only evaluated on demand.
        equations: Whether such rules conclude equations.
    """

    clauses: Sequence[Clause]
    warnings: Sequence[TranslatorWarning] = ()
    equations: bool = False


def demand_transformation(clauses: Sequence[Clause], equality: bool) -> DemandResult:
    """Returns the clauses, in which those that cannot run forward are evaluated on demand.

    A rule that nobody demands is unchanged, and has errors if it is not safe.

    Args:
        clauses: The clauses.
        equality: Whether rules conclude equations, and derive facts from facts by them.
    """
    transformed = _DemandTransformation(clauses, equality, lambda clause: clause.is_unsafe or _is_endless(clause)).run()
    if any(clause.errors for clause in transformed.clauses):
        return _DemandTransformation(clauses, equality, lambda clause: clause.is_unsafe).run()
    return transformed


class _DemandTransformation:
    """The computation of all demands among rules.

    Attributes:
        demanded_rules: The rules that are evaluated on demand, by the relation that they conclude.
        unanswerable: The demands that no rule can answer, since rules need more bound arguments.
    """

    def __init__(self, clauses: Sequence[Clause], equality: bool, demanded_rules: Callable[[Clause], bool]) -> None:
        self.equality = equality
        self.forward: list[Clause] = []
        self.demanded_rules: dict[_RelationKey, list[Clause]] = {}
        self.unanswerable: set[_Demand] = set()
        for clause in clauses:
            if demanded_rules(clause):
                self._defer(clause)
            else:
                self.forward.append(clause)

    def run(self) -> DemandResult:
        """Returns all clauses, once each can demand what it needs or has an error."""
        if not self.demanded_rules:
            return DemandResult(self.forward)
        while (result := self._iterate()) is None:
            pass
        return result

    def _defer(self, clause: Clause) -> None:
        """Marks a rule as evaluated on demand, unless it concludes frames or classes.

        These are triples, which other rules and data share.
        """
        parts = [replace(clause, conclusions=(conclusion,)) for conclusion in clause.conclusions]
        keys = [_key(clause, conclusion) for conclusion in clause.conclusions]
        if None in keys:
            self.forward.append(clause)
            return
        for key, part in zip(keys, parts, strict=True):
            if key is not None and (part.errors or len(parts) == 1):
                self.demanded_rules.setdefault(key, []).append(part)
            else:
                self.forward.append(part)

    def _iterate(self) -> DemandResult | None:
        """Returns the result, or None if it has marked another rule as demanded or another demand as unanswerable."""
        # In one piece: an attempt that may be given up at each of its steps.
        new_clauses: list[Clause] = []
        demands: dict[_Demand, None] = {}
        if _EQUALITY in self.demanded_rules and _OF_TERMS not in self.unanswerable:
            demands[_OF_TERMS] = None
        for clause in self.forward:
            new_clauses.append(clause)
            try:
                demand_rules = [] if clause.errors else self._calls(clause)
            except UnsafeRule as error:
                self.forward = [forward_clause for forward_clause in self.forward if forward_clause is not clause]
                self._defer(replace(clause, problem=error))
                return None
            new_clauses += [call.clause for call in demand_rules]
            demands |= dict.fromkeys(call.demand for call in demand_rules)
        waiting = list(demands)
        for demand in waiting:  # which grows
            versions, demand_rules = self._answering_rules(demand)
            if not versions:
                self.unanswerable.add(demand)
                return None
            new_clauses += [*versions, *(call.clause for call in demand_rules)]
            waiting += dict.fromkeys(call.demand for call in demand_rules if call.demand not in waiting)
        return self._result(new_clauses, {demand.key for demand in waiting})

    def _result(self, new_clauses: list[Clause], answered: set[_RelationKey]) -> DemandResult:
        warned: dict[str, TranslatorWarning] = {}
        for key, clauses in self.demanded_rules.items():
            if key not in answered:
                new_clauses += clauses
                continue
            new_clauses += self._original_facts(key)
            for clause in clauses:
                message = f"`{clause.name}` cannot run forward: it derives only what other rules demand"
                warning = TranslatorWarning(
                    message, clause.origin, "so the answer lacks what it could conclude beyond that"
                )
                warned[str(warning)] = warning
        equations = _EQUALITY in answered
        return DemandResult(
            [_reject_nested_terms(clause) if equations else self._reject_windows(clause) for clause in new_clauses],
            tuple(warned.values()),
            equations,
        )

    def _reject_windows(self, clause: Clause) -> Clause:
        """Returns the clause, with an error if it reads what is evaluated on demand through a window."""
        for literal in clause.conjunction:
            formula = literal.formula
            if isinstance(formula, tree.External) and is_window(formula):
                atom = atom_of(formula)
                if atom is not None and _key(clause, atom) in self.demanded_rules:
                    hint = "derive another relation from it and from what it is needed for, and read that"
                    message = "a window cannot read what rules derive on demand only"
                    return replace(clause, problem=TranslatorError(message, formula.origin, hint))
        return clause

    # What a rule asks

    def _calls(self, clause: Clause) -> list[_DemandRule]:
        """Returns the demands of a clause.

        Raises:
            UnsafeRule: A demand cannot be answered.
        """
        demand_rules: list[_DemandRule] = []
        remaining = [literal for literal in clause.conjunction if self._needs_demand(clause, literal)]
        evaluated = [literal for literal in clause.conjunction if not self._needs_demand(clause, literal)]
        while remaining:
            before = replace(clause, conclusions=(), conjunction=tuple(evaluated), origin=None, partial=True)
            demands_by_literal = [self._demands(before, literal) for literal in remaining]
            place = next((place for place, calls in enumerate(demands_by_literal) if calls), None)
            if place is None:
                raise self._unanswered(before, remaining[0])
            demand_rules += demands_by_literal[place]
            evaluated.append(remaining.pop(place))
        return demand_rules

    def _unanswered(self, before: Clause, literal: Literal) -> UnsafeRule:
        """Returns the error for a formula with too few bound arguments, or that of the rule if none is missing here."""
        terms = Terms(before.constants, literal.names)
        for argument in _arguments(literal.formula):
            for missing in unbound_variables(terms.term_pattern(argument), before.body.bound):
                return unsafe_rule(missing, literal.formula.origin)
        demanded_rules = [
            argument
            for key, clauses in self.demanded_rules.items()
            if key == _key(before, literal.formula)
            for argument in clauses
        ]
        errors = [error for clause in demanded_rules for error in clause.errors if isinstance(error, UnsafeRule)]
        return (
            errors[0] if errors else UnsafeRule("a rule for this cannot be evaluated on demand", literal.formula.origin)
        )

    def _needs_demand(self, clause: Clause, literal: Literal) -> bool:
        formula = literal.formula
        is_read = isinstance(formula, tree.Atom) or literal.concluded
        return is_read and isinstance(formula, tree.Atom | tree.Equal) and _key(clause, formula) in self.demanded_rules

    def _demands(self, before: Clause, literal: Literal) -> list[_DemandRule]:
        """Returns the demands of a formula, for its bound arguments. There are none if no rule can answer them."""
        key, arguments = _key(before, literal.formula), _arguments(literal.formula)
        assert key is not None
        terms = Terms(before.constants, literal.names)
        bound_places = [
            place
            for place, argument in enumerate(arguments)
            if not unbound_variables(terms.term_pattern(argument), before.body.bound)
        ]
        adornments = (
            [(_OF_TERMS.places, (arguments[place],)) for place in bound_places]
            if key == _EQUALITY
            else [(tuple(bound_places), arguments)]
        )
        calls = []
        for places, demanded in adornments:
            demand = _Demand(key, places)
            conclusion = demand.atom(demanded)
            name = f"rif:asked by {before.name}"
            if places and demand not in self.unanswerable:
                clause = replace(before, name=name, conclusions=(conclusion,), names=literal.names)
                calls.append(_DemandRule(demand, clause))
        return calls

    # What is answered

    def _answering_rules(self, demand: _Demand) -> tuple[list[Clause], list[_DemandRule]]:
        """Returns the demanded rules with the demand in their conditions, and their own demands.

        There are no rules if one of them cannot answer the demand.
        """
        new_clauses: list[Clause] = []
        calls: list[_DemandRule] = []
        for clause in self.demanded_rules[demand.key]:
            variants = list(self._variants(clause, demand))
            if not variants:
                return [], []
            for variant, demand_rules in variants:
                new_clauses.append(variant)
                calls += demand_rules
        return new_clauses, calls

    def _variants(self, clause: Clause, demand: _Demand) -> Iterator[tuple[Clause, list[_DemandRule]]]:
        """Yields the variants of a rule that answer a demand, with their own demands. An equation has one for each
        side.
        """
        (conclusion,) = clause.conclusions
        arguments = _arguments(conclusion)
        adornments = (
            [(argument,) for argument in arguments if _members(argument)] if demand.key == _EQUALITY else [arguments]
        )
        for demanded in adornments:
            version = self._variant(clause, demand, demanded)
            try:
                calls = self._calls(version)
            except UnsafeRule:
                continue
            if not version.errors:
                yield version, calls

    def _variant(self, clause: Clause, demand: _Demand, arguments: Sequence[tree.Term]) -> Clause:
        """Returns a rule with a demand in its condition, in which variables replace arguments that no
        pattern can have."""
        names = dict(clause.names)
        simple: list[tree.Term] = []
        equations: list[AtomicFormula] = []
        for term in arguments:
            if isinstance(term, tree.Var | tree.Const):
                simple.append(term)
            else:
                variable = clause.fresh()
                names[variable.name] = variable
                simple.append(tree.Var(variable.name))
                equations.append(tree.Equal(simple[-1], term, origin=term.origin))
        demand_literals = tuple(Literal(formula, names) for formula in (demand.atom(simple), *equations))
        unless: tuple[Literal, ...] = ()
        if len(demand.places) == demand.key[1] and self._original_facts(demand.key):
            unless = (Literal(tree.Atom(_original_relation(demand.key), tuple(simple)), names),)
        return replace(
            clause, conjunction=(*demand_literals, *clause.conjunction), names=names, unless=unless, problem=None
        )

    def _original_facts(self, key: _RelationKey) -> list[Clause]:
        """Returns clauses that mark the facts that the program states. There are none if equations derive
        more facts."""
        if self.equality:
            return []
        facts = [
            (clause, conclusion)
            for clause in self.forward
            if not clause.conjunction
            for conclusion in clause.conclusions
        ]
        return [
            replace(clause, conclusions=(tree.Atom(_original_relation(key), _arguments(conclusion)),), origin=None)
            for clause, conclusion in facts
            if _key(clause, conclusion) == key
        ]


def _key(clause: Clause, formula: tree.Node) -> _RelationKey | None:
    """Returns the relation that a formula reads or concludes, if it can be demanded."""
    match formula:
        case tree.Atom():
            return with_argument_names(clause.constants.term(formula.op), formula.names), len(formula.arguments)
        case tree.Equal():
            return _EQUALITY
        case _:
            return None


_EQUALITY = (EQUAL, 2)
_OF_TERMS = _Demand(_EQUALITY, (0,))
"""The demand for all terms that are equal to a term."""


def _arguments(formula: tree.Node) -> tuple[tree.Term, ...]:
    if isinstance(formula, tree.Equal):
        return (formula.left, formula.right)
    assert isinstance(formula, tree.Atom)
    return ordered_arguments(formula)


def _original_relation(key: _RelationKey) -> tree.Const:
    return tree.Const(ORIGINAL_FACT + key[0][1:-1], tree.IRI)


# Equations


def _reject_nested_terms(clause: Clause) -> Clause:
    """Returns the clause, with an error if it matches terms with variables inside of terms.

    Other terms might be equal to the inner ones without having been constructed.
    """
    read = [literal.formula for literal in clause.conjunction if not isinstance(literal.formula, tree.External)]
    for formula in (*read, *(literal for literal in clause.conclusions if isinstance(literal, tree.Equal))):
        for term in filter(_is_nested, tree.parts(formula, outside=False)):
            hint = "name the inner one: `And(p(f(?y)) ?y = g(?x))` instead of `p(f(g(?x)))`"
            message = "terms with variables within terms cannot be matched where equations are derived on demand"
            return replace(clause, problem=TranslatorError(message, term.origin, hint))
    return clause


def _is_nested(term: tree.Node) -> bool:
    inner = [member for member in _members(term) if _members(member)]
    return any(isinstance(part, tree.Var) for member in inner for part in tree.parts(member, outside=False))


def _members(term: tree.Node) -> tuple[tree.Term, ...]:
    """Returns the arguments of a compound term."""
    match term:
        case tree.Expr(arguments=arguments):
            return arguments
        case tree.List(items=items, rest=rest):
            return items if rest is None else (*items, rest)
        case _:
            return ()


# Rules without an end


def _is_endless(clause: Clause) -> bool:
    """Returns whether a rule derives a further fact from the one fact that it reads, without end."""
    # In one piece: conditions, one after another.
    if len(clause.conclusions) != 1 or len(clause.conjunction) != 1:
        return False
    (conclusion,), (literal,) = clause.conclusions, clause.conjunction
    read = literal.formula
    if not (isinstance(conclusion, tree.Atom) and isinstance(read, tree.Atom)):
        return False
    if _key(clause, conclusion) != _key(clause, read):
        return False
    names = [part.name for part in tree.parts(read) if isinstance(part, tree.Var)]
    if len(set(names)) < len(names):
        return False
    pairs = list(zip(ordered_arguments(read), ordered_arguments(conclusion), strict=True))
    grown = [pair for pair in pairs if _grows(*pair) or _shifts(*pair) or _shifts(*reversed(pair))]
    return bool(grown) and all(
        pair in grown or (pair[0] == pair[1] and isinstance(pair[0], tree.Var)) for pair in pairs
    )


def _grows(old: tree.Term, new: tree.Term) -> bool:
    """Returns whether a term is constructed from another one, which is a variable."""
    is_compound = isinstance(new, tree.Expr | tree.List) and not any(
        isinstance(node, tree.External) for node in tree.parts(new)
    )
    return isinstance(old, tree.Var) and is_compound and any(node == old for node in tree.parts(new))


_EXACT = (XSD + "integer", XSD + "decimal")


def _shifts(variable: tree.Term, computed: tree.Term) -> bool:
    """Returns whether a term is a variable plus or minus an exact number other than 0."""
    if not (isinstance(variable, tree.Var) and isinstance(computed, tree.External)):
        return False
    content = computed.content
    if content.op.lexical not in (FUNC + "numeric-add", FUNC + "numeric-subtract") or len(content.arguments) != 2:
        return False
    first, second = content.arguments
    return (
        first == variable
        and isinstance(second, tree.Const)
        and second.space in _EXACT
        and second.lexical.strip("+-0.") != ""
    )
