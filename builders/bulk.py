"""Runs plans in which nothing ends and nothing is taken back instant by instant, over rows without their times.

What begins at one instant is worked off together, so that rows need not say when they are valid; and facts are kept by
predicate (vertical partitioning: Abadi et al., "Scalable Semantic Web Data Management", VLDB 2007), so that a join on
predicates takes all facts of one at once. This pays where instants are large: static data, whole documents. A `Machine`
can take over at any time.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, pairwise, repeat, starmap
from operator import itemgetter
from typing import Any, NamedTuple, cast

from squall import functions
from squall import operators as ops
from squall.builders.alpha import Alpha
from squall.builders.closure import Closure as Pairs
from squall.builders.network import Address, Network
from squall.builders.rows import deliver, ends, plain
from squall.builders.rows.code import bare, column_names, compiled
from squall.builders.rows.deliver import GrowingDeliver, output
from squall.builders.rows.entries import Entry, Row, is_rdf, key_of, row_fact
from squall.builders.rows.plain import Step
from squall.builders.rows.read import seen, unprepared
from squall.operators import columns_of, is_stateful, is_timed
from squall.plan import Node, Plan
from squall.rdf import ALWAYS, FOREVER, Event, Fact, Term, Triple
from squall.stages import Output

TAKEN = (
    ops.Read, ops.Unit, ops.Match, ops.Where, ops.Test, ops.Extend, ops.Apply, ops.Project, ops.Union, ops.Join,
    ops.Distinct, ops.Closure, ops.Emit, ops.Deliver,
)  # fmt: skip
"""The operators of which this knows what they do to rows without times."""

_new = cast(Callable[[type, Sequence[Any]], Any], tuple.__new__)
_FIRST = itemgetter(0)
_FANNED = (ops.Match, ops.Where)
"""What is fed by tables of constants."""


class Part(NamedTuple):
    """Rows that come together.

    key: what all have in the column that is known of their node (None: of none); of facts, their predicate, or the mark
    of an atom's relation with the number of cells. rule: the name of one that has made them.
    """

    key: Hashable
    rows: Sequence[Row]
    rule: str = ""


def fits(plan: Plan) -> bool:
    """Whether all of a plan can be done so."""
    return (
        not plan.retractable
        and not ends(plan)
        and len(plan.deliveries) == 1
        and isinstance(deliver(*plan.delivery, plan), GrowingDeliver)
        and all(_takes(node, plan) for node in plan.nodes)
    )


def _takes(node: Node, plan: Plan) -> bool:
    match node.op:
        case ops.Read(source=source):
            return not source.removals
        case ops.Distinct(by=by):  # rows that it takes for one are the same, a fact's rule apart
            inputs = (plan.by_id[edge.node] for edge in node.inputs)
            return all(by == plan.widths[one.id] - isinstance(one.op, ops.Emit) for one in inputs)
        case _:
            return isinstance(node.op, TAKEN) and not is_timed(node.op)


class Bulk(Network[Part]):
    """A plan at work, an instant at a time: `read`, `run`, `flush`."""

    def __init__(self, plan: Plan) -> None:
        super().__init__(plan)
        self.keyed = {node.id: _keyed(node, plan) for node in plan.nodes}
        self.steps = {node.id: self._step(node) for node in plan.nodes if not is_stateful(node.op)}
        self.alphas = {node.id: Alpha(plan, node.id, timed=False) for node in plan.nodes if self.feeds_matches(node)}
        self.targets = {node.id: self._targets(node.id) for node in plan.nodes}
        self.switches = {node.id: self.switch(node.id) for node in plan.nodes}
        self.operators = {node.id: self._operator(node) for node in plan.nodes if is_stateful(node.op)}
        self.reads = {node.id: node.op.source for node in plan.nodes if isinstance(node.op, ops.Read)}
        self.given = {id: _Set() for id in self.reads}
        """The facts that have been read."""
        delivered, _ = plan.delivery
        self.delivered = cast(_Deliver, self.operators[delivered.id])

    def _operator(self, node: Node) -> _Join | _Set | _Told | _Closure | _Deliver:
        match node.op:
            case ops.Join():
                widths = (self.plan.widths[node.inputs[0].node], self.plan.widths[node.inputs[1].node])
                return _Join(node.op, widths, (self._lazy(node, 0), self._lazy(node, 1)))
            case ops.Closure():
                return _Closure()
            case ops.Distinct():
                return _Told() if self._are_unique(node) else _Set()
            case _:
                once = {port for port, edge in enumerate(node.inputs) if self._tells_once(self.plan.by_id[edge.node])}
                return _Deliver(cast(GrowingDeliver, deliver(*self.plan.delivery, self.plan)), once)

    def _are_unique(self, node: Node) -> bool:
        """Whether a set is of what matches make of facts each of which comes once, or once for each node that makes it:
        then nothing is gained by looking for duplicates again."""
        inputs = [self.plan.by_id[edge.node] for edge in node.inputs]
        makers = [self.plan.by_id[edge.node].op for match in inputs for edge in match.inputs]
        return all(_tells_facts_apart(one.op) for one in inputs) and all(
            isinstance(maker, ops.Read | ops.Distinct) for maker in makers
        )

    def _tells_once(self, node: Node) -> bool:
        """Whether a node is a set that looks for duplicates."""
        return isinstance(node.op, ops.Distinct) and not self._are_unique(node)

    def _step(self, node: Node) -> Step:
        """What a node without memory does to rows."""
        width = self.plan.widths[node.inputs[0].node] if node.inputs else 0
        match node.op:
            case ops.Test():
                return plain.test(node.op)
            case ops.Extend():
                return plain.extend(node.op, timed=False)
            case ops.Apply():
                return plain.apply(node.op, timed=False)
            case ops.Project(columns=columns):
                if self._leaves_few(node):
                    return _beside_key(cast(tuple[int, int], columns), cast(int, self.keyed[node.inputs[0].node]))
                return plain.project(node.op, width, timed=False)
            case ops.Emit(template=template, rules=rules):
                return plain.emit(template, rules, width, self.plan.unbound[node.inputs[0].node], timed=False)
            case _:
                return plain.same

    def _leaves_few(self, node: Node) -> bool:
        """Whether a projection is on the key of parts and one other column."""
        columns = cast(ops.Project, node.op).columns
        return self.keyed[node.inputs[0].node] in columns and len({*columns} - {None}) == len(columns) == 2

    # Where rows go

    def _targets(self, id: str) -> tuple[_Target, ...]:
        nodes = ((self.plan.by_id[consumer], port) for consumer, port in self.plan.consumers[id])
        return tuple(self._target(node, port) for node, port in nodes if not isinstance(node.op, _FANNED))

    def _target(self, node: Node, port: int) -> _Target:
        """Through nodes without memory, as long as these feed one node alone, in one go."""
        steps: list[Step] = []
        while not is_stateful(node.op):
            steps.append(self.steps[node.id])
            consumers = self.plan.consumers[node.id]
            following = self.plan.by_id[consumers[0][0]] if len(consumers) == 1 else None
            if isinstance(node.op, ops.Emit) or following is None or isinstance(following.op, _FANNED):
                return _Target(plain.chained(steps), None, node.id, False)
            node, port = following, consumers[0][1]
        port = port if isinstance(node.op, ops.Join | ops.Deliver) else 0
        return _Target(plain.chained(steps), (node.id, port), node.id, self._lazily(node, port))

    def _lazily(self, node: Node, port: int) -> bool:
        """Whether an input of a join is on just the column that is known of its rows."""
        if not isinstance(node.op, ops.Join):
            return False
        return [pair[port] for pair in node.op.on] == [self.keyed[node.inputs[port].node]]

    def _lazy(self, node: Node, port: int) -> Step | None:
        """What has still to be done to the rows of an input of a join when they are used; None: they are ready."""
        if not self._lazily(node, port):
            return None
        nodes: list[Node] = []
        inner = self.plan.by_id[node.inputs[port].node]
        while not is_stateful(inner.op) and not isinstance(inner.op, _FANNED):
            if len(self.plan.consumers[inner.id]) > 1:
                break  # its rows are ready for all who take them
            nodes.insert(0, inner)
            inner = self.plan.by_id[inner.inputs[0].node]
        return plain.chained(self._in_good_order(nodes)) or plain.same

    def _in_good_order(self, nodes: Sequence[Node]) -> list[Step]:
        """The steps of nodes that feed each other. Where a projection leaves few of the rows that come together, a test
        that needs no more than these waits for it."""
        steps = [self.steps[node.id] for node in nodes]
        for place, (first, second) in enumerate(pairwise(nodes)):
            if isinstance(first.op, ops.Test) and isinstance(second.op, ops.Project) and self._leaves_few(second):
                places = {column: place for place, column in enumerate(second.op.columns) if column is not None}
                if _is_pure(first.op.expression) and places.keys() >= set(columns_of(first.op.expression)):
                    test = plain.test(ops.Test(ops.moved_call(first.op.expression, places)))
                    steps[place : place + 2] = steps[place + 1], test
        return steps

    # What comes in

    def start(self) -> None:
        """Puts in what holds without any input: the bodies of axioms."""
        for node in self.plan.nodes:
            if isinstance(node.op, ops.Unit):
                self.answer(node.id, Part(None, [()]))

    def read(self, event: Event) -> None:
        """Puts the facts of an event into the nodes that read it. Raises SourceError for a removal."""
        for id, source in self.reads.items():
            if source.reads(event.stream, event.graph, event.is_static):
                if event.removed:
                    raise unprepared(event)
                facts = event.facts if source.is_plain else seen(source, event)
                for part in self.given[id].take(0, starmap(Part, self._by_key(id, facts).items())):
                    self.answer(id, part)

    def _by_key(self, id: str, facts: Iterable[Fact]) -> dict[Hashable, list[Row]]:
        """The facts that something is done with, by key."""
        alpha = self.alphas.get(id)
        wanted = alpha.predicates if alpha else {}
        every = bool(self.targets[id]) or (alpha is not None and alpha.anything is not None)
        given: defaultdict[Any, list[Any]] = defaultdict(list)
        for fact in facts:
            given[fact[1]].append(fact)  # an atom under its arguments
        found: dict[Hashable, list[Row]] = {}
        for key, part in given.items():
            if isinstance(key, tuple):
                for fact in part:
                    row = (f"@{fact.relation}", *fact.arguments)
                    found.setdefault((row[0], len(row)), []).append(row)
            elif every or key in wanted:
                found[key] = part
        return found

    def answer(self, id: str, part: Part) -> None:
        """Hands on what a node has made."""
        if not part.rows:
            return
        if id in self.alphas:
            for match, matched in self.alphas[id].bare(part.key, part.rows):
                self.answer(match, Part(None if self.keyed[match] is None else part.key, matched))
        for step, address, inner, lazy in self.targets[id]:
            if lazy:
                self.receive(cast(Address, address), part)
                continue
            rows: Sequence[Row] = step(part.rows) if step else part.rows
            if address is None:
                self._made(inner, Part(part.key, rows, part.rule))
            elif rows:
                self.receive(address, Part(None if self.keyed[inner] is None else part.key, rows, part.rule))

        for column, table in self.switches[id].items():
            self._switched(column, table, part)

    def _switched(self, column: int, table: Mapping[Term, Sequence[str]], part: Part) -> None:
        hits: dict[Term, list[Row]] = {}
        for row in part.rows:
            if (term := cast(Term, row[column])) in table:
                hits.setdefault(term, []).append(row)
        for term, rows in hits.items():
            for consumer in table[term]:
                self.answer(consumer, part._replace(rows=rows))

    def _made(self, id: str, part: Part) -> None:
        """Hands on what a node without memory has made; facts by their keys."""
        op = self.plan.by_id[id].op
        if not isinstance(op, ops.Emit):
            self.answer(id, part._replace(key=None) if self.keyed[id] is None else part)
            return
        rule = op.rules[0] if op.rules else ""
        for key, rows in _keys(op.template, part.rows).items():
            self.answer(id, Part(key, rows, rule))

    # Work

    def run(self) -> None:
        """Works until every inbox is empty."""
        for component in self.busy():
            self.fixpoint(component)

    def step(self, id: str) -> None:
        """Lets one node work off its inbox; the right side of two first."""
        ports = self.inbox.pop(id, {})
        for port in sorted(ports, reverse=True):
            for part in self.operators[id].take(port, ports[port]):
                self.answer(id, part)

    def flush(self, time: int) -> list[Output]:
        """What has come into the answer since the last call, as of a time (integer ms)."""
        return self.delivered.flush(time)

    def kept(self) -> Iterator[tuple[str, int, list[Entry]]]:
        """(node, slot, entries): what a `Machine` that takes over has to know, as `Keeping.restore` takes it."""
        for id, op in self.operators.items():
            for slot, rows in op.kept():
                yield id, slot, [(*row, ALWAYS, FOREVER, 1) for row in rows]

    def state(self) -> dict[str, int]:
        """How many rows each node keeps."""
        return {id: op.size() for id, op in (*self.operators.items(), *self.given.items())}


class _Target(NamedTuple):
    """Where rows go: what is made of them on the way, and the input of a node with a memory, or else (address None) the
    node that has made this of them. lazy: the join makes it of them when it needs them."""

    step: Step | None
    address: Address | None
    inner: str
    lazy: bool


def _keyed(node: Node, plan: Plan) -> int | None:
    """The column in which all rows of a part that a node makes have the part's key; for sets of facts 1, where it is
    their predicate. None: there is no such column."""
    match node.op:
        case ops.Match(cells=cells):
            return cells[1] if len(cells) == 3 and isinstance(cells[1], int) and not _is_atom(cells) else None
        case ops.Project(columns=columns):
            column = _keyed(plan.by_id[node.inputs[0].node], plan)
            return columns.index(column) if column is not None and column in columns else None
        case ops.Test() | ops.Extend() | ops.Where() | ops.Apply():
            return _keyed(plan.by_id[node.inputs[0].node], plan)
        case ops.Distinct():
            found = {_keyed(plan.by_id[edge.node], plan) for edge in node.inputs}
            return found.pop() if len(found) == 1 else None
        case ops.Emit() | ops.Read() | ops.Deliver():
            return 1
        case _:
            return None


def _beside_key(columns: Sequence[int], key: int) -> Step:
    """Rows of two columns, one of which has the key of their part, each once: of rows that come together many agree in
    the other. (How often a row comes makes no difference to any plan that `fits`.)"""
    (other,) = (column for column in columns if column != key)
    row = ", ".join("k" if column == key else "c" for column in columns)
    source = f"""\
