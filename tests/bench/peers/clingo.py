"""clingo: the rules as a logic program, grounded. The facts of each window are read before the clock starts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from clingo import Control, Symbol

from tests.bench.peers.encoding import LITERAL, Dictionary, Numbers
from tests.bench.works import Answer, Evaluate, Rule, Statement, Task


def prepare(task: Task) -> Evaluate:
    dictionary = Dictionary()
    derived = "d" if task.work.window else "t"  # where nothing is read again, what is derived is kept apart
    program = "".join(clause(rule, derived, dictionary) for rule in task.work.rules)
    static, stream = ([dictionary.encode(item) for item in inputs] for inputs in (task.static(), task.triples()))
    if task.work.window:
        parts = [static + stream[first:last] for first, last in task.windows(len(stream))]
    else:
        parts = [static + stream]
    controls = [control(program, part) for part in parts]
    inputs = set() if task.work.window else set(parts[0])

    def evaluate() -> Answer:
        symbols: list[Symbol] = []
        for item in controls:
            item.ground([("base", [])])
            symbols += [atom.symbol for atom in item.symbolic_atoms.by_signature(derived, 3)]
        return Answer(dictionary.lines(triple for triple in numbers(symbols) if triple not in inputs))

    return evaluate


def control(program: str, facts: Sequence[Numbers]) -> Control:
    result = Control(["--warn=none"])
    result.add("base", [], program)
    result.add("base", [], "".join(f"t({s},{p},{o})." for s, p, o in facts))
    return result


def clause(rule: Rule, derived: str, dictionary: Dictionary) -> str:
    """Returns the rule in clingo's language, with a clause for each fact of its head."""
    body = [atom("t", statement, dictionary) for statement in rule.body]
    body += [f"{variable(name)}<{LITERAL}" for name in rule.resources]
    return "".join(f"{atom(derived, statement, dictionary)}:-{','.join(body)}.\n" for statement in rule.head)


def atom(relation: str, statement: Statement, dictionary: Dictionary) -> str:
    slots = (variable(slot) if slot[0] == "?" else str(dictionary.number(slot)) for slot in statement)
    return f"{relation}({','.join(slots)})"


def variable(name: str) -> str:
    return f"X{name[1:]}"


def numbers(symbols: Iterable[Symbol]) -> Iterator[Numbers]:
    for symbol in symbols:
        subject, predicate, object = (argument.number for argument in symbol.arguments)
        yield subject, predicate, object
