"""The translator of HFC: tuples become triples and atoms, tests filters, and actions values.

A triple matches triples, which always hold as HFC sees them. A tuple of more terms is an atom of `squall.rdf.TUPLE`, as
which quintuples are read (`squall.streams.formats.quintuples`).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from hashlib import blake2b
from pathlib import PurePath

from squall import functions
from squall.errors import Origin, PluginError, SquallError, TranslatorError, did_you_mean, raise_all
from squall.functions import Function
from squall.functions.hfc import LANGUAGE
from squall.functions.sparql.names import SPARQL, test_iri
from squall.lexers.hfc import tree
from squall.model import (
    AtomPattern,
    Bind,
    Call,
    Construct,
    FactPattern,
    Filter,
    Pattern,
    Predicate,
    Select,
    Slot,
    System,
    Variable,
)
from squall.rdf import TUPLE, iri_text, literal
from squall.translators.common import Scope, find_builtin, is_predicate, is_subject, with_nesting_limit


def translator(program: tree.Program) -> System:
    """Translates a program to a system with a subsystem for each rule and each query.

    A rule or a query without a name is named by its position: ``rule1``, ``query2``.

    Raises:
        TranslatorError: The program cannot be translated.
        Errors: There are several errors. All of a program's errors are raised at once.
    """
    errors: list[SquallError] = []
    systems = [_Item(item, place, errors).system() for place, item in enumerate(program.items, 1)]
    raise_all(errors)
    return System(PurePath(program.name).stem, subsystems=tuple(systems))


class _Item:
    """A rule or a query while it is translated. Its errors are recorded in a list."""

    def __init__(self, item: tree.Rule | tree.Query, place: int, errors: list[SquallError]) -> None:
        kind = "rule" if isinstance(item, tree.Rule) else "query"
        self.item = item
        self.errors = errors
        self.scope = Scope(partial(_key, item), item.name or f"{kind}{place}")

    def system(self) -> System:
        item = self.item
        joinables = tuple(_pattern(line) for line in item.body)
        for line in item.body:
            self.scope.bind(line.terms)
        predicates = [predicate for test in item.tests for predicate in self._caught(self._test, test)]
        if isinstance(item, tree.Query):
            for variable in item.variables:
                self._check_bound(variable, item.origin, "selected")
            consequence: Construct | Select = Select(item.variables)
        else:
            predicates += (predicate for action in item.actions for predicate in self._caught(self._action, action))
            for line in item.head:
                self._check_head(line)
            consequence = Construct(tuple(_pattern(line) for line in item.head))
        return System(
            self.scope.rule,
            joinables=joinables,
            predicates=tuple(predicates),
            distinct=isinstance(item, tree.Query) and item.distinct,
            consequences=(consequence,),
            is_named=bool(item.name),
            origin=item.origin,
        )

    def _caught(self, translate: object, part: tree.Test | tree.Action) -> list[Predicate]:
        """Returns the predicate of a test or an action; none with an error."""
        try:
            return [self._action(part) if isinstance(part, tree.Action) else self._test(part)]
        except TranslatorError as error:
            self.errors.append(error)
            if isinstance(part, tree.Action):
                self.scope.bind([part.variable])  # one error is enough for what it would have bound
            return []

    def _test(self, test: tree.Test) -> Predicate:
        if isinstance(test, tree.Comparison):
            self._check_arguments((test.left, test.right), test.origin)
            if test.is_equal:
                return Filter(Call(test_iri("sameTerm"), (test.left, test.right), test.origin))
            same = Call(SPARQL + "sameTerm", (test.left, test.right), test.origin)
            return Filter(Call(test_iri("logical-not"), (same,), test.origin))
        call = self._call(test, is_test=True)
        return Filter(call)

    def _action(self, action: tree.Action) -> Predicate:
        if self.scope.is_bound(action.variable):
            hint = "an action binds a new variable; a test compares: `?x == ?y`"
            raise TranslatorError(f"`{action.variable}` is bound already", action.origin, hint)
        call = self._call(action.call, is_test=False)
        self.scope.bind([action.variable])
        return Bind(action.variable, call)

    def _call(self, call: tree.Call, is_test: bool) -> Call:
        """Returns a call of a function by its name or its IRI. Raises TranslatorError if it cannot be called there."""
        leading: tuple[Slot, ...] = ()
        if call.function.startswith("<"):
            function = _function(call)
        else:
            builtins = functions.builtins(LANGUAGE)
            builtin = find_builtin(call.function, builtins, len(call.arguments), "body", call.origin)
            function = functions.lookup(builtin.test or builtin.modes[0].function)
            if builtin.modes and builtin.modes[0].scoped:
                self.scope.calls += 1
                leading = (literal(f"{self.scope.key()} {self.scope.calls}"), *self.scope.bound)
        if function.truth != is_test:
            kind, place = ("a test", "@test") if function.truth else ("a value", "@action")
            shown = "`Name ?x`" if function.truth else "`?v = Name ?x`"
            raise TranslatorError(f"`{call.function}` is {kind}", call.origin, f"write {shown} behind `{place}`")
        self._check_arguments(call.arguments, call.origin)
        if leading and function.seeded is not None:
            leading = (literal("1"), *leading)
        arguments = (*leading, *call.arguments)
        if problem := function.problem(arguments):
            raise TranslatorError(problem, call.origin)
        translated = Call(function.iri, arguments, call.origin)
        return with_nesting_limit(translated, self.scope.rule) if function.nests else translated

    def _check_arguments(self, arguments: Sequence[Slot], origin: Origin | None) -> None:
        for argument in arguments:
            if not self.scope.is_bound(argument):
                raise self._unbound(argument, origin, "not bound here")

    def _check_bound(self, variable: Variable, origin: Origin | None, where: str) -> None:
        if not self.scope.is_bound(variable):
            self.errors.append(self._unbound(variable, origin, f"{where}, but nothing binds it"))

    def _check_head(self, line: tree.Tuple) -> None:
        subject, predicate = line.terms[:2]
        for term in dict.fromkeys(line.terms):
            if isinstance(term, Variable):
                self._check_bound(term, line.origin, "in the head")
        if not is_subject(subject):
            self.errors.append(TranslatorError(f"the literal {subject} cannot be the subject of a fact", line.origin))
        if not is_predicate(predicate):
            message = f"`{predicate}` cannot be the predicate of a fact"
            self.errors.append(TranslatorError(message, line.origin, "it has to be an IRI"))

    def _unbound(self, slot: Slot, origin: Origin | None, where: str) -> TranslatorError:
        similar = did_you_mean(str(slot), map(str, self.scope.bound))
        remedy = "bind it in a tuple of the body"
        if isinstance(self.item, tree.Rule):
            remedy += ", or by an action such as `?v = MakeBlankNode`"
        return TranslatorError(f"`{slot}` is {where}", origin, f"{similar} Or {remedy}" if similar else remedy)


def _function(call: tree.Call) -> Function:
    """Returns the function of an IRI. Raises TranslatorError if there is none with so many arguments."""
    try:
        function = functions.lookup(iri_text(call.function))
    except PluginError as error:
        raise TranslatorError(error.message, call.origin, error.hint) from error
    count = len(call.arguments)
    if function.timed or function.seeded is not None:
        hint = "MakeBlankNode makes new nodes" if function.seeded is not None else "write the rule in another language"
        raise TranslatorError(f"{call.function} depends on more than its arguments", call.origin, hint)
    if count < function.least or (function.most is not None and count > function.most):
        numbers = str(function.least) if function.least == function.most else f"{function.least} or more"
        raise TranslatorError(f"{call.function} takes {numbers} arguments, not {count}", call.origin)
    return function


def _pattern(line: tree.Tuple) -> FactPattern:
    """Returns the pattern of a tuple: that of a triple if it has three terms."""
    if len(line.terms) == 3:
        return Pattern(*line.terms, origin=line.origin)
    return AtomPattern(TUPLE, line.terms, origin=line.origin)


def _key(item: tree.Rule | tree.Query) -> str:
    """Returns a digest of a rule with its variables numbered, and without its name."""
    names: dict[str, str] = {}
    words = str(item).split() if not item.name else str(item).split("\n", 1)[1].split()
    text = " ".join(names.setdefault(word, f"?{len(names)}") if word.startswith("?") else word for word in words)
    return blake2b(text.encode(), digest_size=16).hexdigest()
