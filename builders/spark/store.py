"""The checkpoint folder of a Spark job, on a file system that all workers have mounted.

meta.json               what the folder belongs to: the plan and its rules, the number of buckets
begin.json              what functions of time return for what always holds (integer ms)
seed.json               the seed of the run
static.json             the digests of static data, by address
mappings.json           the digests of the mappings of records, by address, if there are any
planning.json           how the program was planned: the planner, the statistics, whether the plan is replaceable
run.json                the name of the run; a folder that is its sink has it as well
reads.json              the source that executors read, if there is one, by what, and where it begins
broadcast.json          the broadcast inputs of joins
skewed_keys.json        the skewed keys, by input
spark/                  Structured Streaming's own checkpoint: offsets and commits
spool/                  events that Spark cannot read by itself, as files that it can; offsets.json: source offsets
figures/                node metrics, if they are measured
outputs/<n>/            the outputs of batch n, a file for each task (Parquet)
runs/<n>/<step>/        batch n: the records of each step, by type (Parquet); files.json: which files count
base/<n>/               the state after batch n, compacted
marks/<n>.json          the positions of the sink and the dead-letter ledger before batch n
commits/<n>.json        batch n is committed
plans/<n>.json          the plan to which batch n has moved the state: in place of meta.json, planning.json,
                        broadcast.json and skewed_keys.json, if the last commit names the batch
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import uuid
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from squall.builders.distributed.exec.batch_log import PLANS, plan_number_of
from squall.builders.distributed.io.engine import Folder, Read, Write
from squall.builders.distributed.plan.buckets import BUCKET_COUNT
from squall.builders.local.identity import (
    MAPPINGS,
    NEW_CHECKPOINT,
    PLAN_AS_BEFORE,
    STATIC_DATA,
    differences,
    plan_change,
    planning_data,
    planning_of_data,
    renaming_hint,
    rule_digests,
    schema_change,
    schema_of,
    static_data_hint,
    unknown_format,
)
from squall.builders.spark import output_files
from squall.builders.spark.disk_errors import disk_errors
from squall.builders.spark.join_strategies import JoinStrategies
from squall.errors import BuilderError
from squall.plan import Plan, Planning
from squall.plan.fingerprint import node_fingerprint

META, BEGIN, SEED, RUN, READS = "meta.json", "begin.json", "seed.json", "run.json", "reads.json"
STATIC, MAPPINGS_FILE = "static.json", "mappings.json"
PLANNING = "planning.json"
BROADCAST, SKEWED_KEYS = "broadcast.json", "skewed_keys.json"
FORMAT = 17
"""The version of the layout. Any other version is refused."""


def uri_of(path: Path) -> str:
    """Returns a path as Hadoop takes it to write or look at: literally, since Hadoop decodes nothing."""
    return f"file:{path.absolute()}"


def pattern_of(path: str) -> str:
    """Returns a path as Spark takes it to read: as a glob pattern."""
    return "".join(f"\\{c}" if c in "*?[]{}\\^" else c for c in path)


class Store:
    """Files by paths relative to a root folder.

    A small file is written beside its place and renamed over the old one, so that it is complete at any moment.

    Raises:
        BuilderError: The file system refuses. All methods that change files raise it as well.
    """

    def __init__(self, root: Path) -> None:
        self.root = root.absolute()
        with disk_errors(self.root):
            self.root.mkdir(parents=True, exist_ok=True)

    def uri(self, *parts: object) -> str:
        """Returns the whole path of a file or folder, as Hadoop takes it."""
        return uri_of(self.path(*parts))

    def path(self, *parts: object) -> Path:
        """Returns the whole path of a file or folder."""
        return self.root.joinpath(*map(str, parts))

    def names(self, *parts: object) -> list[str]:
        """Returns the sorted names in a folder; none if it does not exist."""
        path = self.path(*parts)
        return sorted(os.listdir(path)) if path.is_dir() else []

    def delete(self, *parts: object) -> None:
        """Deletes a file or folder, if it exists."""
        path = self.path(*parts)
        with disk_errors(self.root):
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)

    def rename(self, old: Sequence[object], new: Sequence[object]) -> None:
        """Gives a folder its final name atomically, and deletes what had that name before."""
        self.delete(*new)
        with disk_errors(self.root):
            self.path(*old).rename(self.path(*new))

    def write(self, value: object, *parts: object) -> None:
        """Writes a value as JSON, atomically."""
        path = self.path(*parts)
        with disk_errors(self.root):
            path.parent.mkdir(parents=True, exist_ok=True)
            draft = path.with_name(f"_{path.name}")
            draft.write_text(json.dumps(value), encoding="utf-8")
            draft.replace(path)

    def read(self, *parts: object) -> Any:
        """Returns the value of a JSON file, or None if it does not exist."""
        path = self.path(*parts)
        return json.loads(path.read_text(encoding="utf-8")) if path.exists() else None

    def reader(self) -> Read:
        """Returns the function that reads a file of records. Workers do that by themselves, because Spark cannot know
        what is in it."""
        return partial(output_files.read, self.path())

    def writer(self, folder: Folder) -> Write:
        """Returns the function that writes files of records into a folder."""
        return partial(output_files.write, self.path(*folder))

    def belong(self, plan: Plan, begin: int) -> int:
        """Makes the folder the plan's. Returns what functions of time return for what always holds (integer ms):
        `begin`, or the saved value where the folder is not new."""
        if self.read(META) is None:
            self.write(planning_data(plan), PLANNING)
        self.write(_meaning(plan), META)
        return int(self._first(begin, BEGIN))

    def begin_with(self, plan: Plan) -> None:
        """Makes the folder another plan's of the same program, before the first batch is committed. A run that is
        killed meanwhile begins anew."""
        self.delete(META)
        self.write(planning_data(plan), PLANNING)
        self.write(_meaning(plan), META)

    def seed(self, seed: int) -> int:
        """Returns the seed of the run: that of the options, or the saved one where the folder is not new.

        It is called before `belong`.
        """
        if self.read(META) is None:
            self.write(seed, SEED)
        return int(self.read(SEED))

    def check_static_data(self, digests: Mapping[str, str], are_read: bool) -> None:
        """Checks that static data are those of the run.

        Args:
            digests: their digests by address.
            are_read: whether a batch that has them is committed. If none is, they are read (again).

        Raises:
            BuilderError: they are other ones.
        """
        if not are_read:
            self.write({**digests}, STATIC)
            return
        changes = list(differences({STATIC_DATA: self.read(STATIC)}, {STATIC_DATA: digests}))
        if changes:
            raise _of_another_run(self.root, changes, static_data_hint(changes) + NEW_CHECKPOINT)

    def check_mappings(self, digests: Mapping[str, str], are_read: bool) -> None:
        """Checks that the mappings of records are those of the run.

        Args:
            digests: their digests by address.
            are_read: whether a batch is committed.

        Raises:
            BuilderError: they are other ones.
        """
        if not are_read:
            if digests or self.read(MAPPINGS_FILE) is not None:
                self.write({**digests}, MAPPINGS_FILE)
            return
        changes = list(differences({MAPPINGS: self.read(MAPPINGS_FILE) or {}}, {MAPPINGS: digests}))
        if changes:
            raise _of_another_run(self.root, changes, NEW_CHECKPOINT)

    def _first(self, value: object, name: str) -> Any:
        """Returns the value of a JSON file, which is written with `value` if it does not exist."""
        if self.read(name) is None:
            self.write(value, name)
        return self.read(name)

    def join_strategies(self) -> JoinStrategies:
        """Returns how joins are executed, as it was chosen when the run began, or when its plan was replaced."""
        plan = _present_plan(self.root)
        broadcast = self.read(BROADCAST) if plan is None else plan["broadcast"]
        skewed = self.read(SKEWED_KEYS) if plan is None else plan["skewed_keys"]
        broadcast_inputs = frozenset((id, port) for id, port in broadcast or ())
        return JoinStrategies(broadcast_inputs, {(id, port): tuple(keys) for id, port, keys in skewed or ()})

    def save_join_strategies(self, joins: JoinStrategies) -> None:
        """Saves how joins are executed."""
        data = _joins_data(joins)
        if joins.broadcast_inputs:
            self.write(data["broadcast"], BROADCAST)
        if joins.skewed_keys:
            self.write(data["skewed_keys"], SKEWED_KEYS)

    def run(self) -> str:
        """Returns the name of the run, which is the same after each restart."""
        return str(self._first(uuid.uuid4().hex, RUN))


def read_planning(checkpoint: Path) -> Planning | None:
    """Returns how the program of a checkpoint was planned; None if there is none yet."""
    file = checkpoint / PLANNING
    if not ((checkpoint / META).is_file() and file.is_file()):
        return None
    plan = _present_plan(checkpoint)
    return planning_of_data(checkpoint, _json(file) if plan is None else plan["planning"])


def plan_data(plan: Plan, joins: JoinStrategies) -> dict[str, Any]:
    """Returns what a checkpoint says of a plan in place of the one that the run began with.

    Args:
        plan: the plan, to which no seed is applied.
        joins: how its joins are executed.
    """
    return {"planning": planning_data(plan), "owner": _meaning(plan), **_joins_data(joins)}


def _present_plan(checkpoint: Path) -> Any:
    """Returns what the checkpoint says of its plan, if that is not the one that the run began with."""
    commits = checkpoint / "commits"
    latest = max((int(file.stem) for file in commits.glob("*.json") if file.stem.isdigit()), default=None)
    number = 0 if latest is None else plan_number_of(_json(commits / f"{latest}.json"))
    return _json(checkpoint / PLANS / f"{number}.json") if number else None


def _json(file: Path) -> Any:
    return json.loads(file.read_text(encoding="utf-8"))


def _joins_data(joins: JoinStrategies) -> dict[str, Any]:
    """Returns how joins are executed, as JSON values."""
    return {
        "broadcast": sorted(map(list, joins.broadcast_inputs)),
        "skewed_keys": [[*address, keys] for address, keys in joins.skewed_keys.items()],
    }


def _meaning(plan: Plan) -> dict[str, Any]:
    """Returns what identifies the owner of a checkpoint."""
    nodes = ", ".join(map(node_fingerprint, plan.nodes))
    return {
        "format": FORMAT,
        "rules": rule_digests(plan),
        "planner": plan.planner,
        "planned_by": str(plan.planning),
        "plan": hashlib.sha256(f"({nodes})".encode()).hexdigest(),
        "buckets": BUCKET_COUNT,
        "schema": list(schema_of(plan)),
    }


def plan_of_checkpoint(plan: Plan, checkpoint: Path) -> Plan:
    """Returns the plan of the run whose checkpoint is to be resumed, if it is another plan of the same program by the
    same planner."""
    planning = read_planning(checkpoint)
    if plan.plan_again is None or planning is None or planning == plan.planning or planning.planner != plan.planner:
        return plan
    return plan.plan_again(planning)


def check_owner(plan: Plan, checkpoint: Path) -> None:
    """Raises BuilderError if a checkpoint belongs to another plan, or has another format."""
    meta = checkpoint / META
    if not meta.is_file():
        return
    saved_meta = json.loads(meta.read_text())
    number = saved_meta.get("format", 1)  # the first one had no number
    if number != FORMAT:
        raise unknown_format(checkpoint, number, FORMAT)
    present = _present_plan(checkpoint)
    if present is not None:
        saved_meta = present["owner"]
    current = _meaning(plan)
    if saved_meta | {"planned_by": current["planned_by"], "schema": current["schema"]} == current:
        return
    if saved_meta["planner"] != current["planner"]:
        changes, hint = [f"its planner was `{saved_meta['planner']}`"], PLAN_AS_BEFORE
    else:
        changes = list(differences({"rules": saved_meta["rules"]}, {"rules": current["rules"]}))
        replanned = plan_change(changes, saved_meta["planned_by"], current["planned_by"])
        other_schema = schema_change(changes, saved_meta["schema"], current["schema"])
        changes = [*changes, *replanned, *other_schema] or ["its plan does the same in another way"]
        hint = PLAN_AS_BEFORE if replanned else renaming_hint(saved_meta["rules"], current["rules"])
    raise _of_another_run(checkpoint, changes, hint + NEW_CHECKPOINT)


def _of_another_run(checkpoint: Path, changes: Iterable[str], hint: str) -> BuilderError:
    return BuilderError(f"the checkpoint `{checkpoint}` is that of another run: {'; '.join(changes)}", hint=hint)
