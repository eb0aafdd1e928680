"""Construction of patterns over time from lark's trees (CT-SPARQL, EP-SPARQL, RSP-QL)."""

from __future__ import annotations

from dataclasses import replace

from lark import Token, Tree

from squall.lexers.sparql import tree as q
from squall.lexers.sparql.datasets import MAX_DIGITS, Datasets
from squall.lexers.sparql.expressions import Part, first, has, only, trees, variable_of, word
from squall.model import Variable


class TimePatterns(Datasets):
    """Reads patterns over time. Errors are recorded in the text's `errors`."""

    def time_pattern(self, tree: Tree[Token]) -> q.TimePattern | q.Group:
        """Returns a pattern over time, or the group that it is if it has none of their words."""
        pattern = q.TimePattern(tuple(map(self._conjunction, trees(tree))), self.origin(tree))
        match pattern.branches:
            case (q.Conjunction((q.Conjunct(q.Chain() as chain),)),):
                plain = q.Chain(q.Occurrence(chain.first.group))
                return chain.first.group if chain == plain else pattern
        return pattern

    def _conjunction(self, tree: Tree[Token]) -> q.Conjunction:
        start, *conjuncts = trees(tree)
        return q.Conjunction((q.Conjunct(self._steps(start)), *map(self._conjunct, conjuncts)))

    def _conjunct(self, tree: Tree[Token]) -> q.Conjunct:
        return q.Conjunct(self._steps(only(tree, "chain")), not has(tree, "NOT"))

    def _steps(self, tree: Tree[Token]) -> q.Chain:
        occurrences = list(map(self._occurrence, trees(tree, "occurrence")))
        for tree_of_first in trees(tree, "occurrence")[:1]:
            self._check_first(tree_of_first)
        links = zip(trees(tree, "link"), occurrences[1:], trees(tree, "occurrence")[1:], strict=True)
        absences = [(part, self._absence(part)) for part in trees(tree, "absence")]
        is_preceded = tree.data == "preceded_chain"
        followed = [absence for _, absence in (absences[1:] if is_preceded else absences)]
        bound = first(tree, "bound")
        return q.Chain(
            occurrences[0],
            tuple(self._link(link, occurrence, part) for link, occurrence, part in links),
            absences[0][1] if is_preceded else None,
            followed[0] if followed else None,
            None if bound is None else self._length(bound),
            self._consumption(tree),
            self.origin(tree),
        )

    def _consumption(self, tree: Tree[Token]) -> q.Consumption | None:
        part = first(tree, "consumption")
        return None if part is None else q.Consumption(has(part, "CONSUME"), self._keys(part), self.origin(part))

    def _keys(self, tree: Tree[Token]) -> tuple[Variable, ...] | None:
        """Returns the variables behind ``BY``, or None."""
        keys = first(tree, "partition_keys")
        return None if keys is None else tuple(variable_of(part) for part in keys.children if isinstance(part, Token))

    def _check_first(self, tree: Tree[Token]) -> None:
        """Records an error for each bound on the time since the step before, where there is none."""
        for part in trees(tree, "after", "before", "when"):
            hint = "it stands behind a step that follows a `SEQ`"
            if part.data == "when":
                hint += "; a condition on this step alone is a `FILTER` inside of its braces"
            self.text.fail(f"`{str(part.data).upper()}` compares a step with the one before", self.origin(part), hint)

    def _absence(self, tree: Tree[Token]) -> q.Absence:
        return q.Absence(self.group(only(tree, "group")), self._length(tree), self.origin(tree))

    def _link(self, tree: Tree[Token], occurrence: q.Occurrence, end: Tree[Token]) -> q.Link:
        parts = tuple(
            q.Part(self.group(only(part, "group")), part.data == "contained", self.origin(part)) for part in trees(tree)
        )
        selection = word(tree, "STRICT", "NEAREST", "EACH", "LAST") or ""
        return q.Link(occurrence, selection, parts, self.origin(end))

    def _occurrence(self, tree: Tree[Token]) -> q.Occurrence:
        names = [part for part in tree.children if isinstance(part, Token)]
        after, before, when = first(tree, "after"), first(tree, "before"), first(tree, "when")
        return q.Occurrence(
            self.group(only(tree, "group")),
            self._name(names[0]) if names else None,
            None if after is None else self._duration(trees(after)[0]),
            None if before is None else self._length(before),
            None if when is None else self.expression(when.children[0]),
            self.origin(tree),
            *map(self._iteration, trees(tree, "iteration")),
        )

    def _iteration(self, tree: Tree[Token]) -> q.Iteration:
        least, most = self._bounds(tree)
        condition = first(tree, "while")
        measures = [measure for part in trees(tree, "measures") for measure in trees(part)]
        return q.Iteration(
            least,
            most,
            self._keys(tree),
            has(tree, "CONSECUTIVE"),
            None if condition is None else self.expression(condition.children[0]),
            tuple(map(self._measure, measures)),
            self.origin(tree),
        )

    def _bounds(self, tree: Tree[Token]) -> tuple[int, int | None]:
        """Returns the least and the greatest number of occurrences in a run (None: any)."""
        quantifier = str(tree.children[0])
        if quantifier == "+":
            return 1, None
        texts = [text.strip() for text in quantifier[1:-1].split(",")]
        if any(len(text) > MAX_DIGITS for text in texts):
            self.text.fail("this number is too large", self.origin(tree.children[0]), f"at most {MAX_DIGITS} digits")
            return 1, None
        bounds = [int(text) if text else None for text in texts]
        least, most = bounds[0] or 0, bounds[-1]
        if least == 0:
            hint = "write at least 1: what may be absent is `OR`, or a step less"
            self.text.fail("a run has one occurrence at least", self.origin(tree.children[0]), hint)
        elif most is not None and most < least:
            hint = f"write `{{{most},{least}}}`"
            self.text.fail(f"from {least} to {most} there is no number", self.origin(tree.children[0]), hint)
        return max(least, 1), most

    def _measure(self, tree: Tree[Token]) -> q.Measure:
        *parts, name = tree.children
        if isinstance(parts[0], Tree):
            aggregate = self.expression(parts[0])
            assert isinstance(aggregate, q.Aggregate)
        else:
            kind, inner = parts
            aggregate = q.Aggregate(str(kind).upper(), self.expression(inner), origin=self.origin(tree))
        return q.Measure(aggregate, variable_of(name), self.origin(tree))

    # RSP-QL

    def event(self, tree: Tree[Token]) -> q.Event:
        """Returns ``EVENT ?name ON window { ... }``."""
        name, on = tree.children[:2]
        return q.Event(self._name(name), self.iri(on), self.group(only(tree, "group")), self.origin(tree))

    def event_chain(self, tree: Tree[Token]) -> q.EventChain:
        """Returns events one after the other, ``?a SEQ ?b WITHIN length``."""
        operands = tuple(map(self._event_operand, trees(tree, "event_operand")))
        within = self._length(tree) if trees(tree, "duration") else None
        return q.EventChain(operands, within, self._consumption(tree), self.origin(tree))

    def _event_operand(self, tree: Tree[Token]) -> q.EventOperand:
        chain = first(tree, "event_chain")
        selection = word(tree, "FIRST", "LAST", "EVERY") or ""
        of = self._name(tree.children[-1]) if chain is None else self.event_chain(chain)
        return q.EventOperand(of, selection, self.origin(tree))

    def _name(self, part: Part) -> q.StepName:
        return q.StepName(str(part)[1:], origin=self.origin(part))

    # EP-SPARQL

    def events(self, tree: Tree[Token]) -> q.Group:
        """Returns the group of a query, which is a pattern over time, maybe with filters behind it."""
        element = self.event_pattern(only(tree, "event_pattern"))
        filters = [q.Filter(self.expression(part.children[0]), self.origin(part)) for part in trees(tree, "filter")]
        if isinstance(element, q.Group) and not filters:
            return element
        return q.Group(without_braces((element, *filters)), self.origin(tree))

    def event_pattern(self, tree: Tree[Token]) -> q.Element:
        """Returns a pattern over time, or the group or union of SPARQL that it is."""
        start, *parts = trees(tree)
        first, origin = self.group(start), self.origin(tree)
        operands = tuple(q.Operand(OPERATORS[part.data], self._operand(part), self.origin(part)) for part in parts)
        groups = (first, *(operand.to.group for operand in operands))
        if all(operand.operator == "UNION" for operand in operands) and not q.time_patterns(groups):
            return q.Union(groups, origin) if operands else first
        return q.event_pattern(first, operands, origin) if operands else first

    def _operand(self, tree: Tree[Token]) -> q.Occurrence:
        return q.Occurrence(self.group(only(tree, "group")), origin=self.origin(tree))

    def _length(self, tree: Tree[Token]) -> int:
        """Returns a length of time (integer ms), with an error if it is 0."""
        (part,) = trees(tree, "duration")
        length = self._duration(part)
        if not length:
            self.text.fail("this length of time is 0", self.origin(part), "it has to be more than 0")
        return length


