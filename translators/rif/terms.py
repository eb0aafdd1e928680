"""Terms of RIF as terms, slots and expressions of a system."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from urllib.parse import quote

from squall import functions
from squall.errors import PluginError, TranslatorError, did_you_mean
from squall.functions import Builtin, Function
from squall.functions.rif.spaces import SPACES, value
from squall.functions.texts import plain, plain_literal
from squall.functions.values import is_well_formed
from squall.lexers.rif import tree
from squall.model import Call, Variable
from squall.rdf import RDF, Term, iri, is_literal, literal
from squall.rdf.compounds import LIST
from squall.translators.common import Built, Part

OWN = "urn:x-squall:rif:"
TYPE = iri(RDF + "type")
SUBCLASS = iri(OWN + "subclass")
"""The relation of ``##``."""
EQUAL = iri(OWN + "equal")
"""The relation of ``=`` where rules conclude it: symmetric and transitive, over what is in an equation."""
PART = iri(OWN + "part")
"""The relation of a term and a compound of which it is an argument, where rules conclude ``=``."""
INCONSISTENT = iri(OWN + "inconsistent")
"""The relation that rules conclude of what ends the run, so that nothing is ever in it."""
UNDECIDED = iri(OWN + "undecided")
"""The relation of a class that is a union, and of what is in it and, by the rules, in none of its classes."""
ASKED, GIVEN = OWN + "asked:", OWN + "given:"
"""What the names of relations begin with in which it is put down what is asked of a relation, and which of its facts
are written in the program (`squall.translators.rif.magic_sets`)."""
ASKED_TERM = iri(ASKED + "term")
"""The relation of the terms of which it is asked what they are equal to."""
LANGUAGE = "rif"


@dataclass(frozen=True)
class Constants:
    """The constants of a document. key: tells its local ones from those of other documents."""

    key: str

    def term(self, constant: tree.Const) -> Term:
        """The term of a constant. Raises TranslatorError where its form does not belong to its symbol space."""
        lexical, space = constant.lexical, constant.space
        if space == tree.IRI:
            return iri(quote(lexical, safe=_IN_IRIS))
        if space == tree.LOCAL:
            return iri(f"urn:x-squall:local:{self.key}:{quote(lexical)}")
        if space == tree.PLAIN:
            plain_form = plain(literal(lexical, space))
            if plain_form is None:
                hint = "after its text an `@` and a language, or nothing"
                raise TranslatorError(f"`{lexical}` is no rdf:PlainLiteral", constant.origin, hint)
            return plain_literal(plain_form)
        term = literal(lexical, space)
        if not is_well_formed(term) or (space in SPACES and value(term) is None):
            raise TranslatorError(f"`{lexical}` is not in the lexical space of <{space}>", constant.origin)
        return term


_IN_IRIS = "".join(chr(code) for code in range(0x21, 0x7F) if chr(code) not in '<>"{}|^`\\')


def key_of(document: tree.Document) -> str:
    """What tells a document from others: a digest of its text, so that equal documents are equal wherever they lie."""
    return blake2b(str(document).encode(), digest_size=8).hexdigest()


def named(relation: Term, names: Sequence[str]) -> Term:
    """The relation or function with named arguments: another one for each set of names."""
    if not names:
        return relation
    name_list = ",".join(quote(name, safe="") for name in sorted(names))
    return iri(f"{OWN}named:{name_list}:{relation[1:-1]}")


def ordered(part: tree.Atom | tree.Expr) -> tuple[tree.Term, ...]:
    """The arguments: named ones in the order of their names. Raises TranslatorError where a name occurs twice."""
    if not part.names:
        return part.arguments
    if len(set(part.names)) < len(part.names):
        twice = next(name for name in part.names if part.names.count(name) > 1)
        raise TranslatorError(f"the argument `{twice}` is given twice", part.origin)
    pairs = sorted(zip(part.names, part.arguments, strict=True), key=lambda pair: pair[0])
    return tuple(value for _, value in pairs)


