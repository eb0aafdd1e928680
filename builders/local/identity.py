"""The identity of a run: what a checkpoint belongs to, and how another run differs from it."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from squall.contracts import HasDigests
from squall.errors import BuilderError
from squall.plan import Node, Plan, Planning
from squall.plan.cardinality import Statistics
from squall.plan.fingerprint import fingerprint, node_fingerprint
from squall.plan.node_rules import rules_by_node
from squall.plan.operators import Scan, Sink
from squall.streams import Sources
from squall.streams.sources.reordering import original
from squall.streams.static_data import mapping_digest

Names = Mapping[str, Mapping[str, str]]
"""Digests by kind and name."""
WITHOUT_RULES = "without rules "
"""The beginning of the difference that some rules have been removed."""
WITH_RULES = "with rules "
"""The beginning of the difference that there are other rules."""


def rule_digests(plan: Plan) -> dict[str, str]:
    """Returns for each rule a digest of the nodes that serve it.

    Digests do not depend on the names of classes (`squall.plan.fingerprint`).
    """
    nodes_by_rule: dict[str, list[str]] = {}
    by_node = rules_by_node(plan)
    for node in plan.nodes:
        for rule in by_node[node.id] or ("",):
            nodes_by_rule.setdefault(rule, []).append(_node_identity(node))
    return {rule: hashlib.sha256("\n".join(nodes).encode()).hexdigest() for rule, nodes in nodes_by_rule.items()}


def _node_identity(node: Node) -> str:
    """Returns the fingerprint of a node with its inputs; of a sink without them, since all rules feed it."""
    return sink_identity(node.op) if isinstance(node.op, Sink) else node_fingerprint(node)


def sink_identity(op: Sink) -> str:
    """Returns the fingerprint of a sink, whatever feeds it."""
    return fingerprint(replace(op, distinct=True, queries=()))


NEW_CHECKPOINT = "start from a new checkpoint: name another folder, or remove this one"
"""The remedy if a checkpoint cannot be resumed."""


def renaming_hint(before: Mapping[str, str], now: Mapping[str, str]) -> str:
    """Returns how a run resumes if only the name of a rule or query has changed, as a clause; ``""`` if more has.

    Args:
        before: The digests of the rules of the checkpoint, by name.
        now: Those of the present program.
    """
    removed, added = before.keys() - now.keys(), now.keys() - before.keys()
    if len(removed) != 1 or len(added) != 1:
        return ""
    change = f"if `{min(added)}` is only another name of `{min(removed)}`, give it the name that it had"
    return f"{change} (a query that is not registered has that of its file); or "


CHANGED_RULES = "changed rules "
"""The beginning of the difference that the plans of some rules are others."""
PLAN_AS_BEFORE = (
    "plan as that run did (`--planner`, `--statistics`, `--adapt`): a checkpoint holds the state of one plan; or "
)
"""The remedy, before others, if a program was planned in another way."""


def plan_change(changes: Sequence[str], before: str, now: str) -> tuple[str, ...]:
    """Returns the difference that rules may only have another plan, or nothing.

    Args:
        changes: The other differences of two runs.
        before: How the program of the checkpoint was planned (`squall.plan.Planning`), or ``""``.
        now: How the present one is planned.
    """
    if before in ("", now) or not any(change.startswith(CHANGED_RULES) for change in changes):
        return ()
    return (f"or only another plan of them (planned by {before}, now by {now})",)


def schema_of(plan: Plan) -> tuple[str, ...]:
    """Returns what is compiled into a plan: the triples of the schema, closed under its entailment regime, those of
    cliques (owl:sameAs), and the axioms of ontologies."""
    scans = [node.op for node in plan.nodes if isinstance(node.op, Scan)]
    schemas = {op.fixed_schema for op in scans if op.fixed_schema is not None}
    cliques = {op.source.cliques for op in scans if op.source.cliques is not None}
    triples = {triple for schema in schemas for triple in schema.triples}
    return tuple(sorted({*map(str, triples.union(*(each.triples for each in cliques))), *map(str, plan.axioms)}))


_SHOWN_TRIPLES = 3
"""The number of triples of a changed schema that a message shows."""


def schema_change(changes: Sequence[str], before: Collection[str], now: Collection[str]) -> Iterator[str]:
    """Yields the difference that the schema or an ontology has changed, if rules have changed.

    Args:
        changes: The other differences of two runs.
        before: The schema of the checkpoint (`schema_of`).
        now: The present one.
    """
    if any(change.startswith((CHANGED_RULES, WITHOUT_RULES, WITH_RULES)) for change in changes):
        for word, triples in (("without", {*before} - {*now}), ("with", {*now} - {*before})):
            if triples:
                shown = ", ".join(f"`{triple}`" for triple in sorted(triples)[:_SHOWN_TRIPLES])
                more = ", ..." if len(triples) > _SHOWN_TRIPLES else ""
                yield f"its schema is {word} {shown}{more}"


def planning_of_data(checkpoint: Path, data: Any) -> Planning:
    """Returns how the program of a checkpoint was planned.

    Args:
        checkpoint: The folder, for the message.
        data: The JSON value of `planning_data`.

    Raises:
        BuilderError: The value is none.
    """
    try:
        planning = Planning(**data)
        statistics = None if planning.statistics is None else Statistics.of_data(planning.statistics)
        return planning._replace(statistics=statistics)
    except (ValueError, KeyError, TypeError) as error:
        raise BuilderError(f"the planning in the checkpoint `{checkpoint}` is damaged", hint=NEW_CHECKPOINT) from error


def planning_data(plan: Plan) -> dict[str, Any]:
    """Returns how a program was planned, as a JSON value."""
    return {**plan.planning._asdict(), "statistics": None if plan.statistics is None else plan.statistics.data}


def unknown_format(checkpoint: Path, number: object, readable: int) -> BuilderError:
    """Returns the error for a checkpoint of another format than the readable one."""
    age = "a newer" if isinstance(number, int) and number > readable else "an older"
    return BuilderError(
        f"the checkpoint `{checkpoint}` has the format {number}: {age} version of squall wrote it "
        f"(this version reads {readable})",
        hint=f"resume with the version that wrote it, or {NEW_CHECKPOINT}",
    )


STATIC_DATA = "static data"
"""The kind of the digests of static data."""


def static_digests(static: object) -> Mapping[str, str]:
    """Returns the digests of static data by address, if they have any."""
    return static.digests() if isinstance(static, HasDigests) else {}


MAPPINGS = "mappings"
"""The kind of the digests of the mappings of records."""


def mapping_digests(batches: object) -> Mapping[str, str]:
    """Returns the digests of the mappings of sources, by address."""
    if not isinstance(batches, Sources):
        return {}
    digests = ((source.uri, mapping_digest(getattr(original(source), "settings", None))) for source in batches.sources)
    return {uri: digest for uri, digest in digests if digest}


def static_data_hint(changes: Iterable[str]) -> str:
    """Returns the remedy, before others, if static data have changed; ``""`` if they have not.

    Args:
        changes: The differences of two runs (`differences`).
    """
    has_changed = any(STATIC_DATA in change.partition("`")[0] for change in changes)
    return "give static data as they were: a run that resumes does not read them again; or " if has_changed else ""


def differences(before: Names, now: Names) -> Iterator[str]:
    """Yields what has been removed, added or changed; and whether sources are in another order.

    Offsets are saved in the order of the sources.
    """
    for kind in now.keys() | before.keys():
        old, new = before.get(kind, {}), now.get(kind, {})
        for word, names in (
            ("without", [name for name in old if name not in new]),
            ("with", [name for name in new if name not in old]),
            ("changed", [name for name in new if name in old and new[name] != old[name]]),
        ):
            if names:
                yield f"{word} {kind} {', '.join(f'`{name}`' for name in names)}"
        if kind == "sources" and old == new and list(old) != list(new):
            yield "sources in another order"
