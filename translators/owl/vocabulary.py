"""The names of classes and properties in the axioms of an ontology."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields, is_dataclass
from typing import Any

from squall.lexers.owl import tree
from squall.rdf import Term

_KINDS_OF_PROPERTIES = ("ObjectProperty", "DataProperty", "AnnotationProperty")


def names_in(axioms: Iterable[tree.Axiom]) -> tuple[frozenset[Term], frozenset[Term]]:
    """Returns the classes and the properties that axioms name, also those that are only declared."""
    classes, properties = set[Term](), set[Term]()
    waiting: list[Any] = list(axioms)
    while waiting:
        match waiting.pop():
            case tree.Declaration(kind=kind, name=name):
                if kind in _KINDS_OF_PROPERTIES:
                    properties.add(name)
                elif kind in ("Class", "Datatype"):
                    classes.add(name)
            case tree.Class(name=name) | tree.Datatype(name=name):
                classes.add(name)
            case tree.Property(name=name):
                properties.add(name)
            case tuple() as parts:
                waiting += parts
            case part if is_dataclass(part):
                waiting += (getattr(part, field.name) for field in fields(part) if field.name != "origin")
    return frozenset(classes), frozenset(properties)
