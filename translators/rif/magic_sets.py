"""Rules that cannot run forward: they conclude what is asked of their relation, and what is asked is derived by rules.

A rule asks a relation by each atom of its condition, with the arguments that have values by then: what gives them their
values (the rest of the condition, and what the rule itself is asked) concludes a question, a fact of a relation of its
own. Each rule for the relation gets the question as one more atom of its condition, which gives values to variables of
its conclusion. So rules are evaluated on demand by a system that runs forward, over streams as well.

What facts of the program say is not asked any further, where all arguments are given: that ends a chain of questions.

Source: Bancilhon, Maier, Sagiv and Ullman, "Magic sets and other strange ways to implement logic programs", PODS 1986;
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
from squall.translators.rif.conditions import Leaf, Literal, Unsafe, unknown, unsafe
from squall.translators.rif.terms import ASKED, ASKED_TERM, EQUAL, GIVEN, Terms, named, ordered

_Key = tuple[Term, int]
"""A relation, and how many arguments it has."""


class _Question(NamedTuple):
    """What is asked of a relation. places: of the arguments that are given."""

    key: _Key
    places: tuple[int, ...]

    def atom(self, arguments: Sequence[tree.Term]) -> tree.Atom:
        """The question. arguments: all that the relation has."""
        name = f"{ASKED}{','.join(map(str, self.places))}:{self.key[0][1:-1]}"
        if self.key == _EQUALITY:
            name = ASKED_TERM[1:-1]
        return tree.Atom(tree.Const(name, tree.IRI), tuple(arguments[place] for place in self.places))


class _Call(NamedTuple):
    """A question, and the clause that concludes it."""

    question: _Question
    clause: Clause


class Asked(NamedTuple):
    """Clauses that run forward, but for those with errors; and a warning for each rule that has to be asked.

    equations: whether rules that have to be asked conclude equations.
    """

    clauses: Sequence[Clause]
    warnings: Sequence[TranslatorWarning] = ()
    equations: bool = False


def asked(clauses: Sequence[Clause], equality: bool) -> Asked:
    """The clauses, where they cannot run forward in the form in which others ask them. What nobody asks stays as it
    is, and has errors if it is not safe.

    equality: whether rules conclude equations, and derive facts of facts by them.
    """
    transformed = _Asking(clauses, equality, lambda clause: clause.is_unsafe or _is_endless(clause)).found()
    if any(clause.errors for clause in transformed.clauses):
        return _Asking(clauses, equality, lambda clause: clause.is_unsafe).found()
    return transformed


class _Asking:
    """Finds out what rules ask of each other.

    late: the rules that have to be asked, by what they conclude. failing: what cannot be asked, since rules need more
    arguments to be given.
    """

    def __init__(self, clauses: Sequence[Clause], equality: bool, late: Callable[[Clause], bool]) -> None:
        self.equality = equality
        self.forward: list[Clause] = []
        self.late: dict[_Key, list[Clause]] = {}
        self.failing: set[_Question] = set()
        for clause in clauses:
            if late(clause):
                self._put_off(clause)
            else:
                self.forward.append(clause)

    def found(self) -> Asked:
        """All clauses, when each can ask what it has to, or has an error."""
        if not self.late:
            return Asked(self.forward)
        while (result := self._round()) is None:
            pass
        return result

    def _put_off(self, clause: Clause) -> None:
        """Notes that a rule has to be asked, unless it concludes what cannot be asked: frames and classes are triples,
        which others read as well."""
        parts = [replace(clause, conclusions=(conclusion,)) for conclusion in clause.conclusions]
        keys = [_key(clause, conclusion) for conclusion in clause.conclusions]
        if None in keys:
            self.forward.append(clause)
            return
        for key, part in zip(keys, parts, strict=True):
            if key is not None and (part.errors or len(parts) == 1):
                self.late.setdefault(key, []).append(part)
            else:
                self.forward.append(part)

    def _round(self) -> Asked | None:
        """None where something turns out that had not been known: a rule that has to be asked, or cannot be."""
        new_clauses: list[Clause] = []
        questions: dict[_Question, None] = {}
        if _EQUALITY in self.late and _OF_TERMS not in self.failing:
            questions[_OF_TERMS] = None
        for clause in self.forward:
            new_clauses.append(clause)
            try:
                calls = [] if clause.errors else self._calls(clause)
            except Unsafe as error:
                self.forward = [forward_clause for forward_clause in self.forward if forward_clause is not clause]
                self._put_off(replace(clause, problem=error))
                return None
            new_clauses += [call.clause for call in calls]
            questions |= dict.fromkeys(call.question for call in calls)
        waiting = list(questions)
        for question in waiting:  # which grows
            versions, calls = self._answers(question)
            if not versions:
                self.failing.add(question)
                return None
            new_clauses += [*versions, *(call.clause for call in calls)]
            waiting += dict.fromkeys(call.question for call in calls if call.question not in waiting)
        return self._result(new_clauses, {question.key for question in waiting})

    def _result(self, new_clauses: list[Clause], answered: set[_Key]) -> Asked:
        warned: dict[str, TranslatorWarning] = {}
        for key, clauses in self.late.items():
            if key not in answered:
                new_clauses += clauses
                continue
            new_clauses += self._given(key)
            for kept_clause in clauses:
                message = (
                    f"`{kept_clause.name}` cannot run forward: it concludes what other rules ask, and nothing else"
                )
                warning = TranslatorWarning(
                    message, kept_clause.origin, "so the answer does not have all that it could conclude"
                )
                warned[str(warning)] = warning
        equations = _EQUALITY in answered
        return Asked(
            [_flat(kept_clause) if equations else kept_clause for kept_clause in new_clauses],
            tuple(warned.values()),
            equations,
        )

    # What a rule asks

    def _calls(self, clause: Clause) -> list[_Call]:
        """What a clause asks. Raises Unsafe where that is more than can be asked."""
        demanded_calls: list[_Call] = []
        demanding = [literal for literal in clause.conjunction if self._asks(clause, literal)]
        known_literals = [literal for literal in clause.conjunction if not self._asks(clause, literal)]
        while demanding:
            before = replace(clause, conclusions=(), conjunction=tuple(known_literals), origin=None, partial=True)
            each = [self._questions(before, literal) for literal in demanding]
            place = next((place for place, calls in enumerate(each) if calls), None)
            if place is None:
                raise self._unanswered(before, demanding[0])
            demanded_calls += each[place]
            known_literals.append(demanding.pop(place))
        return demanded_calls

    def _unanswered(self, before: Clause, literal: Literal) -> Unsafe:
        """The error for a formula of which too little is given to ask it; of the rule, if nothing is missing here."""
        terms = Terms(before.constants, literal.names)
        for argument in _arguments(literal.formula):
            for missing in unknown(terms.part(argument), before.body.bound):
                return unsafe(missing, literal.formula.origin)
        late = [
            argument
            for key, clauses in self.late.items()
            if key == _key(before, literal.formula)
            for argument in clauses
        ]
        errors = [error for clause in late for error in clause.errors if isinstance(error, Unsafe)]
        return errors[0] if errors else Unsafe("a rule for this cannot be asked", literal.formula.origin)

    def _asks(self, clause: Clause, literal: Literal) -> bool:
        formula = literal.formula
        is_read = isinstance(formula, tree.Atom) or literal.concluded
        return is_read and isinstance(formula, tree.Atom | tree.Equal) and _key(clause, formula) in self.late

    def _questions(self, before: Clause, literal: Literal) -> list[_Call]:
        """What is asked by a formula, where this has values before; nothing if that cannot be asked."""
        key, arguments = _key(before, literal.formula), _arguments(literal.formula)
        assert key is not None
        terms = Terms(before.constants, literal.names)
        bound_places = [
            place for place, argument in enumerate(arguments) if not unknown(terms.part(argument), before.body.bound)
        ]
        each = (
            [(_OF_TERMS.places, (arguments[place],)) for place in bound_places]
            if key == _EQUALITY
            else [(tuple(bound_places), arguments)]
        )
        calls = []
        for places, demanded in each:
            question = _Question(key, places)
            conclusion = question.atom(demanded)
            name = f"rif:asked by {before.name}"
            if places and question not in self.failing:
                clause = replace(before, name=name, conclusions=(conclusion,), names=literal.names)
                calls.append(_Call(question, clause))
        return calls

    # What is answered

    def _answers(self, question: _Question) -> tuple[list[Clause], list[_Call]]:
        """The rules for what is asked, with the question in their conditions, and what they ask in turn. No rules if it
        cannot be asked of one of them."""
        new_clauses: list[Clause] = []
        calls: list[_Call] = []
        for clause in self.late[question.key]:
            versions = list(self._versions(clause, question))
            if not versions:
                return [], []
            for version, demand in versions:
                new_clauses.append(version)
                calls += demand
        return new_clauses, calls

    def _versions(self, clause: Clause, question: _Question) -> Iterator[tuple[Clause, list[_Call]]]:
        """The forms of a rule that answer a question, with what they ask: of an equation one for each side."""
        (conclusion,) = clause.conclusions
        arguments = _arguments(conclusion)
        each = (
            [(argument,) for argument in arguments if _members(argument)] if question.key == _EQUALITY else [arguments]
        )
        for demanded in each:
            version = self._version(clause, question, demanded)
            try:
                calls = self._calls(version)
            except Unsafe:
                continue
            if not version.errors:
                yield version, calls

    def _version(self, clause: Clause, question: _Question, arguments: Sequence[tree.Term]) -> Clause:
        """A rule with a question in its condition, in which variables stand for what is no argument of a pattern."""
        names = dict(clause.names)
        simple: list[tree.Term] = []
        equations: list[Leaf] = []
        for term in arguments:
            if isinstance(term, tree.Var | tree.Const):
                simple.append(term)
            else:
                variable = clause.fresh()
                names[variable.name] = variable
                simple.append(tree.Var(variable.name))
                equations.append(tree.Equal(simple[-1], term, origin=term.origin))
        more = tuple(Literal(formula, names) for formula in (question.atom(simple), *equations))
        unless: tuple[Literal, ...] = ()
        if len(question.places) == question.key[1] and self._given(question.key):
            unless = (Literal(tree.Atom(_given(question.key), tuple(simple)), names),)
        return replace(clause, conjunction=(*more, *clause.conjunction), names=names, unless=unless, problem=None)

    def _given(self, key: _Key) -> list[Clause]:
        """Clauses that put down the facts of a relation that a program is written with; none where equations give more
        of them."""
        if self.equality:
            return []
        facts = [
            (clause, conclusion)
            for clause in self.forward
            if not clause.conjunction
            for conclusion in clause.conclusions
        ]
        return [
            replace(clause, conclusions=(tree.Atom(_given(key), _arguments(conclusion)),), origin=None)
            for clause, conclusion in facts
            if _key(clause, conclusion) == key
        ]


def _key(clause: Clause, formula: tree.Node) -> _Key | None:
    """What a formula reads or concludes, if it can be asked."""
    match formula:
        case tree.Atom():
            return named(clause.constants.term(formula.op), formula.names), len(formula.arguments)
        case tree.Equal():
            return _EQUALITY
        case _:
            return None


_EQUALITY = (EQUAL, 2)
_OF_TERMS = _Question(_EQUALITY, (0,))
"""What a term is equal to."""


def _arguments(formula: tree.Node) -> tuple[tree.Term, ...]:
    if isinstance(formula, tree.Equal):
        return (formula.left, formula.right)
    assert isinstance(formula, tree.Atom)
    return ordered(formula)


def _given(key: _Key) -> tree.Const:
    return tree.Const(GIVEN + key[0][1:-1], tree.IRI)


# Equations


def _flat(clause: Clause) -> Clause:
    """The clause, with an error where it looks into terms within terms: there might be others that are equal to them,
    and have not been made."""
    read = [literal.formula for literal in clause.conjunction if not isinstance(literal.formula, tree.External)]
    for formula in (*read, *(literal for literal in clause.conclusions if isinstance(literal, tree.Equal))):
        for term in filter(_is_nested, tree.parts(formula, outside=False)):
            hint = "name the inner one: `And(p(f(?y)) ?y = g(?x))` instead of `p(f(g(?x)))`"
            message = "terms with variables within terms cannot be looked for where equations have to be asked for"
            return replace(clause, problem=TranslatorError(message, term.origin, hint))
    return clause


def _is_nested(term: tree.Node) -> bool:
    inner = [member for member in _members(term) if _members(member)]
    return any(isinstance(part, tree.Var) for member in inner for part in tree.parts(member, outside=False))


def _members(term: tree.Node) -> tuple[tree.Term, ...]:
    """What a term is built of."""
    match term:
        case tree.Expr(arguments=arguments):
            return arguments
        case tree.List(items=items, rest=rest):
            return items if rest is None else (*items, rest)
        case _:
            return ()


# Rules without an end


def _is_endless(clause: Clause) -> bool:
    """Whether a rule concludes another fact of the one fact that it reads, over and over, and nothing ends that."""
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
    pairs = list(zip(ordered(read), ordered(conclusion), strict=True))
    grown = [pair for pair in pairs if _grows(*pair) or _shifts(*pair) or _shifts(*reversed(pair))]
    return bool(grown) and all(
        pair in grown or (pair[0] == pair[1] and isinstance(pair[0], tree.Var)) for pair in pairs
    )


def _grows(old: tree.Term, new: tree.Term) -> bool:
    """Whether a term is built of another one, which is a variable."""
    built = isinstance(new, tree.Expr | tree.List) and not any(
        isinstance(node, tree.External) for node in tree.parts(new)
    )
    return isinstance(old, tree.Var) and built and any(node == old for node in tree.parts(new))


_EXACT = (XSD + "integer", XSD + "decimal")


def _shifts(variable: tree.Term, computed: tree.Term) -> bool:
    """Whether a term is a variable plus or minus an exact number other than 0."""
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
