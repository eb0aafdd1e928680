"""The lexer of RIF's XML syntax (RIF-BLD, section 4 and its schemas). Unknown elements are errors."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, cast
from xml.sax.saxutils import escape, quoteattr

from squall.errors import LexerError, did_you_mean, raise_all
from squall.lexers.rif import hints, tree
from squall.lexers.rif.elements import XML, Element, read
from squall.rdf.iris import resolved

_FORMULAS = ("And", "Or", "Exists", "Atom", "Equal", "Member", "Subclass", "Frame", "External")
_ATOMIC = ("Atom", "Equal", "Member", "Subclass", "Frame")
_TERMS = ("Const", "Var", "Expr", "List", "External")
_SENTENCES = ("Group", "Forall", "Implies", *_ATOMIC)


@dataclass(frozen=True)
class XmlLexer:
    """The lexer of RIF's XML syntax."""

    def __call__(self, text: str, name: str, prefixes: Mapping[str, str] | None = None) -> tree.Document:
        """Parses a document. Its IRIs are written out, so it has no use for prefixes.

        Raises:
            LexerError: There is an error.
            Errors: There are several errors.
        """
        reader = _Reader()
        document = reader.of(read(text.removeprefix("\ufeff"), name), ("Document",))
        raise_all(reader.errors)
        return replace(cast("tree.Document", document), name=name)

    @staticmethod
    def written(document: tree.Document) -> str:
        """Returns the text of a tree in this syntax."""
        lines = "".join(f"{line}\n" for line in _element(document, f' xmlns="{tree.RIF}"'))
        return f'<?xml version="1.0" encoding="UTF-8"?>\n{lines}'


lexer = XmlLexer()


def condition(text: str, name: str) -> tree.Formula:
    """Parses a condition that stands alone.

    Raises:
        LexerError: There is an error.
        Errors: There are several errors.
    """
    reader = _Reader()
    formula = reader.of(read(text.removeprefix("\ufeff"), name), _FORMULAS)
    raise_all(reader.errors)
    return cast("tree.Formula", formula)


class _InvalidElement(Exception):
    """The error of an element has been recorded, and there is no tree of it."""