def is_hidden(relation: Term) -> bool:
    """Whether a relation is one that rules read, and that is no part of an answer."""
    return relation in (SUBCLASS, EQUAL, PART, UNDECIDED) or relation[1:].startswith((ASKED, GIVEN))


class Terms:
    """Makes parts of terms: slots, compounds, calls."""

    def __init__(self, constants: Constants, variables: Mapping[str, Variable]) -> None:
        self.constants = constants
        self.variables = variables

    def part(self, term: tree.Term, outside: Callable[[tree.External], Part] | None = None) -> Part:
        """The part of a term. outside: what to put in the place of a call of an external function."""
        match term:
            case tree.Const():
                return self.constants.term(term)
            case tree.Var(name=name):
                if name not in self.variables:
                    hint = f"declare it: `Forall ?{name} (...)` around the rule, or `Exists` around a condition"
                    raise TranslatorError(f"the variable `?{name}` is not declared", term.origin, hint)
                return self.variables[name]
            case tree.Expr(op=op):
                arguments = tuple(self.part(argument, outside) for argument in ordered(term))
                return Built(named(self.constants.term(op), term.names), arguments)
            case tree.List(items=items, rest=None):
                return Built(LIST, tuple(self.part(item, outside) for item in items))
            case tree.List(items=items, rest=rest):
                assert rest is not None
                return Built(LIST, tuple(self.part(item, outside) for item in items), self.part(rest, outside))
            case tree.External():
                return outside(term) if outside else self.call(term)

    def call(self, external: tree.External) -> Call:
        """The call of an external function or predicate. Raises TranslatorError where there is none like that."""
        content = external.content
        function = _found(content, self.constants.term(content.op), isinstance(content, tree.Atom))
        arguments = tuple(made_of(self.part(argument)) for argument in content.arguments)
        constants = [argument if isinstance(argument, str) else None for argument in arguments]
        problem = function.check(*constants) if function.check else None
        if problem:
            raise TranslatorError(problem, content.origin)
        return Call(function.iri, arguments, content.origin)


def made_of(part: Part) -> Term | Variable | Call:
    """A part as an expression, however deep it is nested: it is no term that a rule makes."""
    from squall.translators.common import expression

    return expression(part)


def builtin(content: tree.Atom | tree.Expr, name: Term) -> Builtin | None:
    """The built-in that is called, if the language knows it by this name."""
    return functions.builtins(LANGUAGE).get(name[1:-1])


def short(name: str) -> str:
    """The name of a built-in by the prefix that it usually has."""
    prefixes = (
        f"{prefix}:{name.removeprefix(space)}" for prefix, space in tree.PREFIXES.items() if name.startswith(space)
    )
    return next(prefixes, name)


def _found(content: tree.Atom | tree.Expr, name: Term, truth: bool) -> Function:
    builtins = functions.builtins(LANGUAGE)
    spelled = builtins.get(name[1:-1])
    target = name[1:-1] if spelled is None else (spelled.test if truth else None) or name[1:-1]
    if is_literal(name) or content.names:
        raise TranslatorError("what is external is called by an IRI, its arguments without names", content.origin)
    try:
        function = functions.lookup(target)
    except PluginError as error:
        hint = did_you_mean(short(name[1:-1]), [short(builtin_iri) for builtin_iri in builtins]) or error.hint
        kind = "predicate" if truth else "function"
        raise TranslatorError(f"there is no external {kind} {name}", content.origin, hint) from error
    if function.truth != truth:
        expected_kind, is_ = ("a formula", "a function") if truth else ("a term", "a predicate")
        raise TranslatorError(f"{name} is {is_}: it cannot be {expected_kind}", content.origin)
    count = len(content.arguments)
    if count < function.least or (function.most is not None and count > function.most):
        raise TranslatorError(f"{name} does not take {count} argument{'s' if count != 1 else ''}", content.origin)
    return function
