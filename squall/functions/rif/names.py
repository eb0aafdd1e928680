"""The names of RIF's built-ins, and the decorators by which modules of the library define them.

Source of the IRIs: RIF Datatypes and Built-Ins (DTB, second edition), section 2 (the namespaces of functions and
predicates); casts are called by the IRI of their datatype (section 4.4).

Outside of the domains of its arguments a function has no value, which drops the solution, and a predicate is false: RIF
leaves both open (DTB, section 4, "if an argument value is outside of its domain, ... is not specified").
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from squall.functions import Builtin, Function, Mode
from squall.rdf import Term

LANGUAGE = "rif"
FUNC = "http://www.w3.org/2007/rif-builtin-function#"
PRED = "http://www.w3.org/2007/rif-builtin-predicate#"
OWN = "urn:x-squall:rif:"
SAME = OWN + "same"
"""The IRI of the test whether two terms are the same value: the meaning of ``=`` for bound terms."""

Maybe = Term | None
Members = tuple[Function | Builtin, ...]


class Domain(NamedTuple):
    """A domain of arguments. Its function `read` returns the value of a term, or None if it is not in the domain."""

    name: str
    read: Callable[[Term], Any]


def function(
    name: str,
    domains: tuple[Domain, ...],
    body: Callable[..., Maybe],
    doc: str,
    *,
    least: int | None = None,
    repeats: bool = False,
    **more: Any,
) -> Members:
    """Returns a built-in function. name: after `FUNC`; the body takes the values of the arguments.

    least: how many arguments are needed, all by default; repeats: any number may follow, of the last domain.
    """
    documentation = _documented(domains, least, repeats, doc)
    result = Function(
        FUNC + name, _reading(domains, body, None), *_arity(domains, least, repeats), doc=documentation, **more
    )
    return result, spelled(result)


def predicate(
    name: str,
    domains: tuple[Domain, ...],
    body: Callable[..., bool],
    doc: str,
    *,
    least: int | None = None,
    modes: tuple[Mode, ...] = (),
    **more: Any,
) -> Members:
    """Returns a built-in predicate. name: after `PRED`; the body takes the values of the arguments.

    modes: how arguments of it can be computed from the others.
    """
    documentation = _documented(domains, least, False, doc)
    body = _reading(domains, body, False)
    result = Function(PRED + name, body, *_arity(domains, least, False), truth=True, doc=documentation, **more)
    return result, spelled(result, modes)


def spelled(function: Function, modes: tuple[Mode, ...] = ()) -> Builtin:
    """Returns the built-in that is called by the IRI of a function."""
    if function.truth:
        return Builtin(
            function.iri,
            LANGUAGE,
            function.least,
            function.most,
            test=function.iri,
            modes=modes,
            same=SAME,
            doc=function.doc,
        )
    return Builtin(
        function.iri,
        LANGUAGE,
        function.least,
        function.most,
        modes=(Mode(-1, function.iri),),
        same=SAME,
        doc=function.doc,
    )


def _arity(domains: tuple[Domain, ...], least: int | None, repeats: bool) -> tuple[int, int | None]:
    return len(domains) if least is None else least, None if repeats else len(domains)


def _documented(domains: tuple[Domain, ...], least: int | None, repeats: bool, doc: str) -> str:
    """Returns the signature of a built-in; ``?`` follows optional arguments."""
    names = [domain.name for domain in domains]
    if least is not None:
        names[least:] = [f"{name}?" for name in names[least:]] if not repeats else names[least:]
    return f"({', '.join(names)}{', ...' if repeats else ''}) {doc}"


def _reading(domains: tuple[Domain, ...], body: Callable[..., Any], outside: bool | None) -> Callable[..., Any]:
    """Returns the body over terms. Its result is `outside` if an argument is not in its domain."""
    reads = tuple(domain.read for domain in domains)
    last = len(reads) - 1

    def compute(*terms: Maybe) -> Any:
        values = []
        for place, term in enumerate(terms):
            value = None if term is None else reads[min(place, last)](term)
            if value is None:
                return outside
            values.append(value)
        return body(*values)

    return compute
