"""In which places constants occur: a predicate is no individual, in all documents that import each other.

Source: RIF-BLD, section 2.4 (well-formed formulas; contexts of symbols) and 2.5 (documents).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from squall import functions
from squall.errors import Origin, TranslatorError, TranslatorWarning
from squall.lexers.rif import tree
from squall.translators.rif.terms import LANGUAGE, short

_Use = tuple[tree.Const, str, Origin | None]


def check_contexts(documents: Sequence[tree.Document]) -> list[TranslatorError]:
    """An error for each constant that is an individual, a function and a predicate, or two of these: one where it first
    is another than before."""
    errors: dict[object, TranslatorError] = {}
    first_uses: dict[tuple[object, str, str], tuple[str, Origin | None]] = {}
    for number, document in enumerate(documents):
        for constant, context, origin in _uses(document.group):
            scope = number if constant.space == tree.LOCAL else None
            key = (scope, constant.lexical, constant.space)
            first_context, first = first_uses.setdefault(key, (context, origin))
            if first_context != context:
                hint = f"it is {first_context} at {first}: use two constants" if first else None
                message = f"`{constant.lexical}` is {context} here, and {first_context} before"
                errors.setdefault((key, context), TranslatorError(message, origin, hint))
    return list(errors.values())


def unmarked(documents: Sequence[tree.Document]) -> Iterator[TranslatorWarning]:
    """A warning for each use of a built-in's name that is not in an External: there it is another symbol."""
    builtins = functions.builtins(LANGUAGE)
    for document in documents:
        for constant, context, origin in _uses(document.group):
            if constant.space == tree.IRI and constant.lexical in builtins and context in _APPLIED:
                name = short(constant.lexical)
                message = f"`{name}` is {context} of the program here, and not the built-in of this name"
                yield TranslatorWarning(message, origin, f"for the built-in write `External({name}(...))`")


_APPLIED = ("a predicate", "a function")


def _uses(node: tree.Node | None) -> Iterator[_Use]:
    """Each constant with what it is. What is defined outside has no part in it."""
    match node:
        case tree.Const():
            yield node, "an individual", node.origin
        case tree.Atom(op=op, arguments=arguments):
            yield op, "a predicate", op.origin
            yield from _each(arguments)
        case tree.Expr(op=op, arguments=arguments):
            yield op, "a function", op.origin
            yield from _each(arguments)
        case tree.External(content=content):
            yield from _each(content.arguments)
        case tree.List(items=items, rest=rest):
            yield from _each(items)
            yield from _uses(rest)
        case tree.Frame(object=about, slots=slots):
            yield from _uses(about)
            for slot in slots:
                yield from _each(slot)
        case tree.Equal(left=left, right=right) | tree.Member(instance=left, cls=right):
            yield from _each((left, right))
        case tree.Subclass(sub=left, sup=right):
            yield from _each((left, right))
        case tree.And(formulas=formulas) | tree.Or(formulas=formulas):
            yield from _each(formulas)
        case tree.Exists(formula=formula) | tree.Forall(formula=formula):
            yield from _uses(formula)
        case tree.Implies(conclusion=conclusion, condition=condition):
            yield from _each((conclusion, condition))
        case tree.Group(sentences=sentences):
            yield from _each(sentences)


def _each(nodes: Sequence[tree.Node]) -> Iterator[_Use]:
    for node in nodes:
        yield from _uses(node)