OPERATORS = {
    "seq": "SEQ", "equals": "EQUALS", "optional_seq": "OPTIONALSEQ", "equals_optional": "EQUALSOPTIONAL",
    "both": "AND", "either": "UNION",
}  # fmt: skip
"""The operators of EP-SPARQL by the rules of its grammar."""


def as_events(query: q.Query) -> q.Query:
    """Returns a query of EP-SPARQL whose group is a pattern over time: a single step if it has no operator."""
    where = query.where
    if where is None or q.is_composite(where):
        return query
    groups = [element for element in where.elements if not isinstance(element, q.Filter)]
    if len(groups) == 1 and isinstance(groups[0], q.Group):
        step, filters = groups[0], [element for element in where.elements if isinstance(element, q.Filter)]
    else:
        step, filters = where, []
    pattern = q.event_pattern(step, origin=step.origin)
    return replace(query, where=q.Group((pattern, *filters), where.origin))


def without_braces(elements: tuple[q.Element, ...]) -> tuple[q.Element, ...]:
    """Returns the elements of a group without braces around its pattern over time (EP-SPARQL).

    So its filters are in the group of the pattern, ``{ { A } SEQ { B } } FILTER(getDURATION() < ...)``.
    """
    groups = [element for element in elements if not isinstance(element, q.Filter)]
    match groups:
        case [q.Group(elements=inner)] if any(isinstance(element, q.EventPattern) for element in inner):
            return (*inner, *(element for element in elements if isinstance(element, q.Filter)))
    return elements