class _Reader:
    """Builds the trees of elements, and records their errors."""

    def __init__(self) -> None:
        self.errors: list[LexerError] = []
        self.base = ""
        self.namespace: str | None = None
        """The namespace of the root: RIF's, or none, as in documents of the first Squall."""

    def of(self, element: Element, expected: tuple[str, ...]) -> Any:
        """Returns the tree of an element that has one of the expected names, or None if there is an error."""
        try:
            return self._node(element, expected)
        except _InvalidElement:
            return None

    def _node(self, element: Element, expected: tuple[str, ...], term: bool = False) -> Any:
        self._check_name(element, expected)
        self._attributes(element, _ATTRIBUTES.get(element.name, ()))
        return replace(self._node_of(element, term), meta=self._meta(element), origin=element.origin)

    def _node_of(self, element: Element, term: bool) -> Any:
        if element.name in ("Const", "Var"):
            return self._leaf(element)
        self._no_text(element)
        if element.name == "External":
            return self._external(element, term)
        make: Callable[[Element], Any] = getattr(self, f"_{element.name.lower()}")
        return make(element)

    # What any element may be wrong in

    def _fail(self, message: str, element: Element, hint: str | None = None) -> _InvalidElement:
        self.errors.append(LexerError(message, element.origin, hint))
        return _InvalidElement()

    def _check_name(self, element: Element, expected: Iterable[str]) -> None:
        if self.namespace is None and element.namespace in ("", tree.RIF):
            self.namespace = element.namespace
        if element.namespace != self.namespace:
            hint = f'RIF\'s elements are in the namespace `{tree.RIF}`: say `xmlns="{tree.RIF}"` at the root'
            raise self._fail(f"`{element.name}` is no element of RIF", element, hint)
        if element.name not in expected:
            hint = (
                hints.production_hint(element.name)
                or did_you_mean(element.name, expected)
                or f"expected {_name_list(expected)}"
            )
            raise self._fail(f"`{element.name}` cannot stand here", element, hint)

    def _attributes(self, element: Element, allowed: Iterable[str]) -> None:
        for name, value in element.attributes.items():
            if name == f"{{{XML}}}base":
                self.base = resolved(value, self.base)
            elif name not in allowed and "schemaLocation" not in name:
                self._fail(f"`{element.name}` has no attribute `{name}`", element)
            elif name == "ordered" and value != "yes":
                self._fail(f'`ordered="{value}"`: it can only be "yes"', element)

    def _no_text(self, element: Element) -> None:
        if element.text.strip():
            self._fail(f"`{element.text.strip()[:40]}` cannot stand in `{element.name}`", element)

    def _roles(self, element: Element, **roles: str) -> dict[str, list[Element]]:
        """Returns the children by name.

        Args:
            element: The element.
            roles: How often each child may occur: ``1``, ``?``, ``*`` or ``+``.
        """
        roles = {"id": "?", "meta": "?", **roles}
        elements_by_role: dict[str, list[Element]] = {name: [] for name in roles}
        for child in element:
            self._check_name(child, roles)
            self._attributes(child, _ATTRIBUTES.get(child.name, ()))
            if child.name not in _LEAVES:
                self._no_text(child)
            elements_by_role[child.name].append(child)
        for name, often in roles.items():
            if not elements_by_role[name] and often in "1+":
                raise self._fail(f"`{element.name}` has no `{name}`", element)
            if len(elements_by_role[name]) > 1 and often in "1?":
                raise self._fail(f"`{element.name}` has more than one `{name}`", elements_by_role[name][1])
        return elements_by_role

    def _only(self, role: Element, expected: tuple[str, ...], term: bool = False) -> Any:
        """Returns the tree of the only child of a role."""
        if len(role.children) != 1:
            raise self._fail(f"`{role.name}` has {len(role.children)} elements in it, not one", role)
        return self._node(role.children[0], expected, term)

    def _each(self, elements: Iterable[Element], expected: tuple[str, ...], term: bool = False) -> tuple[Any, ...]:
        """Returns the trees of the children of roles with one child each. An error in one does not hide those of the
        next.
        """
        nodes, wrong = [], False
        for element in elements:
            try:
                nodes.append(self._only(element, expected, term))
            except _InvalidElement:
                wrong = True
        if wrong:
            raise _InvalidElement
        return tuple(nodes)

    def _terms(self, elements: Iterable[Element]) -> tuple[Any, ...]:
        return tuple([self._node(element, _TERMS, True) for element in elements])

    def _meta(self, element: Element) -> tree.Meta | None:
        ids = [child for child in element if child.name == "id"]
        meta_elements = [child for child in element if child.name == "meta"]
        if not (ids or meta_elements):
            return None
        id = self._only(ids[0], ("Const",), True) if ids else None
        about = self._only(meta_elements[0], ("Frame", "And")) if meta_elements else None
        said_of = about.formulas if isinstance(about, tree.And) else (about,) if about else ()
        frames = tuple(frame for frame in said_of if isinstance(frame, tree.Frame))
        if len(frames) < len(said_of):
            raise self._fail("meta-data are frames", meta_elements[0])
        return tree.Meta(id, frames)

    # Documents and rules

    def _document(self, element: Element) -> tree.Document:
        roles = self._roles(element, directive="*", payload="?")
        group = self._each(roles["payload"], ("Group",))
        return tree.Document(self._each(roles["directive"], ("Import",)), group[0] if group else None)

    def _import(self, element: Element) -> tree.Import:
        roles = self._roles(element, location="1", profile="?")
        location, *profile = (
            resolved(role.text.strip(), self.base) for role in (*roles["location"], *roles["profile"])
        )
        return tree.Import(location, profile[0] if profile else None)

    def _group(self, element: Element) -> tree.Group:
        return tree.Group(self._each(self._roles(element, sentence="*")["sentence"], _SENTENCES))

    def _forall(self, element: Element) -> tree.Forall:
        roles = self._roles(element, declare="+", formula="1")
        return tree.Forall(self._declared(roles), self._only(roles["formula"][0], ("Implies", *_ATOMIC)))

    def _declared(self, roles: dict[str, list[Element]]) -> tuple[tree.Var, ...]:
        return self._each(roles["declare"], ("Var",))

    def _implies(self, element: Element) -> tree.Implies:
        roles = self._roles(element, **{"if": "1", "then": "1"})
        (condition,) = self._each(roles["if"], _FORMULAS)
        return tree.Implies(self._only(roles["then"][0], ("And", *_ATOMIC)), condition)

    # Formulas

    def _and(self, element: Element) -> tree.And:
        return tree.And(self._each(self._roles(element, formula="*")["formula"], _FORMULAS))

    def _or(self, element: Element) -> tree.Or:
        return tree.Or(self._each(self._roles(element, formula="*")["formula"], _FORMULAS))

    def _exists(self, element: Element) -> tree.Exists:
        roles = self._roles(element, declare="+", formula="1")
        return tree.Exists(self._declared(roles), self._only(roles["formula"][0], _FORMULAS))

    def _pair(self, element: Element, first_role: str, second_role: str) -> tuple[Any, Any]:
        roles = self._roles(element, **{first_role: "1", second_role: "1"})
        left, right = self._each((*roles[first_role], *roles[second_role]), _TERMS, True)
        return left, right

    def _equal(self, element: Element) -> tree.Equal:
        return tree.Equal(*self._pair(element, "left", "right"))

    def _member(self, element: Element) -> tree.Member:
        return tree.Member(*self._pair(element, "instance", "class"))

    def _subclass(self, element: Element) -> tree.Subclass:
        return tree.Subclass(*self._pair(element, "sub", "super"))

    def _frame(self, element: Element) -> tree.Frame:
        roles = self._roles(element, object="1", slot="*")
        (about,) = self._each(roles["object"], _TERMS, True)
        return tree.Frame(about, tuple(self._slot(slot) for slot in roles["slot"]))

    def _slot(self, slot: Element) -> tuple[Any, Any]:
        if len(slot.children) != 2:
            raise self._fail(f"`slot` has {len(slot.children)} elements in it, not two", slot)
        attribute, value = self._terms(slot)
        return attribute, value

    def _atom(self, element: Element) -> tree.Atom:
        return tree.Atom(*self._application(element))

    def _expr(self, element: Element) -> tree.Expr:
        return tree.Expr(*self._application(element))

    def _application(self, element: Element) -> tuple[tree.Const, tuple[Any, ...], tuple[str, ...]]:
        roles = self._roles(element, op="1", args="?", slot="*")
        (op,) = self._each(roles["op"], ("Const",), True)
        if roles["args"] and roles["slot"]:
            raise self._fail(f"`{element.name}` has arguments with names and without", roles["slot"][0])
        if roles["slot"]:
            named_arguments = [self._named_argument(slot) for slot in roles["slot"]]
            return op, tuple(value for _, value in named_arguments), tuple(name for name, _ in named_arguments)
        return op, self._terms(child for args in roles["args"] for child in args), ()

    def _named_argument(self, slot: Element) -> tuple[str, Any]:
        if len(slot.children) != 2:
            raise self._fail(f"`slot` has {len(slot.children)} elements in it, not two", slot)
        name, value = slot.children
        self._check_name(name, ("Name",))
        return name.text.strip(), self._node(value, _TERMS, True)

    def _external(self, element: Element, term: bool = False) -> tree.External:
        (content,) = self._roles(element, content="1")["content"]
        return tree.External(self._only(content, ("Expr",) if term else ("Atom",)))

    # Terms

    def _list(self, element: Element) -> tree.List:
        roles = self._roles(element, items="?", rest="?")
        items = self._terms(child for role in roles["items"] for child in role)
        rest_terms = self._each(roles["rest"], _TERMS, True)
        if rest_terms and not items:
            raise self._fail("a list with a rest has items before it", element)
        return tree.List(items, rest_terms[0] if rest_terms else None)

    def _leaf(self, element: Element) -> tree.Var | tree.Const:
        for child in element:
            self._check_name(child, ("id", "meta"))
        if element.name == "Var":
            name = element.text.strip()
            if not name:
                raise self._fail("this variable has no name", element)
            return tree.Var(name)
        space = element.attributes.get("type")
        if space is None:
            raise self._fail("this constant does not say its `type`", element)
        prefix, _, local = space.partition(":")
        if prefix in tree.PREFIXES:
            hint = f'XML has no prefixes for it: say `type="{tree.PREFIXES[prefix]}{local}"`'
            raise self._fail(f"the type `{space}` is no IRI", element, hint)
        language = element.attributes.get(f"{{{XML}}}lang", "")
        if language:
            return tree.text_constant(element.text, language)
        if space == tree.IRI:
            return tree.Const(resolved(element.text.strip(), self.base), space)
        return tree.Const(element.text.strip() if space == tree.LOCAL else element.text, space)


