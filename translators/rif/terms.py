"""RIF terms as slots, terms and expressions of a system."""

from __future__ import annotations

import re
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
from squall.lexers.rdf12 import DIRECTIONS
from squall.lexers.rif import tree
from squall.model import Call, Variable
from squall.rdf import Term, iri, is_literal, literal
from squall.rdf.compounds import LIST
from squall.rulesets import HELPER
from squall.translators.common import CompoundTerm, TermPattern
from squall.translators.owl.expressions import UNDECIDED

NAMESPACE = "urn:x-squall:rif:"
SUBCLASS = iri(NAMESPACE + "subclass")
"""The relation of ``##``."""
EQUAL = iri(NAMESPACE + "equal")
"""The relation of ``=`` if rules conclude it: symmetric and transitive, over the terms of equations."""
PART = iri(NAMESPACE + "part")
"""The relation of a term and a compound that contains it as an argument, if rules conclude ``=``."""
INCONSISTENT = iri(NAMESPACE + "inconsistent")
"""The relation of rules that end the run. It never has a fact."""
DEMAND, ORIGINAL_FACT = NAMESPACE + "asked:", NAMESPACE + "given:"
"""The prefixes of the relations of demands, and of facts that the program states
(`squall.translators.rif.magic_sets`). They are part of checkpoints and do not change."""
_HIDDEN = (f"<{DEMAND}", f"<{ORIGINAL_FACT}", HELPER)
DEMANDED_TERM = iri(DEMAND + "term")
"""The relation of the terms for which equal terms are demanded."""
LANGUAGE = "rif"


@dataclass(frozen=True)
class Constants:
    """The constants of a document.

    Attributes:
        key: Distinguishes its local constants from those of other documents.
    """

    key: str

    def term(self, constant: tree.Const) -> Term:
        """Returns the term of a constant.

        Raises:
            TranslatorError: Its lexical form is not in its symbol space.
        """
        lexical, space = constant.lexical, constant.space
        if space == tree.IRI:
            return iri(_NOT_IN_IRIS.sub(lambda characters: quote(characters[0]), lexical))
        if space == tree.LOCAL:
            return iri(f"urn:x-squall:local:{self.key}:{quote(lexical)}")
        if space == tree.PLAIN:
            plain_form = plain(literal(lexical, space))
            if plain_form is None and _DIRECTION.search(lexical):
                raise TranslatorError(f"`{lexical}`: {DIRECTIONS}", constant.origin, "leave the direction out")
            if plain_form is None:
                hint = "after its text an `@` and a language, or nothing"
                raise TranslatorError(f"`{lexical}` is no rdf:PlainLiteral", constant.origin, hint)
            return plain_literal(plain_form)
        term = literal(lexical, space)
        if not is_well_formed(term) or (space in SPACES and value(term) is None):
            raise TranslatorError(f"`{lexical}` is not in the lexical space of <{space}>", constant.origin)
        return term


_DIRECTION = re.compile(r"@[A-Za-z]+(-[A-Za-z0-9]+)*--[A-Za-z]+$")
"""A language with a base direction, at the end of a text."""
_NOT_IN_IRIS = re.compile(r"""[\x00-\x20<>"{}|^`\\]+""")
"""What no IRI has (RDF 1.1 N-Triples, IRIREF)."""


def document_key(document: tree.Document) -> str:
    """Returns a digest of the text of a document. Equal documents are equal wherever they are stored."""
    return blake2b(str(document).encode(), digest_size=8).hexdigest()


def with_argument_names(relation: Term, names: Sequence[str]) -> Term:
    """Returns the relation or function with named arguments: another one for each set of names."""
    if not names:
        return relation
    name_list = ",".join(quote(name, safe="") for name in sorted(names))
    return iri(f"{NAMESPACE}named:{name_list}:{relation[1:-1]}")


def ordered_arguments(part: tree.Atom | tree.Expr) -> tuple[tree.Term, ...]:
    """Returns the arguments. Named ones are in the order of their names.

    Raises:
        TranslatorError: A name occurs twice.
    """
    if not part.names:
        return part.arguments
    if len(set(part.names)) < len(part.names):
        repeated = next(name for name in part.names if part.names.count(name) > 1)
        raise TranslatorError(f"the argument `{repeated}` is given twice", part.origin)
    pairs = sorted(zip(part.names, part.arguments, strict=True), key=lambda pair: pair[0])
    return tuple(value for _, value in pairs)


