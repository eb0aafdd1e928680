"""Construction of patterns over time from lark's trees (CT-SPARQL)."""

from __future__ import annotations

from lark import Token, Tree

from squall.lexers.sparql import tree as q
from squall.lexers.sparql.datasets import Datasets
from squall.lexers.sparql.expressions import first, has, only, trees, word


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
            self.origin(tree),
        )

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
            q.StepName(str(names[0])[1:], self.origin(names[0])) if names else None,
            None if after is None else self._duration(trees(after)[0]),
            None if before is None else self._length(before),
            None if when is None else self.expression(when.children[0]),
            self.origin(tree),
        )

    def _length(self, tree: Tree[Token]) -> int:
        """Returns a length of time (integer ms), with an error if it is 0."""
        (part,) = trees(tree, "duration")
        length = self._duration(part)
        if not length:
            self.text.fail("this length of time is 0", self.origin(part), "it has to be more than 0")
        return length
