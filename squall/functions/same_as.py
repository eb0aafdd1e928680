"""Functions over cliques (`squall.rdf.cliques`): the representative and the members of terms, and what holds for some
choice of members.

Each takes the literal of the cliques first. What depends on the text of a term, such as ``STR``, may differ from member
to member: such an expression is a constant here, a compound term, so that it is an argument like others (`quoted`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import product
from typing import Any

from squall import functions
from squall.functions import Builtin, Function
from squall.rdf import Term, iri, iri_text, literal, parts
from squall.rdf.cliques import Cliques, cliques_of
from squall.rdf.compounds import compound, is_compound, parse_compound

OWN_FUNCTIONS = "urn:x-squall:same-as:"
"""The beginning of the IRIs of the functions of this module."""
REPRESENTATIVE = OWN_FUNCTIONS + "representative"
REPRESENTATIVES = OWN_FUNCTIONS + "representatives"
PAIRS = OWN_FUNCTIONS + "pairs"
MEMBERS = OWN_FUNCTIONS + "members"
SOME_MEMBER = OWN_FUNCTIONS + "some-member"
VALUES_OF_MEMBERS = OWN_FUNCTIONS + "values-of-members"
VALUES_OR_UNBOUND = OWN_FUNCTIONS + "values-of-members-or-unbound"
ROWS_OF_MEMBERS = OWN_FUNCTIONS + "rows-of-members"
OF_QUOTED = frozenset((SOME_MEMBER, VALUES_OF_MEMBERS, VALUES_OR_UNBOUND, ROWS_OF_MEMBERS))
"""The functions that evaluate an expression: their third argument."""

Maybe = Term | None
_Evaluation = Callable[[Sequence[Maybe]], Any]

_ARGUMENT, _CONSTANT = iri(OWN_FUNCTIONS + "argument"), iri(OWN_FUNCTIONS + "constant")


def quoted(expression: Any, places: Mapping[Any, int]) -> Term:
    """Returns an expression as a term: a compound of the function's IRI and its arguments.

    Args:
        expression: A call, variable or term of the model.
        places: The position of each variable among the arguments of the function that evaluates the term.
    """
    if expression in places:
        return compound(_ARGUMENT, (literal(str(places[expression])),))
    if isinstance(expression, str):
        term = Term(expression)
        return compound(_CONSTANT, (term,)) if is_compound(term) else term
    return compound(iri(expression.function), [quoted(argument, places) for argument in expression.arguments])


def called_functions(expression: Term) -> Iterator[str]:
    """Yields the IRIs of the functions that a quoted expression calls."""
    call = parse_compound(expression)
    if call is not None and call.name not in (_ARGUMENT, _CONSTANT):
        yield iri_text(call.name)
        for argument in call.arguments:
            yield from called_functions(argument)


@lru_cache(maxsize=1024)
def _evaluation(expression: Term) -> _Evaluation:
    """Returns the function that evaluates a quoted expression."""
    call = parse_compound(expression)
    if call is None:
        return lambda _: expression
    if call.name == _ARGUMENT:
        place = int(parts(call.arguments[0]).lexical)
        return lambda values: values[place]
    if call.name == _CONSTANT:
        return lambda _: call.arguments[0]
    evaluate = functions.lookup(iri_text(call.name)).evaluate
    arguments = [_evaluation(argument) for argument in call.arguments]
    return lambda values: evaluate(*(argument(values) for argument in arguments))


def _choices(cliques: Cliques, expanded: Term, terms: Sequence[Maybe]) -> Iterator[tuple[Maybe, ...]]:
    """Yields the terms with each choice of a member for the first so many of them."""
    count = int(parts(expanded).lexical)
    options = [(None,) if term is None else cliques.clique(term) for term in terms[:count]]
    further_terms = tuple(terms[count:])
    return ((*choice, *further_terms) for choice in product(*options))


def _results(cliques: Term, expanded: Term, expression: Term, terms: Sequence[Maybe]) -> Iterator[Any]:
    return map(_evaluation(expression), _choices(cliques_of(cliques), expanded, terms))


def _some_member(cliques: Term, expanded: Term, expression: Term, *terms: Maybe) -> bool:
    return any(result is True for result in _results(cliques, expanded, expression, terms))


def _values(cliques: Term, expanded: Term, expression: Term, *terms: Maybe) -> list[tuple[Term]]:
    own = cliques_of(cliques)
    values = (value for value in _results(cliques, expanded, expression, terms) if isinstance(value, str))
    return [(value,) for value in dict.fromkeys(own.representative(Term(value)) for value in values)]


def _values_or_unbound(cliques: Term, expanded: Term, expression: Term, *terms: Maybe) -> Sequence[tuple[Maybe]]:
    return _values(cliques, expanded, expression, *terms) or [(None,)]


def _rows(cliques: Term, expanded: Term, expression: Term, *terms: Maybe) -> list[tuple[Maybe, ...]]:
    own = cliques_of(cliques)
    rows = (row for rows in _results(cliques, expanded, expression, terms) for row in rows or ())
    return list(
        dict.fromkeys(tuple(None if term is None else own.representative(term) for term in row) for row in rows)
    )


def _members(cliques: Term, *terms: Maybe) -> Iterator[tuple[Maybe, ...]]:
    own = cliques_of(cliques)
    return product(*((None,) if term is None else own.clique(term) for term in terms))


def _representative(cliques: Term, term: Maybe) -> Maybe:
    return None if term is None else cliques_of(cliques).representative(term)


def _representatives(cliques: Term) -> list[tuple[Term]]:
    return [(representative,) for representative in cliques_of(cliques).members]


def _pairs(cliques: Term) -> list[tuple[Term, Term]]:
    return [(triple.subject, triple.object) for triple in cliques_of(cliques).triples]


FUNCTIONS: tuple[Function | Builtin, ...] = (
    Function(REPRESENTATIVE, _representative, 2, 2, doc="the representative of a term"),
    Function(REPRESENTATIVES, _representatives, 1, 1, doc="the representatives of all cliques, as rows"),
    Function(PAIRS, _pairs, 1, 1, doc="the representative with each other term of its clique, as rows"),
    Function(MEMBERS, _members, 1, None, doc="each choice of members of the cliques of some terms, as rows"),
    Function(SOME_MEMBER, _some_member, 3, None, truth=True, doc="whether a test is true for some choice of members"),
    Function(
        VALUES_OF_MEMBERS, _values, 3, None, doc="the values of an expression for the members, each once, as rows"
    ),
    Function(VALUES_OR_UNBOUND, _values_or_unbound, 3, None, doc="the same, or a row with an unbound cell"),
    Function(ROWS_OF_MEMBERS, _rows, 3, None, doc="the rows of a table function for all members, each once"),
)
"""The functions of the entry point `same-as` of the group ``squall.functions``."""
