"""Prints trees of RIF as presentation syntax, which lexes to an equal tree."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from squall.lexers.rif import tree
from squall.rdf import XSD_STRING, iri, literal

_NAME = re.compile(r"[^\W0-9](?:[\w.·]|-(?!>))*")
_LOCAL = re.compile(r"[^\W0-9_](?:[\w.·]|-(?!>))*")
_TAG = re.compile(r"[A-Za-z]+(-[A-Za-z0-9]+)*")
_NOT_IN_IRI = re.compile(r'[<>"{}|^`\\\x00-\x20]')


def presentation(document: tree.Document) -> str:
    """The text of a document."""
    parts = [*map(node, document.imports)]
    if document.group:
        parts.append("\n".join(_lines(document.group)))
    inside = "".join(f"  {line}\n" for part in parts for line in part.split("\n"))
    return f"{_front(document)}Document(\n{inside})\n"


def _lines(group: tree.Group) -> Iterator[str]:
    yield f"{_front(group)}Group("
    for sentence in group.sentences:
        lines = _lines(sentence) if isinstance(sentence, tree.Group) else [node(sentence)]
        yield from (f"  {line}" for line in lines)
    yield ")"


def node(part: tree.Node) -> str:
    """The text of a part, its meta-data in front."""
    return _front(part) + _bare(part)


def _bare(part: tree.Node) -> str:
    """The text of a part without the meta-data in front of it."""
    match part:
        case tree.Document():
            return presentation(part)
        case tree.Group():
            return " ".join(line.strip() for line in _lines(part)).removeprefix(_front(part))
        case tree.Import(location=location, profile=profile):
            return f"Import({' '.join(iri(part_iri) for part_iri in (location, profile) if part_iri is not None)})"
        case tree.Forall(variables=names, formula=formula):
            return f"Forall {_listed(names)} ({node(formula)})"
        case tree.Implies(conclusion=conclusion, condition=condition):
            return f"{_bare(conclusion)} :- {node(condition)}"
        case tree.And(formulas=formulas) | tree.Or(formulas=formulas):
            return f"{type(part).__name__}({_listed(formulas)})"
        case tree.Exists(variables=names, formula=formula):
            return f"Exists {_listed(names)} ({node(formula)})"
        case tree.Equal(left=left, right=right):
            return f"{_bare(left)} = {node(right)}"
        case tree.Member(instance=left, cls=right):
            return f"{_bare(left)} # {node(right)}"
        case tree.Subclass(sub=left, sup=right):
            return f"{_bare(left)} ## {node(right)}"
        case tree.Frame(object=first, slots=slots):
            inside = " ".join(f"{node(attribute)} -> {node(value)}" for attribute, value in slots)
            return f"{_bare(first)}[{inside}]"
        case tree.Atom() | tree.Expr():
            return f"{_bare(part.op)}({_arguments(part)})"
        case tree.External(content=content):
            return f"External({_bare(content)})"
        case tree.List(items=items, rest=rest):
            return f"List({_listed(items)}{f' | {node(rest)}' if rest else ''})"
        case tree.Var(name=name):
            return f"?{_name(name)}"
        case tree.Const():
            return _constant(part)


def _listed(parts: Iterable[tree.Node]) -> str:
    return " ".join(map(node, parts))


def _arguments(part: tree.Atom | tree.Expr) -> str:
    if not part.names:
        return _listed(part.arguments)
    named_arguments = zip(part.names, part.arguments, strict=True)
    return " ".join(f"{_name(name)} -> {node(value)}" for name, value in named_arguments)


def _name(name: str) -> str:
    return name if _NAME.fullmatch(name) else literal(name)


def _constant(constant: tree.Const) -> str:
    lexical, space = constant.lexical, constant.space
    if space == tree.IRI and not _NOT_IN_IRI.search(lexical):
        return iri(lexical)
    if space == tree.LOCAL and _LOCAL.fullmatch(lexical):
        return f"_{lexical}"
    if space in tree.NUMBERS and re.fullmatch(tree.NUMBERS[space], lexical):
        return lexical
    if space == XSD_STRING:
        return literal(lexical)
    text, at, language = lexical.rpartition("@")
    if space == tree.PLAIN and at and _TAG.fullmatch(language):
        return f"{literal(text)}@{language}"
    return f"{literal(lexical)}^^{iri(space)}"


def _front(part: tree.Node) -> str:
    """The meta-data of a part and of what it begins with, the outer first; an empty one where only an inner is."""
    metas = []
    first: tree.Node | None = part
    while first is not None:
        metas.append(first.meta)
        first = tree.leading(first)
    while metas and metas[-1] is None:
        metas.pop()
    return "".join(f"{_meta(meta)} " for meta in metas)


def _meta(meta: tree.Meta | None) -> str:
    if meta is None:
        return "(* *)"
    frames = [node(frame) for frame in meta.frames]
    conjunction = frames if len(frames) < 2 else [f"And({' '.join(frames)})"]
    return " ".join(["(*", *([_bare(meta.id)] if meta.id else []), *conjunction, "*)"])