_ORDERED = ("ordered",)
_ATTRIBUTES: dict[str, tuple[str, ...]] = {
    "Const": ("type", f"{{{XML}}}lang"),
    "args": _ORDERED,
    "items": _ORDERED,
    "slot": _ORDERED,
}
_LEAVES = frozenset(("location", "profile"))


def _name_list(names: Iterable[str]) -> str:
    *earlier_names, last = [f"`{name}`" for name in names if name not in ("id", "meta")] or ["nothing"]
    return f"{', '.join(earlier_names)} or {last}" if earlier_names else last


# Printing


def _element(node: tree.Node, attributes: str = "") -> Iterator[str]:
    """Yields the lines of a node's element."""
    name = type(node).__name__
    if isinstance(node, tree.Const):
        attributes = f" type={quoteattr(node.space)}{attributes}"
    if isinstance(node, tree.Const | tree.Var):
        text = escape(node.lexical if isinstance(node, tree.Const) else node.name, _ESCAPES)
        meta = "".join(line.strip() for line in _metadata_lines(node.meta))
        yield f"<{name}{attributes}>{meta}{text}</{name}>"
        return
    yield f"<{name}{attributes}>"
    for line in (*_metadata_lines(node.meta), *_inside(node)):
        yield f"  {line}"
    yield f"</{name}>"