def is_hidden(relation: Term) -> bool:
    """Returns whether rules read a relation that is no part of an answer."""
    return relation in (SUBCLASS, EQUAL, PART, UNDECIDED) or relation.startswith(_HIDDEN)


class Terms:
    """Translates terms to slots, compound terms and calls."""

    def __init__(self, constants: Constants, variables: Mapping[str, Variable]) -> None:
        self.constants = constants
        self.variables = variables

    def term_pattern(
        self, term: tree.Term, outside: Callable[[tree.External], TermPattern] | None = None
    ) -> TermPattern:
        """Returns the slot, compound term or call of a term.

        Args:
            term: The term.
            outside: Returns the replacement for a call of an external function.
        """
        match term:
            case tree.Const():
                return self.constants.term(term)
            case tree.Var(name=name):
                return self.variables[name]
            case tree.Expr(op=op):
                arguments = tuple(self.term_pattern(argument, outside) for argument in ordered_arguments(term))
                return CompoundTerm(with_argument_names(self.constants.term(op), term.names), arguments)
            case tree.List(items=items, rest=None):
                return CompoundTerm(LIST, tuple(self.term_pattern(item, outside) for item in items))
            case tree.List(items=items, rest=rest):
                assert rest is not None
                return CompoundTerm(
                    LIST, tuple(self.term_pattern(item, outside) for item in items), self.term_pattern(rest, outside)
                )
            case tree.External():
                return outside(term) if outside else self.call(term)

    def call(self, external: tree.External) -> Call:
        """Returns the call of an external function or predicate.

        Raises:
            TranslatorError: There is no such function.
        """
        content = external.content
        function = _external_function(content, self.constants.term(content.op), isinstance(content, tree.Atom))
        arguments = tuple(expression_of(self.term_pattern(argument)) for argument in content.arguments)
        problem = function.problem(arguments)
        if problem:
            raise TranslatorError(problem, content.origin)
        return Call(function.iri, arguments, content.origin)


def expression_of(part: TermPattern) -> Term | Variable | Call:
    """Returns a term as an expression, without a nesting limit, since no rule concludes it."""
    from squall.translators.common import expression

    return expression(part)


def builtin(content: tree.Atom | tree.Expr, name: Term) -> Builtin | None:
    """Returns the built-in that is called, if the language knows it by this name."""
    return functions.builtins(LANGUAGE).get(name[1:-1])


def prefixed_name(name: str) -> str:
    """Returns the name of a built-in with its usual prefix."""
    prefixes = (
        f"{prefix}:{name.removeprefix(space)}" for prefix, space in tree.PREFIXES.items() if name.startswith(space)
    )
    return next(prefixes, name)


def _external_function(content: tree.Atom | tree.Expr, name: Term, truth: bool) -> Function:
    # In one piece: the errors of a call, in the order in which they are reported.
    builtins = functions.builtins(LANGUAGE)
    spelled = builtins.get(name[1:-1])
    target = name[1:-1] if spelled is None else (spelled.test if truth else None) or name[1:-1]
    if is_literal(name) or content.names:
        raise TranslatorError("what is external is called by an IRI, its arguments without names", content.origin)
    try:
        function = functions.lookup(target)
    except PluginError as error:
        hint = (
            did_you_mean(prefixed_name(name[1:-1]), [prefixed_name(builtin_iri) for builtin_iri in builtins])
            or error.hint
        )
        kind = "predicate" if truth else "function"
        raise TranslatorError(f"there is no external {kind} {name}", content.origin, hint) from error
    if truth and function.as_test:
        function = functions.lookup(function.as_test)
    if function.truth != truth:
        expected_kind, is_ = ("a formula", "a function") if truth else ("a term", "a predicate")
        raise TranslatorError(f"{name} is {is_}: it cannot be {expected_kind}", content.origin)
    count = len(content.arguments)
    if count < function.least or (function.most is not None and count > function.most):
        raise TranslatorError(f"{name} does not take {count} argument{'s' if count != 1 else ''}", content.origin)
    return function
