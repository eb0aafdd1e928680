"""The folder in which a Spark job keeps what must outlive it, on a file system that all workers have mounted.

meta.json               what the folder belongs to: the plan and its rules, the number of buckets
begin.json              what functions of time take for the time of what always holds (integer ms)
run.json                the name of the run: a folder that is its sink has it as well
reads.json              the source that executors read by themselves, if there is one, by what, and where it begins
spark/                  Structured Streaming's own checkpoint: offsets and commits
spool/                  events that Spark cannot read by itself, as files that it can; stand.json: where sources stand
figures/                what nodes have done, if they are measured
outputs/<n>/            what the tasks of batch n answer, each in files of its own (Parquet)
runs/<n>/<step>/        batch n: the messages of each step, by kind (Parquet); files.json: which files count
base/<n>/               the state after batch n, compacted
marks/<n>.json          where the sink and the ledger file were before batch n
commits/<n>.json        batch n is done
"""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from squall.builders.distributed.exec.routing import BUCKETS
from squall.builders.distributed.plan.partitioning import Address
from squall.builders.local.identity import differences, rules
from squall.errors import BuilderError
from squall.plan import Plan

META, BEGIN, RUN, READS = "meta.json", "begin.json", "run.json", "reads.json"
SPREAD, HOT = "spread.json", "hot.json"
FORMAT = 12
"""How messages and the spool are kept; 1 had no number, and a record for each row; of 2 Spark wrote messages, and read
the spool as a folder of texts; 3 did not say how many rows wait in a folder; 4 held what joins
on the same columns hand on to each other; 5 did not say of which rules the plan was, and had the facts of plans that
one task ran; 6 had another mark in front of solutions, and all of a query's in one place; 7 had the
steps of a closure in one place; 8 had another memory of streams that a program makes; 9 had a message for each row
that one task keeps of a plan; 10 had all solutions that are told in an order in one place; 11 had streams that are
told whole on the level of those that say when, and in one task those that say so by steps of triples."""


def uri_of(path: Path) -> str:
    """A path as Hadoop takes one to write or look at: character by character, since nothing is decoded."""
    return f"file:{path.absolute()}"


def pattern_of(path: str) -> str:
    """A path as Spark takes one to read: as a pattern."""
    return "".join(f"\\{c}" if c in "*?[]{}\\^" else c for c in path)


class Store:
    """Files by paths relative to a root. Small files are written beside their place and renamed over what was there, so
    that at any moment they are there and whole: by their paths, since what Hadoop has for that starts processes."""

    def __init__(self, jvm: Any, configuration: Any, root: str) -> None:
        self.jvm = jvm
        self.root = root.rstrip("/")
        path = jvm.org.apache.hadoop.fs.Path(self.root)
        self.files = path.getFileSystem(configuration)
        self.files.mkdirs(path)

    def uri(self, *parts: object) -> str:
        """The whole path of something in the folder."""
        return "/".join([self.root, *map(str, parts)])

    def path(self, *parts: object) -> Path:
        """The same as those know it who have mounted the file system."""
        return Path(self.uri(*parts).removeprefix("file:"))

    def _path(self, *parts: object) -> Any:
        return self.jvm.org.apache.hadoop.fs.Path(self.uri(*parts))

    def exists(self, *parts: object) -> bool:
        return bool(self.files.exists(self._path(*parts)))

    def names(self, *parts: object) -> list[str]:
        """The names in a folder, sorted; none if it is not there."""
        if not self.exists(*parts):
            return []
        return sorted(str(status.getPath().getName()) for status in self.files.listStatus(self._path(*parts)))

    def numbers(self, *parts: object) -> list[int]:
        """The numbers that the names in a folder begin with, ascending."""
        stems = (name.partition(".")[0] for name in self.names(*parts))
        return sorted(int(name) for name in stems if name.isdigit())

    def delete(self, *parts: object) -> None:
        self.files.delete(self._path(*parts), True)

    def rename(self, old: Sequence[object], new: Sequence[object]) -> None:
        """Gives a folder its final name, in one go; what had that name before is gone."""
        self.delete(*new)
        self.files.rename(self._path(*old), self._path(*new))

    def write(self, value: object, *parts: object) -> None:
        """Writes a value as JSON, all or nothing."""
        path = self.path(*parts)
        path.parent.mkdir(parents=True, exist_ok=True)
        draft = path.with_name(f"_{path.name}")
        draft.write_text(json.dumps(value), encoding="utf-8")
        draft.replace(path)

    def read(self, *parts: object) -> Any:
        """The value of a JSON file, or None if it is not there."""
        path = self.path(*parts)
        return json.loads(path.read_text(encoding="utf-8")) if path.exists() else None

    def belong(self, plan: Plan, begin: int) -> int:
        """Makes the folder the plan's. Answers with what functions of time take for the time of what always holds
        (integer ms): `begin`, or what it was when the folder was made."""
        self.write(_meaning(plan), META)
        if self.read(BEGIN) is None:
            self.write(begin, BEGIN)
        return int(self.read(BEGIN))

    def spread(self) -> frozenset[Address]:
        """The inputs whose rows go to all tasks, as was chosen when the run began."""
        return frozenset((id, port) for id, port in self.read(SPREAD) or ())

    def hot(self) -> dict[Address, tuple[str, ...]]:
        """The keys whose rows are scattered, by input, as was chosen when the run began."""
        return {(id, port): tuple(keys) for id, port, keys in self.read(HOT) or ()}

    def run(self) -> str:
        """The name of the run, the same after each restart."""
        if self.read(RUN) is None:
            self.write(uuid.uuid4().hex, RUN)
        return str(self.read(RUN))


def _meaning(plan: Plan) -> dict[str, Any]:
    """What a checkpoint belongs to."""
    digest = hashlib.sha256(repr(plan.nodes).encode()).hexdigest()
    return {"format": FORMAT, "rules": rules(plan), "planner": plan.planner, "plan": digest, "buckets": BUCKETS}


def check_owner(plan: Plan, checkpoint: Path) -> None:
    """Raises BuilderError where a checkpoint is that of another plan, or was written in another way."""
    meta = checkpoint / META
    if not meta.is_file():
        return
    saved = json.loads(meta.read_text())
    if saved.get("format") != FORMAT:
        raise BuilderError(
            f"the checkpoint `{checkpoint}` was written by another version of squall",
            hint="go on with the version that wrote it, or start from a new checkpoint: name another folder, or remove "
            "this one",
        )
    current = _meaning(plan)
    if saved != current:
        raise BuilderError(
            f"the checkpoint `{checkpoint}` is that of another run: {_changed(saved, current)}",
            hint="a plan that has changed starts from a new checkpoint: name another folder, or remove this one",
        )


def _changed(saved: Mapping[str, Any], current: Mapping[str, Any]) -> str:
    """How the plans of two runs differ."""
    if saved["planner"] != current["planner"]:
        return f"its planner was `{saved['planner']}`"
    changes = differences({"rules": saved["rules"]}, {"rules": current["rules"]})
    return "; ".join(changes) or "its plan does the same in another way"
