"""The contexts of constants: a constant is either an individual, a function or a predicate in all imported documents.

Source: RIF-BLD, section 2.4 (well-formed formulas; contexts of symbols) and 2.5 (documents).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from squall import functions
from squall.errors import Origin, TranslatorError, TranslatorWarning
from squall.lexers.rif import tree
from squall.translators.rif.terms import LANGUAGE, prefixed_name
from squall.translators.rif.windows import atom_of, further_arguments, is_window

_Use = tuple[tree.Const, str, Origin | None]


def check_contexts(documents: Sequence[tree.Document]) -> list[TranslatorError]:
    """Returns an error for each constant with two contexts, at its first use in the second one."""
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


def unmarked_builtin_warnings(documents: Sequence[tree.Document]) -> Iterator[TranslatorWarning]:
    """Yields a warning for each built-in's name that is used without External, where it is another symbol."""
    builtins = functions.builtins(LANGUAGE)
    for document in documents:
        for constant, context, origin in _uses(document.group):
            if constant.space == tree.IRI and constant.lexical in builtins and context in _APPLIED:
                name = prefixed_name(constant.lexical)
                message = f"`{name}` is {context} of the program here, and not the built-in of this name"
                yield TranslatorWarning(message, origin, f"for the built-in write `External({name}(...))`")


_APPLIED = ("a predicate", "a function")


def _uses(node: tree.Node | None) -> Iterator[_Use]:
    """Yields each constant with its context. Externals have none."""
    match node:
        case tree.Const():
            yield node, "an individual", node.origin
        case tree.Atom(op=op, arguments=arguments):
            yield op, "a predicate", op.origin
            yield from _uses_in_each(arguments)
        case tree.Expr(op=op, arguments=arguments):
            yield op, "a function", op.origin
            yield from _uses_in_each(arguments)
        case tree.External() if is_window(node):
            yield from _uses(atom_of(node))
            yield from _uses_in_each(further_arguments(node))
        case tree.External(content=content):
            yield from _uses_in_each(content.arguments)
        case tree.List(items=items, rest=rest):
            yield from _uses_in_each(items)
            yield from _uses(rest)
        case tree.Frame(object=about, slots=slots):
            yield from _uses(about)
            for slot in slots:
                yield from _uses_in_each(slot)
        case tree.Equal(left=left, right=right) | tree.Member(instance=left, cls=right):
            yield from _uses_in_each((left, right))
        case tree.Subclass(sub=left, sup=right):
            yield from _uses_in_each((left, right))
        case tree.And(formulas=formulas) | tree.Or(formulas=formulas):
            yield from _uses_in_each(formulas)
        case tree.Exists(formula=formula) | tree.Forall(formula=formula):
            yield from _uses(formula)
        case tree.Implies(conclusion=conclusion, condition=condition):
            yield from _uses_in_each((conclusion, condition))
        case tree.Group(sentences=sentences):
            yield from _uses_in_each(sentences)


def _uses_in_each(nodes: Sequence[tree.Node]) -> Iterator[_Use]:
    for node in nodes:
        yield from _uses(node)
