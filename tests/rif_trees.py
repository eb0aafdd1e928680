"""Strategies for RIF syntax trees: any document that either syntax can express."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hypothesis import strategies as st

from squall.lexers.rif import tree
from squall.rdf import XSD, XSD_STRING

_NAMES = st.one_of(st.sampled_from(("x", "y", "a-b", "And", "x.y")), st.text("aB1 -é>", min_size=1)).filter(str.strip)
_NAMES = _NAMES.map(str.strip)
_TEXTS = st.text(st.characters(exclude_categories=("Cs", "Cc"), exclude_characters="\ufffe\uffff"), max_size=8)
_IRIS = st.sampled_from(("http://e.org/a", "http://e.org/b#c", "urn:x", "rel"))
CONSTANTS = st.one_of(
    st.builds(tree.Const, _IRIS, st.just(tree.IRI)),
    st.builds(tree.Const, _NAMES, st.just(tree.LOCAL)),
    st.builds(tree.Const, _TEXTS, st.just(XSD_STRING)),
    st.builds(tree.text_constant, _TEXTS, st.sampled_from(("", "en", "de-AT"))),
    st.builds(tree.Const, st.sampled_from(("1", "-2", "+3", "x")), st.just(XSD + "integer")),
    st.builds(tree.Const, st.sampled_from(("1.5", "-.5", "1.")), st.just(XSD + "decimal")),
    st.builds(tree.Const, st.sampled_from(("1e3", "-1.5E-3", "INF")), st.just(XSD + "double")),
)
_FRAME = st.builds(
    lambda about, slots: tree.Frame(about, tuple(slots)),
    CONSTANTS,
    st.lists(st.tuples(CONSTANTS, CONSTANTS), max_size=2),
)
_METAS = st.one_of(
    st.none(),
    st.builds(tree.Meta, st.one_of(st.none(), CONSTANTS), st.lists(_FRAME, max_size=2).map(tuple)).filter(
        lambda meta: meta != tree.Meta()
    ),
)


def _short(made: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Returns the same strategy with a short repr: the full one would fill pages."""

    @st.composite
    def drawn(draw: st.DrawFn) -> Any:
        return draw(made)

    return drawn()


VARIABLES = st.builds(tree.Var, _NAMES)


def _said(made: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.builds(lambda node, meta: replace(node, meta=meta), made, _METAS)


def _arguments(kind: type, terms: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    plain = st.builds(kind, CONSTANTS, st.lists(terms, max_size=3).map(tuple))
    names = st.builds(
        lambda op, pairs: kind(op, tuple(pairs.values()), tuple(pairs)),
        CONSTANTS,
        st.dictionaries(_NAMES, terms, min_size=1, max_size=2),
    )
    return st.one_of(plain, names)


def _built(terms: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    several = st.lists(terms, max_size=3).map(tuple)
    open_ = st.builds(tree.List, st.lists(terms, min_size=1, max_size=2).map(tuple), terms)
    applied = _arguments(tree.Expr, terms)
    return _said(st.one_of(applied, st.builds(tree.List, several), open_, st.builds(tree.External, applied)))


TERMS = _short(st.recursive(_said(st.one_of(CONSTANTS, VARIABLES)), _built, max_leaves=6))
_SLOTS = st.lists(st.tuples(TERMS, TERMS), max_size=2).map(tuple)
ATOMIC = _short(
    _said(
        st.one_of(
            _arguments(tree.Atom, TERMS),
            st.builds(tree.Equal, TERMS, TERMS),
            st.builds(tree.Member, TERMS, TERMS),
            st.builds(tree.Subclass, TERMS, TERMS),
            st.builds(tree.Frame, TERMS, _SLOTS),
        )
    )
)
_DECLARED = st.lists(VARIABLES, min_size=1, max_size=2).map(tuple)
FORMULAS = _short(
    st.recursive(
        st.one_of(ATOMIC, _said(st.builds(tree.External, _arguments(tree.Atom, TERMS)))),
        lambda inner: _said(
            st.one_of(
                st.builds(tree.And, st.lists(inner, max_size=3).map(tuple)),
                st.builds(tree.Or, st.lists(inner, max_size=3).map(tuple)),
                st.builds(tree.Exists, _DECLARED, inner),
            )
        ),
        max_leaves=4,
    )
)
_CONCLUSIONS = st.one_of(ATOMIC, _said(st.builds(tree.And, st.lists(ATOMIC, max_size=2).map(tuple))))
_CLAUSES = st.one_of(ATOMIC, _said(st.builds(tree.Implies, _CONCLUSIONS, FORMULAS)))
_RULES = st.one_of(_CLAUSES, _said(st.builds(tree.Forall, _DECLARED, _CLAUSES)))
GROUPS = _short(
    st.recursive(
        _said(st.builds(tree.Group, st.lists(_RULES, max_size=3).map(tuple))),
        lambda inner: _said(st.builds(tree.Group, st.lists(st.one_of(inner, _RULES), max_size=2).map(tuple))),
        max_leaves=2,
    )
)
_IMPORTS = _said(st.builds(tree.Import, _IRIS, st.one_of(st.none(), _IRIS)))
DOCUMENTS = _short(
    _said(st.builds(tree.Document, st.lists(_IMPORTS, max_size=2).map(tuple), st.one_of(st.none(), GROUPS)))
)
