"""Construction of the trees of queries and updates from lark's trees."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from lark import Token, Tree

from squall import functions
from squall.errors import Origin, did_you_mean
from squall.lexers.sparql import tree as q
from squall.lexers.sparql.expressions import Part, Parts, first, has, is_iri, only, trees, variable_of, word
from squall.lexers.sparql.sequences import TimePatterns, as_events, without_braces
from squall.lexers.sparql.triples import Triples
from squall.lexers.text import Text
from squall.model import Variable
from squall.rdf import Term, blank, iri, iri_text


class Builder(TimePatterns):
    """Reads lark's tree from the top down. Errors are recorded in the text's `errors`.

    Attributes:
        is_of_events: Whether the pattern of each query is one over time (EP-SPARQL).
    """

    def __init__(self, text: Text, base: str, prefixes: Mapping[str, str], is_of_events: bool = False) -> None:
        super().__init__(text, base, prefixes)
        self.is_of_events = is_of_events

    def program(self, tree: Tree[Token]) -> q.Program:
        """Returns the program of a tree whose name is ``start``."""
        streaming = first(tree, "streaming")
        blocks = trees(tree, "register") if streaming else (tree,)
        statements = tuple(statement for block in blocks for statement in self._statements(block))
        return q.Program(statements, self.text.name, None if streaming is None else self._streaming(streaming))

    def _statements(self, tree: Tree[Token]) -> Iterator[q.Statement]:
        """Yields the statements of a program, or the one in a block, whose prefixes are its own."""
        base, prefixes = self.names.base, dict(self.names.prefixes)
        registration = None
        reasoning: tuple[q.ReasoningMode, ...] = ()
        for part in trees(tree):
            match part.data:
                case "base":
                    self.names.base = self.iri(part.children[0])[1:-1]
                case "prefix":
                    self._prefix(part)
                case "query_id":
                    registration = q.Registration("QUERY", str(part.children[0]), origin=self.origin(part))
                case "registration":
                    registration = self._registration(part)
                case "reasoning":
                    reasoning = tuple(q.ReasoningMode(str(mode), self.origin(mode)) for mode in part.children)
                case "select" | "construct" | "construct_where" | "describe" | "ask":
                    body = as_events(self._query(part)) if self.is_of_events else self._query(part)
                    self._check_events(part, body)
                    registered = self._registered(registration, part)
                    yield q.Statement(body, registered, self.names.base, reasoning, tuple(self.bare_lengths))
                case _:
                    yield q.Statement(self._operation(part), None, self.names.base)
        self.names.base, self.names.prefixes = base, prefixes

    def _prefix(self, tree: Tree[Token]) -> None:
        prefix, namespace = tree.children
        self.names.prefixes[str(prefix)[:-1]] = self.iri(namespace)[1:-1]

    # Queries

    def _check_events(self, tree: Tree[Token], query: q.Query) -> None:
        """Records an error for the clause of a stream of events in a query without events (CQELS-QL)."""
        if not q.event_sequences(query):
            for part in trees(tree, "from_events"):
                hint = "write the window where the stream is read: `STREAM <stream> [RANGE 10s] { ... }`"
                self.text.fail("`FROM STREAM` is of a query with `SEQ`", self.origin(part), hint)

    def _query(self, tree: Tree[Token]) -> q.Query:
        match tree.data:
            case "select" | "sub_select":
                return self._select(tree)
            case "construct":
                return self._construct(tree, self._quads(only(tree, "template")), self._where(tree))
            case "construct_where":
                return self._construct_where(tree)
            case "describe":
                return self._describe(tree)
            case _:
                dataset, modifiers, values = self._parts(tree)
                return q.AskQuery(self._where(tree), dataset, modifiers, values, self.origin(tree))

    def _parts(self, tree: Tree[Token]) -> tuple[tuple[q.DatasetClause, ...], q.Modifiers, q.Values | None]:
        values = first(tree, "values")
        return self._dataset(tree), self._modifiers(tree), None if values is None else self._values(values)

    def _where(self, tree: Tree[Token]) -> q.Group:
        events = first(tree, "events")
        return self.group(only(tree, "group")) if events is None else self.events(events)

    def _select(self, tree: Tree[Token]) -> q.SelectQuery:
        items = None if has(tree, "STAR") else tuple(map(self._item, trees(tree, "item")))
        quantifier = word(tree, "DISTINCT", "REDUCED") or ""
        dataset, modifiers, values = self._parts(tree)
        return q.SelectQuery(items, self._where(tree), quantifier, dataset, modifiers, values, self.origin(tree))

    def _item(self, tree: Tree[Token]) -> q.SelectItem:
        *expressions, variable = tree.children
        expression = self.expression(expressions[0]) if expressions else None
        return q.SelectItem(variable_of(variable), expression, self.origin(tree))

    def _construct(self, tree: Tree[Token], template: tuple[q.QuadPattern, ...], where: q.Group) -> q.ConstructQuery:
        dataset, modifiers, values = self._parts(tree)
        return q.ConstructQuery(template, where, dataset, modifiers, values, self.origin(tree))

    def _construct_where(self, tree: Tree[Token]) -> q.ConstructQuery:
        """Returns the query ``CONSTRUCT WHERE { triples }`` (SPARQL 1.1 Query, section 16.2.4)."""
        pattern = only(tree, "short_template")
        template = self._quads(pattern)
        blocks = self._block(trees(pattern)) if template else ()
        return self._construct(tree, template, q.Group(blocks, self.origin(pattern)))

    def _describe(self, tree: Tree[Token]) -> q.DescribeQuery:
        names = [self.name(part) for part in tree.children if isinstance(part, Token) and part.type != "STAR"]
        where = self._where(tree) if first(tree, "group", "events") else None
        dataset, modifiers, values = self._parts(tree)
        resources = None if has(tree, "STAR") else tuple(names)
        return q.DescribeQuery(resources, where, dataset, modifiers, values, self.origin(tree))

    def _modifiers(self, tree: Tree[Token]) -> q.Modifiers:
        parts = {str(part.data): part for part in trees(tree)}
        aggregates = tuple(map(self._aggregates, trees(tree, "aggregates")))
        if not aggregates and not parts.keys() & {"group_by", "having", "order_by", "limit", "offset"}:
            return q.NO_MODIFIERS
        group, having, order = (parts[name].children if name in parts else [] for name in _CLAUSES)
        return q.Modifiers(
            aggregates,
            tuple(map(self._group_condition, group)),
            tuple(map(self.expression, having)),
            tuple(map(self._order_condition, order)),
            _count(parts.get("limit")),
            _count(parts.get("offset")),
        )

    def _group_condition(self, part: Part) -> q.GroupCondition:
        assert isinstance(part, Tree)
        expression, *names = part.children
        return q.GroupCondition(
            self.expression(expression), variable_of(names[0]) if names else None, self.origin(part)
        )

    def _order_condition(self, part: Part) -> q.OrderCondition:
        assert isinstance(part, Tree)
        return q.OrderCondition(self.expression(part.children[-1]), has(part, "DESC"), self.origin(part))

    def _aggregates(self, tree: Tree[Token]) -> q.AggregateClause:
        additions = tuple(map(self._addition, trees(tree, "addition")))
        filters = tuple(
            q.Filter(self.expression(part.children[0]), self.origin(part)) for part in trees(tree, "filter")
        )
        return q.AggregateClause(additions, filters, self.origin(tree))

    def _addition(self, tree: Tree[Token]) -> q.Addition:
        variable, column, keys = tree.children
        assert isinstance(keys, Tree)
        grouped = tuple(map(variable_of, keys.children))
        return q.Addition(variable_of(variable), self._column(column), grouped, self.origin(tree))

    def _column(self, part: Part) -> q.Aggregate:
        if isinstance(part, Tree):
            return self._aggregate_by_iri(part) if part.data == "call" else self._aggregate(part)
        if part.upper() != "COUNT":
            hint = f"write `{part.upper()}(?variable)`"
            self.text.fail(f"`{part}` needs to know of what", self.origin(part), hint)
        return q.Aggregate(part.upper(), origin=self.origin(part))

    def _aggregate_by_iri(self, tree: Tree[Token]) -> q.Aggregate:
        call = self._call(tree)
        if isinstance(call, q.Aggregate):
            return call
        iris = [aggregate.iri for aggregate in functions.aggregates() if ":" in aggregate.iri]
        hint = did_you_mean(iri_text(call.function), iris) or "`squall list aggregates` shows those that there are"
        self.text.fail(f"there is no aggregate {call.function}", self.origin(tree), hint)
        return q.Aggregate(call.function)

    # Updates

    def _operation(self, tree: Tree[Token]) -> q.Operation:
        origin, silent = self.origin(tree), has(tree, "SILENT")
        match tree.data:
            case "insert_data":
                return q.InsertData(self._quads(only(tree, "quads")), origin)
            case "delete_data":
                return q.DeleteData(self._quads(only(tree, "quads")), origin)
            case "delete_where":
                return self._delete_where(tree)
            case "modify":
                return self._modify(tree)
            case "load":
                document, *into = [self.iri(part) for part in tree.children if is_iri(part)]
                return q.Load(document, into[0] if into else None, silent, origin)
            case "manage":
                action, *_, graph = tree.children
                return q.Manage(str(action).upper(), self._graph(graph), silent, origin)
            case _:
                action, *_, source, target = tree.children
                return q.Transfer(str(action).upper(), self._graph(source), self._graph(target), silent, origin)

    def _graph(self, part: Part) -> str:
        return self.iri(part) if is_iri(part) else str(part).upper()

    def _modify(self, tree: Tree[Token]) -> q.Modify:
        delete, insert = first(tree, "delete"), first(tree, "insert")
        with_ = first(tree, "with")
        return q.Modify(
            self._quads(only(delete, "quads")) if delete else (),
            self._quads(only(insert, "quads")) if insert else (),
            self._where(tree),
            self.iri(with_.children[0]) if with_ else None,
            tuple(map(self._graph_clause, trees(tree, "using"))),
            self.origin(tree),
        )

    def _delete_where(self, tree: Tree[Token]) -> q.Modify:
        """Returns the operation ``DELETE WHERE { quads }`` (SPARQL 1.1 Update, section 3.1.3.3)."""
        quads = only(tree, "quads")
        elements: list[q.Element] = []
        for part in _runs(quads.children):
            if isinstance(part, Tree):
                inner = q.Group(self._block(trees(part, "triples")), self.origin(part))
                elements.append(q.Graph(self.name(part.children[0]), inner, self.origin(part)))
            else:
                elements.extend(self._block(part))
        return q.Modify(self._quads(quads), (), q.Group(tuple(elements), self.origin(quads)), origin=self.origin(tree))

    def _quads(self, tree: Tree[Token], graph: q.Slot | None = None) -> tuple[q.QuadPattern, ...]:
        """Returns the triples of a template or of data, each with its graph."""
        quads: list[q.QuadPattern] = []
        for part in trees(tree):
            if part.data == "quads_of":
                quads.extend(self._quads(part, self.name(part.children[0])))
                continue
            for triple in Triples(self, blank).read(part):
                if triple.start or triple.end:
                    hint = "ask for the times in the pattern, and insert what they are"
                    self.text.fail("a template has no begin and no end of facts", triple.origin, hint)
                verb = self._plain(triple.predicate, triple.origin)
                quads.append(q.QuadPattern(triple.subject, verb, triple.object, graph, triple.origin))
        return tuple(quads)

    def _plain(self, verb: q.Path | Variable, origin: Origin) -> q.Slot:
        if isinstance(verb, str | Variable):
            return verb
        self.text.fail(
            "a property path cannot be in a template", origin, "write one predicate, or a triple for each step"
        )
        return iri("")

    # Patterns

    def group(self, tree: Tree[Token]) -> q.Group:
        """Returns a group, ``{ ... }``."""
        elements: list[q.Element] = []
        for part in _runs(tree.children):
            elements.extend([self._element(part)] if isinstance(part, Tree) else self._block(part))
        return q.Group(without_braces(tuple(elements)), self.origin(tree))

    def _block(self, parts: Sequence[Tree[Token]]) -> tuple[q.TriplesBlock, ...]:
        """Returns the triples of adjacent trees as one block, or nothing if there are none."""
        triples = [q.TriplePattern(*triple) for part in parts for triple in Triples(self, _unnamed).read(part)]
        return (q.TriplesBlock(tuple(triples), self.origin(parts[0], parts[-1])),) if triples else ()

    def _element(self, tree: Tree[Token]) -> q.Element:
        # In one piece: a flat match, the construction of each element.
        origin = self.origin(tree)
        match tree.data:
            case "union":
                branches = tuple(map(self.group, trees(tree)))
                return branches[0] if len(branches) == 1 else q.Union(branches, origin)
            case "time_pattern":
                return self.time_pattern(tree)
            case "event_pattern":
                return self.event_pattern(tree)
            case "optional":
                return q.Optional(self._where(tree), origin)
            case "minus":
                return q.Minus(self._where(tree), origin)
            case "graph":
                return q.Graph(self.name(tree.children[0]), self._where(tree), origin)
            case "window":
                return q.Window(self.name(tree.children[0]), self._where(tree), origin)
            case "stream_window":
                return self._stream_window(tree, origin)
            case "event":
                return self.event(tree)
            case "match":
                return q.Match(self.event_chain(only(tree, "event_chain")), origin)
            case "service":
                return q.Service(self.name(tree.children[-2]), self._where(tree), has(tree, "SILENT"), origin)
            case "filter":
                return q.Filter(self.expression(tree.children[0]), origin)
            case "bind":
                expression, variable = tree.children
                return q.Bind(self.expression(expression), variable_of(variable), origin)
            case "values":
                return self._values(tree)
            case _:
                return q.SubSelect(self._select(tree), origin)

    def _stream_window(self, tree: Tree[Token], origin: Origin) -> q.StreamWindow:
        (name,) = (part for part in tree.children if isinstance(part, Token))
        window = self.stream_range(trees(tree)[0])
        return q.StreamWindow(self.name(name), window, self._where(tree), origin)

    def _values(self, tree: Tree[Token]) -> q.Values:
        variables = tuple(variable_of(part) for part in tree.children if isinstance(part, Token))
        rows = trees(tree)
        for row in rows:
            if len(row.children) != len(variables):
                count_text = f"{len(row.children)} value{'' if len(row.children) == 1 else 's'}"
                hint = f"there are {len(variables)} variables; write `UNDEF` where there is no value"
                self.text.fail(f"this row of `VALUES` has {count_text}", self.origin(row), hint)
        return q.Values(variables, tuple(tuple(map(self._value, row.children)) for row in rows), self.origin(tree))

    def _value(self, part: Part) -> Term | None:
        if isinstance(part, Token) and part.type == "UNDEF":
            return None
        term = self.term(part)
        assert isinstance(term, str)  # the grammar has no variables here
        return term


_CLAUSES = ("group_by", "having", "order_by")


def _unnamed(label: str) -> Variable:
    """Returns the variable for a blank node of a pattern."""
    return Variable(f"_:{label}")


def _count(tree: Tree[Token] | None) -> int | None:
    """Returns the number of a LIMIT or OFFSET. No answer has as many solutions as 18 digits can count."""
    return None if tree is None else int(str(tree.children[0]).lstrip("0")[:18] or "0")


def _runs(parts: Parts) -> Iterator[Tree[Token] | list[Tree[Token]]]:
    """Yields the parts, with adjacent triples as one list."""
    run: list[Tree[Token]] = []
    for part in parts:
        assert isinstance(part, Tree)
        if part.data == "triples":
            run.append(part)
            continue
        if run:
            yield run
            run = []
        yield part
    if run:
        yield run
