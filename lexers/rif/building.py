"""Construction of the RIF tree from lark's tree of the presentation syntax: prefixes, constants, metadata."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar, cast

from lark import Token, Tree, v_args
from lark.visitors import Transformer_NonRecursive

from squall.errors import Origin
from squall.lexers.prefixes import declaration_hint
from squall.lexers.rif import tree
from squall.lexers.sparql.terms import unquoted
from squall.lexers.text import Text
from squall.rdf.iris import resolved


def build(parsed: Tree[Token], text: Text, prefixes: Mapping[str, str]) -> tree.Node | None:
    """Returns the tree. Errors are recorded in the text."""
    return cast("tree.Node | None", _Builder(text, prefixes).transform(parsed))


_N = TypeVar("_N", bound=tree.Node)


def _of(parts: Sequence[Any], kind: type | tuple[type, ...]) -> tuple[Any, ...]:
    return tuple(part for part in parts if isinstance(part, kind))


@v_args(meta=True)
class _Builder(Transformer_NonRecursive[Token, Any]):
    """Builds the tree from the leaves up, in the order of the text: a prefix is known before it is used."""

    def __init__(self, text: Text, prefixes: Mapping[str, str]) -> None:
        super().__init__()
        self.source = text
        self.root = ""
        self.prefixes = {**tree.PREFIXES, **prefixes}
        self.unknown: set[str] = set()

    def _origin(self, meta: Any) -> Origin:
        return self.source.origin(getattr(meta, "start_pos", 0), getattr(meta, "end_pos", 1))

    # The prologue

    def base(self, meta: Any, parts: Any) -> None:
        self.root = resolved(parts[0][1:-1], self.root)

    def prefix(self, meta: Any, parts: Any) -> None:
        self.prefixes["" if len(parts) == 1 else str(parts[0])] = self._resolved(parts[-1])

    def import_(self, meta: Any, parts: Any) -> tree.Import:
        location, *profile = (self._resolved(part) for part in _of(parts, Token))
        node = tree.Import(location, profile[0] if profile else None, origin=self._origin(meta))
        return self._with_metadata(node, parts)

    def document(self, meta: Any, parts: Any) -> tree.Document:
        group = next(iter(_of(parts, tree.Group)), None)
        node = tree.Document(_of(parts, tree.Import), group, origin=self._origin(meta))
        return self._with_metadata(node, parts)

    # Rules

    def group(self, meta: Any, parts: Any) -> tree.Group:
        sentences = tuple(part for part in parts if not isinstance(part, tree.Meta))
        return self._with_metadata(tree.Group(sentences, origin=self._origin(meta)), parts)

    def forall(self, meta: Any, parts: Any) -> tree.Forall:
        names = tuple(self._variable(part) for part in _of(parts, Token))
        return self._with_metadata(tree.Forall(names, parts[-1], origin=self._origin(meta)), parts)

    def implies(self, meta: Any, parts: Any) -> tree.Implies:
        return self._with_metadata(tree.Implies(parts[-2], parts[-1], origin=self._origin(meta)), parts)

    def conjunction(self, meta: Any, parts: Any) -> tree.And:
        return tree.And(tuple(parts), origin=self._origin(meta))

    # Formulas

    def atomic(self, meta: Any, parts: Any) -> Any:
        node = parts[-1]
        if isinstance(node, tree.External):
            inner = node.content
            node = replace(node, content=tree.Atom(inner.op, inner.arguments, inner.names, origin=inner.origin))
        return self._with_metadata(node, parts[:-1])

    def and_(self, meta: Any, parts: Any) -> tree.And:
        return self._with_metadata(tree.And(self._formulas(parts), origin=self._origin(meta)), parts)

    def or_(self, meta: Any, parts: Any) -> tree.Or:
        return self._with_metadata(tree.Or(self._formulas(parts), origin=self._origin(meta)), parts)

    def exists(self, meta: Any, parts: Any) -> tree.Exists:
        names = tuple(self._variable(part) for part in _of(parts, Token))
        return self._with_metadata(tree.Exists(names, parts[-1], origin=self._origin(meta)), parts)

    @staticmethod
    def _formulas(parts: Any) -> tuple[Any, ...]:
        return tuple(part for part in parts if not isinstance(part, tree.Meta))

    def atom(self, meta: Any, parts: Any) -> tree.Atom:
        return tree.Atom(parts[0], *self._arguments(parts[1:]), origin=self._origin(meta))

    def expr(self, meta: Any, parts: Any) -> tree.Expr:
        return tree.Expr(parts[0], *self._arguments(parts[1:]), origin=self._origin(meta))

    def content(self, meta: Any, parts: Any) -> tree.Expr:
        return self.expr(meta, parts)

    def external(self, meta: Any, parts: Any) -> tree.External:
        return tree.External(parts[0], origin=self._origin(meta))

    @staticmethod
    def _arguments(parts: Any) -> tuple[tuple[Any, ...], tuple[str, ...]]:
        named_arguments = _of(parts, tuple)
        return (
            (tuple(value for _, value in named_arguments), tuple(name for name, _ in named_arguments))
            if named_arguments
            else (tuple(parts), ())
        )

    def named(self, meta: Any, parts: Any) -> tuple[str, Any]:
        name = str(parts[0])
        return (unquoted(name) if name[0] == '"' else name, parts[1])

    def equal(self, meta: Any, parts: Any) -> tree.Equal:
        return tree.Equal(parts[0], parts[1], origin=self._origin(meta))

    def member(self, meta: Any, parts: Any) -> tree.Member:
        return tree.Member(parts[0], parts[1], origin=self._origin(meta))

    def subclass(self, meta: Any, parts: Any) -> tree.Subclass:
        return tree.Subclass(parts[0], parts[1], origin=self._origin(meta))

    def frame(self, meta: Any, parts: Any) -> tree.Frame:
        return tree.Frame(parts[0], tuple(parts[1:]), origin=self._origin(meta))

    def slot(self, meta: Any, parts: Any) -> tuple[Any, Any]:
        return (parts[0], parts[1])

    # Terms

    def term(self, meta: Any, parts: Any) -> Any:
        return self._with_metadata(parts[-1], parts[:-1])

    def var(self, meta: Any, parts: Any) -> tree.Var:
        return self._variable(parts[0])

    def list(self, meta: Any, parts: Any) -> tree.List:
        return tree.List(tuple(parts), origin=self._origin(meta))

    def open_list(self, meta: Any, parts: Any) -> tree.List:
        return tree.List(tuple(parts[:-1]), parts[-1], origin=self._origin(meta))

    def _variable(self, token: Token) -> tree.Var:
        name = token[1:]
        origin = self.source.origin(token.start_pos or 0, token.end_pos or 0)
        return tree.Var(unquoted(name) if name[0] == '"' else str(name), origin=origin)

    # Constants

    def typed(self, meta: Any, parts: Any) -> tree.Const:
        return tree.Const(unquoted(parts[0]), self._resolved(parts[1]), origin=self._origin(meta))

    def tagged(self, meta: Any, parts: Any) -> tree.Const:
        return replace(tree.text_constant(unquoted(parts[0]), parts[1][1:]), origin=self._origin(meta))

    def text(self, meta: Any, parts: Any) -> tree.Const:
        return replace(tree.text_constant(unquoted(parts[0])), origin=self._origin(meta))

    def iri(self, meta: Any, parts: Any) -> tree.Const:
        return tree.Const(self._resolved(parts[0]), tree.IRI, origin=self._origin(meta))

    def number(self, meta: Any, parts: Any) -> tree.Const:
        kind = next(space for space, form in tree.NUMBERS.items() if re.fullmatch(form, parts[0]))
        return tree.Const(str(parts[0]), kind, origin=self._origin(meta))

    def local(self, meta: Any, parts: Any) -> tree.Const:
        return tree.Const(str(parts[0][1:]), tree.LOCAL, origin=self._origin(meta))

    def _resolved(self, token: Token) -> str:
        """Returns the IRI of ``<iri>`` or ``prefix:local``."""
        if token.startswith("<"):
            return resolved(token[1:-1], self.root)
        prefix, _, local_name = token.partition(":")
        if prefix in self.prefixes:
            return self.prefixes[prefix] + local_name
        if prefix not in self.unknown:
            self.unknown.add(prefix)
            namespace = "http://example.org/"
            hint = declaration_hint(prefix, self.prefixes, f"Prefix({prefix} <{namespace}>)", namespace)
            origin = self.source.origin(token.start_pos or 0, token.end_pos or 0)
            self.source.fail(f"the prefix `{prefix}:` is not declared", origin, hint)
        return str(token)

    # Meta-data

    def meta(self, meta: Any, parts: Any) -> tree.Meta:
        return tree.Meta(next(iter(_of(parts, tree.Const)), None), _of(parts, tree.Frame))

    def _with_metadata(self, node: _N, parts: Any) -> _N:
        """Returns the node with the metadata in front of it.

        The first metadata are its own, the others belong to the child with which its text begins.
        """
        first, *other_metas = _of(parts, tree.Meta) or (None,)
        if first is None:
            return node
        if other_metas:
            inner = tree.leading(node)
            if inner is None:
                place = node.origin or self.source.origin(0, 1)
                self.source.fail("there is more than one piece of meta-data here", place, "join their frames")
            else:
                node = _with_leading(node, self._with_metadata(inner, other_metas))
        node_with_meta: _N = replace(node, meta=first) if first != tree.Meta() else node
        return node_with_meta


def _with_leading(node: _N, first: Any) -> _N:
    """Returns the node with another leading child."""
    name = next(name for name in ("conclusion", "left", "instance", "sub", "object") if hasattr(node, name))
    moved_node: _N = replace(node, **{name: first})
    return moved_node