def run(rows):
 if not rows:
  return []
 k = rows[0][{key}]
 return [({row}) for c in dict.fromkeys([x[{other}] for x in rows])]
"""
    return compiled(source, {})


def _is_pure(expression: ops.Expression) -> bool:
    """Whether it makes no difference how often an expression is computed."""
    if not isinstance(expression, ops.Invoke):
        return True
    return functions.lookup(expression.function).pure and all(map(_is_pure, expression.arguments))


def _tells_facts_apart(op: ops.Operator) -> bool:
    """Whether different facts are different rows to a match."""
    return isinstance(op, ops.Match) and not any(cell is None or isinstance(cell, ops.Value) for cell in op.cells)


def _is_atom(cells: Sequence[ops.Cell]) -> bool:
    return isinstance(cells[0], str) and cells[0][0] == "@"


def _keys(template: Sequence[int | str], rows: Sequence[Row]) -> Mapping[Hashable, Sequence[Row]]:
    """Facts of a template by key."""
    if template[0].__class__ is not int and template[0][0] == "@":  # type: ignore[index]
        return {(template[0], len(template)): rows}
    if not isinstance(template[1], int):
        return {template[1]: rows}
    found: dict[Hashable, list[Row]] = {}
    for row in rows:
        found.setdefault(row[1], []).append(row)
    return found


def _fresh(rows: Sequence[Row], known: set[Row]) -> Sequence[Row]:
    """The rows that are not known, each once and in their order; known from now on."""
    before = len(known)
    if not before:
        known.update(rows)
        return rows if len(known) == len(rows) else list(dict.fromkeys(rows))
    fresh = set(rows).difference(known)
    known |= fresh  # takes over the hashes
    if len(fresh) == len(rows):
        return rows
    return list(dict.fromkeys(filter(fresh.__contains__, rows))) if fresh else ()


class _Set:
    """Rows that are handed on once."""

    def __init__(self) -> None:
        self.known: dict[Hashable, set[Row]] = {}

    def take(self, port: int, parts: Iterable[Part]) -> Iterator[Part]:
        for key, rows, rule in parts:
            known = self.known.setdefault(key, set())
            yield Part(key, _fresh(rows, known), rule)

    def kept(self) -> Iterator[tuple[int, Sequence[Row]]]:
        for rows in self.known.values():
            yield 0, list(rows)

    def size(self) -> int:
        return sum(map(len, self.known.values()))


class _Told:
    """Rows that need not be looked for, as each of them comes but once."""

    def __init__(self) -> None:
        self.parts: list[Sequence[Row]] = []

    def take(self, port: int, parts: Iterable[Part]) -> Iterator[Part]:
        for part in parts:
            self.parts.append(part.rows)
            yield part

    def kept(self) -> Iterator[tuple[int, Sequence[Row]]]:
        yield from ((0, rows) for rows in self.parts)

    def size(self) -> int:
        return sum(map(len, self.parts))


class _Closure:
    """The transitive closure of pairs."""

    def __init__(self) -> None:
        self.pairs = Pairs()
        self.taken: list[Row] = []

    def take(self, port: int, parts: Iterable[Part]) -> Iterator[Part]:
        for _, rows, _ in parts:
            self.taken += rows
            yield Part(None, self.pairs.add_lasting(cast(Sequence[tuple[str, str]], rows)))

    def kept(self) -> Iterator[tuple[int, Sequence[Row]]]:
        yield 0, self.taken

    def size(self) -> int:
        return self.pairs.size()


class _Side:
    """The rows of one input of a join by key. step: what has still to be done to rows that come with their key, when
    the other side has rows for it (None: rows come ready, without their key)."""

    def __init__(self, step: Step | None) -> None:
        self.step = step
        self.rows: dict[Hashable, list[Any]] = {}
        self.cold: dict[Hashable, list[Sequence[Row]]] = {}
        """Rows as they have come: the other side has had none for their keys so far."""

    def at(self, key: Hashable) -> Sequence[Row]:
        """The rows with a key."""
        for rows in self.cold.pop(key, ()):
            self.rows.setdefault(key, []).extend(self.step(rows) if self.step else rows)
        return self.rows.get(key, ())

    def whole(self) -> Iterator[Sequence[Row]]:
        for key in list(self.cold):
            self.at(key)
        yield from self.rows.values()

    def size(self) -> int:
        return sum(map(len, self.rows.values())) + sum(len(rows) for parts in self.cold.values() for rows in parts)


class _Join:
    """Pairs of rows that agree."""

    def __init__(self, op: ops.Join, widths: tuple[int, int], steps: tuple[Step | None, Step | None]) -> None:
        self.sides = (_Side(steps[0]), _Side(steps[1]))
        self.keys = (key_of([left for left, _ in op.on]), key_of([right for _, right in op.on]))
        self.probes = (_probe(op, widths, 0), _probe(op, widths, 1))
        self.products = (_product(op, widths, 0), _product(op, widths, 1))

    def take(self, port: int, parts: Iterable[Part]) -> Iterator[Part]:
        take = self._ready if self.sides[port].step is None else self._keyed
        for part in parts:
            yield Part(None, take(port, part))

    def _keyed(self, port: int, part: Part) -> Sequence[Row]:
        mine, other = self.sides[port], self.sides[1 - port].at(part.key)
        if not other and part.key not in mine.rows:
            mine.cold.setdefault(part.key, []).append(part.rows)
            return ()
        rows = cast(Step, mine.step)(part.rows)
        mine.rows.setdefault(part.key, []).extend(rows)
        found: list[Row] = self.products[port](rows, other)
        return found

    def _ready(self, port: int, part: Part) -> list[Row]:
        other = self.sides[1 - port]
        if other.cold:
            for key in map(self.keys[port], part.rows):
                other.at(key)
        found: list[Row] = self.probes[port](part.rows, self.sides[port].rows, other.rows)
        return found

    def kept(self) -> Iterator[tuple[int, Sequence[Row]]]:
        for port, side in enumerate(self.sides):
            yield from ((port, rows) for rows in side.whole())

    def size(self) -> int:
        return sum(side.size() for side in self.sides)


def _sides(op: ops.Join, widths: tuple[int, int], side: int) -> tuple[str, str, str]:
    """The text of a row of one side, of one of the other, and of what a join makes of them."""
    left, right = column_names("a", widths[0]), column_names("b", widths[1])
    made = bare([(left + right)[column] for column in op.keep])
    return (bare(left), bare(right), made) if side == 0 else (bare(right), bare(left), made)


def _probe(op: ops.Join, widths: tuple[int, int], side: int) -> Callable[..., Any]:
    """The function that stores rows of one side by their key, and pairs them with what the other side has stored."""
    mine, theirs, made = _sides(op, widths, side)
    columns = [pair[side] for pair in op.on]
    names = [f"{'ab'[side]}{column}" for column in columns]
    key = names[0] if len(names) == 1 else f"({', '.join(names)})"
    source = f"""\
