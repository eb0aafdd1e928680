"""Which rules feed which, and whether a program can be stratified (Apt, Blair and Walker 1988; semantics.md 3)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import networkx

from squall.errors import Origin, TranslatorError, raise_all
from squall.rdf import Term
from squall.system import AtomPattern, Bind, Call, Expression, FactPattern, Pattern, System, Test, Without, rules

Shape = tuple[Term | None, ...]
"""The constants of a pattern or a template, None for what varies; an atom starts with its relation, marked ``@``."""


def shape(pattern: FactPattern) -> Shape:
    """The shape of a pattern."""
    match pattern:
        case Pattern():
            return tuple(slot if isinstance(slot, str) else None for slot in pattern.slots)
        case AtomPattern(relation=relation):
            return (relation_mark(relation), *(slot if isinstance(slot, str) else None for slot in pattern.slots))


def relation_mark(relation: Term) -> Term:
    """The first cell of an atom's row: no term's text starts like it."""
    return Term(f"@{relation}")


def overlap(left: Shape, right: Shape) -> bool:
    """Whether some fact has both shapes. Literals agree by value (semantics.md 5)."""
    return len(left) == len(right) and _is_atom(left) == _is_atom(right) and all(map(_agree, left, right))


def _is_atom(made: Shape) -> bool:
    return made[0] is not None and made[0][0] == "@"


def _agree(left: Term | None, right: Term | None) -> bool:
    if left is None or right is None or left == right:
        return True
    if left[0] != '"' or right[0] != '"':
        return False
    from squall.functions.values import value_key

    return value_key(left) == value_key(right)


def is_timed(expression: Expression) -> bool:
    """Whether an expression depends on the time at which it is evaluated."""
    from squall import functions

    match expression:
        case Call(function=function, arguments=arguments):
            return functions.lookup(function).timed or any(map(is_timed, arguments))
        case _:
            return False


def stratify(system: System) -> None:
    """Raises TranslatorError, or Errors, for each way in which rules depend on their own negation.

    The same holds for a function of time (``now``): inside a recursion its value would depend on how often it is taken.
    """
    program = list(rules(system))
    graph: networkx.DiGraph = networkx.DiGraph()
    graph.add_nodes_from(range(len(program)))
    strict: dict[tuple[int, int], tuple[str, Origin | None]] = {}
    feeding = _Heads(program)
    for reader, rule in enumerate(program):
        timed = any(is_timed(part.expression) for part in rule.predicates if isinstance(part, Test | Bind))
        for pattern in rule.joinables:
            for writer in feeding.of(pattern):
                graph.add_edge(writer, reader)
                if timed:
                    strict.setdefault((writer, reader), ("takes the time (`now`) of", rule.origin))
        for negation in (part for part in rule.predicates if isinstance(part, Without)):
            for pattern in negation.joinables:
                for writer in feeding.of(pattern):
                    graph.add_edge(writer, reader)
                    strict[writer, reader] = ("negates", negation.origin or rule.origin)
    raise_all(list(_violations(program, graph, strict)))


class _Heads:
    """The rules that make facts of a given shape, looked up by predicate."""

    def __init__(self, program: Sequence[System]) -> None:
        self.by_predicate: dict[Term | None, list[tuple[int, Shape]]] = {}
        for number, rule in enumerate(program):
            for consequence in rule.consequences if rule.reentrant else ():
                for template in consequence.template:
                    made = shape(template)
                    self.by_predicate.setdefault(predicate(made), []).append((number, made))

    def of(self, pattern: FactPattern) -> Iterator[int]:
        wanted = shape(pattern)
        constant = predicate(wanted)
        groups: Iterable[list[tuple[int, Shape]]]
        if constant is None:
            groups = self.by_predicate.values()
        else:
            groups = (self.by_predicate.get(key, []) for key in (constant, None))
        for group in groups:
            yield from (number for number, made in group if overlap(made, wanted))


def predicate(made: Shape) -> Term | None:
    """The constant by which shapes are looked up: those that differ in it have no fact in common, None apart."""
    return made[0] if _is_atom(made) else made[1]


def _violations(
    program: Sequence[System], graph: networkx.DiGraph, strict: dict[tuple[int, int], tuple[str, Origin | None]]
) -> Iterator[TranslatorError]:
    for component in networkx.strongly_connected_components(graph):
        inner = graph.subgraph(component)
        for (writer, reader), (verb, origin) in strict.items():
            if writer in component and reader in component:
                cycle = networkx.shortest_path(inner, reader, writer)
                names = [f"`{program[number].name}`" for number in [*cycle, reader]]
                yield TranslatorError(
                    f"rule `{program[reader].name}` {verb} what depends on it: {' -> '.join(names)}",
                    origin,
                    "let the rule read something that does not follow from its own conclusion",
                )
