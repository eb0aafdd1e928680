"""Resumes from the checkpoint of a program from which rules have been removed since: drops the state of these rules.

A node is named by its operator and its inputs. So a node of both plans has the same state in both, if all nodes in
front of it are in both as well. That is true of all nodes that serve an unchanged rule, except for sinks. The state of
a sink holds facts with the rules that derived them, and those of removed rules are dropped. See
docs/decisions/0036-migration.md.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from squall.builders.local.event_loop import PENDING_UPDATES, EventLoop
from squall.builders.local.identity import NEW_CHECKPOINT, sink_identity
from squall.builders.runtime.dataflow import REPORT_TIMES_SUFFIX
from squall.builders.runtime.fact_input import INSERTED_FACTS
from squall.builders.runtime.operators.output import AppendOnlyOutput
from squall.builders.runtime.state import Slot
from squall.builders.runtime.zset import Delta
from squall.errors import BuilderError

StateKinds = Mapping[str, str]
"""What each operator state holds (`Stateful.layout`), by its key."""
_SINK = "sink "
_APPEND_ONLY_SINK = f"{_SINK}{AppendOnlyOutput.kind}"
_STATELESS = " without state"
"""The end of the kind of a sink that need not remember what it has output."""


def state_kinds(event_loop: EventLoop) -> dict[str, str]:
    """Returns the kinds of the operator states of a run."""
    kinds = {key: state.layout for key, state in event_loop.states.items()}
    for node, op in event_loop.plan.sinks:
        state = event_loop.states[node.id]
        stateless = _STATELESS if isinstance(state, AppendOnlyOutput) and not state.remembers else ""
        kinds[node.id] = f"{_SINK}{kinds[node.id]} {sink_identity(op)}{stateless}"
        report_times = f"{node.id}{REPORT_TIMES_SUFFIX}"
        if report_times in kinds:
            kinds[report_times] += f" of {sink_identity(op)}"
    return kinds


def without_removed_rules(
    state: Mapping[Slot, Sequence[Delta]], before: StateKinds, now: StateKinds, rules: Collection[str]
) -> dict[Slot, list[Delta]]:
    """Returns the operator state of a run without that of removed rules.

    Args:
        state: The state of the program that had more rules.
        before: Its state kinds.
        now: The state kinds of the present plan.
        rules: The names of the present rules.

    Raises:
        BuilderError: The state does not hold what the present plan needs.
    """
    if any(deltas for (key, _), deltas in state.items() if key in (INSERTED_FACTS, PENDING_UPDATES)):
        raise _refused("updates have changed its data, and it is not known which rules did")
    previous_keys = _previous_keys(before, now)
    for key, kind in now.items():
        previous_key = previous_keys.get(key)
        if previous_key is None or before[previous_key] not in (kind, kind.removesuffix(_STATELESS)):
            raise _refused(f"it does not hold the state of `{key}`")
    migrated: dict[Slot, list[Delta]] = {}
    for key, previous_key in previous_keys.items():
        for slot in (slot for state_key, slot in state if state_key == previous_key):
            migrated[key, slot] = _deltas_of_rules(state[previous_key, slot], slot, now[key], rules)
    return migrated


def _previous_keys(before: StateKinds, now: StateKinds) -> dict[str, str]:
    """Returns the previous key of each state. Sinks have other ids when rules are removed."""
    previous_keys = {key: key for key in now if key in before}
    for key, kind in now.items():
        same_kind = [
            previous_key
            for previous_key, previous_kind in before.items()
            if previous_kind.removesuffix(_STATELESS) == kind.removesuffix(_STATELESS)
        ]
        of_sink = kind.startswith(_SINK) or key.endswith(REPORT_TIMES_SUFFIX)
        if key not in before and len(same_kind) == 1 and of_sink:
            previous_keys[key] = same_kind[0]
    return previous_keys


def _deltas_of_rules(deltas: Sequence[Delta], slot: int, kind: str, rules: Collection[str]) -> list[Delta]:
    """Returns the deltas of a slot that belong to the present rules."""
    if not kind.startswith(_SINK):
        return list(deltas)
    if slot == 1 and not kind.startswith(_APPEND_ONLY_SINK):
        raise _refused("it does not say which rules derived the answer that was reported last")
    if slot == 0 and kind.endswith(_STATELESS):
        return []
    return [delta for delta in deltas if delta[-4] in rules]


def _refused(why: str) -> BuilderError:
    hint = NEW_CHECKPOINT
    return BuilderError(f"the run cannot resume from the checkpoint without these rules: {why}", hint=hint)