def run(rows, mine, other):
 for x in rows:
  {mine} = x
  k = {key}
  if k in mine:
   mine[k].append(x)
  else:
   mine[k] = [x]
 return [{made} for {mine} in rows if {key} in other for {theirs} in other[{key}]]
"""
    return compiled(source, {})


def _product(op: ops.Join, widths: tuple[int, int], side: int) -> Callable[..., Any]:
    """The function that pairs all rows of one side with all of the other."""
    mine, theirs, made = _sides(op, widths, side)
    return compiled(f"def run(rows, other):\n return [{made} for {mine} in rows for {theirs} in other]", {})


class _Deliver:
    """Facts that come into the answer. once: the inputs that bring no fact twice."""

    def __init__(self, op: GrowingDeliver, once: Collection[int]) -> None:
        self.remembers = op.remembers
        self.name = op.name
        self.once = once
        self.alone: dict[Hashable, tuple[int, list[Sequence[Row]]]] = {}
        """The facts that have come, by key, where one input that brings no fact twice has brought all of the key;"""
        self.known: dict[Hashable, set[Row]] = {}
        """and the others."""
        self.waiting: list[tuple[int, Part]] = []

    def take(self, port: int, parts: Iterable[Part]) -> Iterator[Part]:
        self.waiting += zip(repeat(port), parts)
        return iter(())

    def flush(self, time: int) -> list[Output]:
        waiting, self.waiting = self.waiting, []
        found: list[Output] = []
        for port, (key, rows, maker) in waiting:
            fresh, rule = self._fresh(port, key, rows), self.name or maker
            if not isinstance(key, str) or key[0] != "<" or '"' in map(_FIRST, map(_FIRST, fresh)):
                found += [output((row_fact(row), time, rule)) for row in fresh if is_rdf(row)]
            else:  # what nearly all are, without a step of ours for each
                triples = map(_new, repeat(Triple), fresh)
                found += map(_new, repeat(Output), zip(triples, repeat(time), repeat(rule)))
        if not self.remembers:
            self.alone.clear()
            self.known.clear()
        return found

    def _fresh(self, port: int, key: Hashable, rows: Sequence[Row]) -> Sequence[Row]:
        """The facts that have not come before."""
        if key not in self.known:
            only, before = self.alone.setdefault(key, (port, []))
            if only == port and port in self.once:
                before.append(rows)
                return rows
            self.known[key] = set(chain.from_iterable(before))
            del self.alone[key]
        return _fresh(rows, self.known[key])

    def kept(self) -> Iterator[tuple[int, Sequence[Row]]]:
        parts = chain(self.known.values(), *(parts for _, parts in self.alone.values()))
        yield 0, [(*row, "") for rows in parts for row in rows]

    def size(self) -> int:
        alone = sum(len(rows) for _, parts in self.alone.values() for rows in parts)
        return alone + sum(map(len, self.known.values()))
