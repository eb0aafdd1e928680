"""A checkpoint of a program that has lost rules since: what of it is that of the program which is left.

Nodes are named by what they do and on what inputs, so that one that is in both plans has kept the same in both, if all
in front of it is in both as well. That holds for all nodes that work for a rule which has not changed, but for the end
of the plan: there facts are kept with the rules that made them, and those of the others are taken out. See
docs/decisions/0036-migration.md.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from squall.builders.local.event_loop import HELD, UPDATES, Running
from squall.builders.runtime.dataflow import INSERTED_FACTS, REPORT_TIMES_SUFFIX
from squall.builders.runtime.operators.multiway_join import MultiwayJoinOperator
from squall.builders.runtime.operators.output import AppendOnlyOutput
from squall.builders.runtime.state import Slot
from squall.builders.runtime.zset import Delta
from squall.errors import BuilderError
from squall.plan import Node
from squall.plan.operators import Sink

Kinds = Mapping[str, str]
"""What the memories of a run are: those of one name and kind keep the same."""
_END = "end "
_GROWING = f"{_END}{AppendOnlyOutput.__name__}"
_FORGETS = " forgets"  # behind the kind of an end that need not know what it has told


def kinds(running: Running) -> dict[str, str]:
    """Those of a run."""
    nodes = running.plan.by_id
    class_names = {id: type(memory).__name__ for id, memory in running.states.items()}
    class_names |= {
        id: f"Star {memory.shape}"
        for id, memory in running.states.items()
        if isinstance(memory, MultiwayJoinOperator)
    }
    class_names[HELD] = "whole instants" if running.whole_instants else ""
    for node, op in running.plan.sinks:
        memory = running.states[node.id]
        forgets = _FORGETS if isinstance(memory, AppendOnlyOutput) and not memory.remembers else ""
        class_names[node.id] = f"{_END}{type(memory).__name__} {end(op)}{forgets}"
        if f"{node.id}{REPORT_TIMES_SUFFIX}" in class_names:
            class_names[f"{node.id}{REPORT_TIMES_SUFFIX}"] += f" of {end(op)}"
    return {id: kind for id, kind in class_names.items() if id in nodes or kind}


def end(op: Sink) -> str:
    """What an end of a plan is, whatever leads to it."""
    return repr(replace(op, distinct=True, queries=()))


def carried(
    entries: Mapping[Slot, Sequence[Delta]], before: Kinds, now: Kinds, rules: Collection[str]
) -> dict[Slot, list[Delta]]:
    """What is left of the entries of a run when rules are taken away. before, now: its memories, and those of the plan
    that is left; rules: the names of those that are.

    Raises BuilderError where what that plan has to know is not in them.
    """
    if any(entries.get((id, slot)) for id, slot in entries if id in (INSERTED_FACTS, UPDATES)):
        raise _refused("updates have changed its data, and it is not known which rules did")
    names = _names(before, now)
    for id, kind in now.items():
        old_name = names.get(id)
        if old_name is None or before[old_name] not in (kind, kind.removesuffix(_FORGETS)):
            raise _refused(f"what `{id}` has to know is not in it")
    deltas: dict[Slot, list[Delta]] = {}
    for id, old_name in names.items():
        for slot in (slot for name, slot in entries if name == old_name):
            deltas[id, slot] = _left(entries[old_name, slot], id, slot, now[id], rules)
    return deltas


def _names(before: Kinds, now: Kinds) -> dict[str, str]:
    """For each memory that is left the name it had: the ends of plans have others when rules are taken away."""
    names = {id: id for id in now if id in before}
    for id, kind in now.items():
        same = [name for name, of in before.items() if of.removesuffix(_FORGETS) == kind.removesuffix(_FORGETS)]
        if id not in before and len(same) == 1 and (kind.startswith(_END) or id.endswith(REPORT_TIMES_SUFFIX)):
            names[id] = same[0]
    return names


def _left(entries: Sequence[Delta], id: str, slot: int, kind: str, rules: Collection[str]) -> list[Delta]:
    """The entries of a slot that are those of the rules which are left."""
    if not kind.startswith(_END):
        return list(entries)
    if slot == 1 and not kind.startswith(_GROWING):
        raise _refused("what was reported last is not kept by rule")
    if slot == 0 and kind.endswith(_FORGETS):
        return []
    return [entry for entry in entries if entry[-4] in rules]


def _refused(why: str) -> BuilderError:
    hint = "start from a new checkpoint: name another folder, or remove this one"
    return BuilderError(f"the checkpoint cannot be gone on with without these rules: {why}", hint=hint)


def described(node: Node) -> str:
    """What a node is, and what is in front of it; of the end of a plan not that, which is that of all rules."""
    return end(node.op) if isinstance(node.op, Sink) else repr(node)