_ESCAPES = {"\r": "&#13;"}


def _metadata_lines(meta: tree.Meta | None) -> Iterator[str]:
    if meta is not None and meta.id:
        yield from _role("id", meta.id)
    if meta is not None and meta.frames:
        frames = meta.frames
        yield from _role("meta", frames[0] if len(frames) == 1 else tree.And(frames))


def _role(name: str, *nodes: tree.Node, attributes: str = "") -> Iterator[str]:
    yield f"<{name}{attributes}>"
    for node in nodes:
        yield from (f"  {line}" for line in _element(node))
    yield f"</{name}>"


def _roles(name: str, nodes: Iterable[tree.Node]) -> Iterator[str]:
    for node in nodes:
        yield from _role(name, node)


_YES = ' ordered="yes"'


def _inside(node: tree.Node) -> Iterator[str]:
    # In one piece: a flat match, the XML of each node.
    match node:
        case tree.Document(imports=imports, group=group):
            yield from _roles("directive", imports)
            yield from _roles("payload", [group] if group else [])
        case tree.Import(location=location, profile=profile):
            yield f"<location>{escape(location)}</location>"
            if profile is not None:
                yield f"<profile>{escape(profile)}</profile>"
        case tree.Group(sentences=sentences):
            yield from _roles("sentence", sentences)
        case tree.Forall(variables=names, formula=inner) | tree.Exists(variables=names, formula=inner):
            yield from _roles("declare", names)
            yield from _role("formula", inner)
        case tree.Implies(conclusion=conclusion, condition=condition):
            yield from _role("if", condition)
            yield from _role("then", conclusion)
        case tree.And(formulas=formulas) | tree.Or(formulas=formulas):
            yield from _roles("formula", formulas)
        case tree.Frame(object=about, slots=slots):
            yield from _role("object", about)
            for attribute, value in slots:
                yield from _role("slot", attribute, value, attributes=_YES)
        case tree.Atom() | tree.Expr():
            yield from _applied(node)
        case tree.External(content=content):
            yield from _role("content", content)
        case tree.List(items=items, rest=rest):
            yield from _role("items", *items, attributes=_YES)
            yield from _roles("rest", [rest] if rest else [])
        case tree.Equal() | tree.Member() | tree.Subclass():
            for name, part in zip(_SIDES[type(node).__name__], _sides(node), strict=True):
                yield from _role(name, part)


_SIDES = {"Equal": ("left", "right"), "Member": ("instance", "class"), "Subclass": ("sub", "super")}


def _sides(node: tree.Equal | tree.Member | tree.Subclass) -> tuple[tree.Term, tree.Term]:
    match node:
        case tree.Equal(left=left, right=right):
            return left, right
        case tree.Member(instance=left, cls=right):
            return left, right
        case tree.Subclass(sub=left, sup=right):
            return left, right


def _applied(node: tree.Atom | tree.Expr) -> Iterator[str]:
    yield from _role("op", node.op)
    if node.names:
        for name, value in zip(node.names, node.arguments, strict=True):
            yield f"<slot{_YES}>"
            yield f"  <Name>{escape(name)}</Name>"
            yield from (f"  {line}" for line in _element(value))
            yield "</slot>"
    else:
        yield from _role("args", *node.arguments, attributes=_YES)
