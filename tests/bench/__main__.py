"""Runs workloads on planner:builder pairs and on peers side by side:

    python -m tests.bench sensors rdfs --run rete:iterator --run rete:spark --peer pyoxigraph --json figures.json

Every run is a process of its own; runs are interleaved, and of their repetitions the medians are shown.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

from rich.console import Console
from rich.table import Table

from squall import plugins
from tests.bench.peers import PEERS
from tests.bench.plans import sizes
from tests.bench.watch import Failed, Measured, measure
from tests.bench.works import WORKS

ROOT = Path(__file__).parent.parent.parent
PLANS = "plans"


def arguments(given: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser("python -m tests.bench", description="Measures workloads, runs side by side.")
    parser.add_argument("work", nargs="+", choices=[*WORKS, PLANS], metavar="WORK", help=", ".join([*WORKS, PLANS]))
    parser.add_argument("--size", type=int, help="triples of the stream (for `plans`: rules)")
    parser.add_argument("--run", action="append", type=pair, metavar="PLANNER:BUILDER", help="rete:iterator")
    parser.add_argument("--peer", action="append", choices=PEERS, default=[], help=", ".join(PEERS))
    parser.add_argument("--repeat", type=int, default=3, help="times that each is run (3)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there, too")
    return parser.parse_args(given)


def pair(text: str) -> str:
    planner, _, builder = text.partition(":")
    for group, name in ((plugins.PLANNERS, planner), (plugins.BUILDERS, builder)):
        if name not in plugins.names(group):
            raise argparse.ArgumentTypeError(f"no `{name}` among {', '.join(plugins.names(group))}")
    return text


def compare(name: str, runs: Sequence[str], size: int, repeat: int) -> list[dict[str, Any]]:
    """The medians of each run of a workload. Raises Failed."""
    with tempfile.TemporaryDirectory() as folder:
        WORKS[name].write(Path(folder), size)
        found: dict[str, list[Measured]] = {run: [] for run in runs}
        for _ in range(repeat):
            for run in runs:
                command = [sys.executable, "-m", "tests.bench.child", name, run, folder]
                found[run].append(measure(command, ROOT))
    return [row(name, size, run, found[run], found[runs[0]]) for run in runs]


def row(name: str, size: int, run: str, measured: Sequence[Measured], first: Sequence[Measured]) -> dict[str, Any]:
    wall = median(one.wall for one in measured)
    return {
        "work": name, "run": run, "triples": size, "repetitions": len(measured), **measured[0].said,
        "wall_s": wall, "cpu_s": median(one.cpu for one in measured), "total_s": median(one.total for one in measured),
        "peak_mb": median(one.peak for one in measured) / 1e6, "triples_per_s": size / wall,
        "ratio": median(one.wall for one in first) / wall,
        "same": len({one.said["digest"] for one in (*measured, *first)}) == 1,
    }  # fmt: skip


def show(rows: Sequence[dict[str, Any]], console: Console) -> None:
    table = Table(title=f"{rows[0]['work']}, {rows[0]['triples']:,} triples, medians of {rows[0]['repetitions']}")
    for column in ("run", "triples/s", "ratio", "wall s", "CPU s", "total s", "peak MB", "outputs", "same answer"):
        table.add_column(column, justify="left" if column in ("run", "same answer") else "right")
    for one in rows:
        table.add_row(
            one["run"], f"{one['triples_per_s']:,.0f}", f"{one['ratio']:.2f}", f"{one['wall_s']:.2f}",
            f"{one['cpu_s']:.2f}", f"{one['total_s']:.2f}", f"{one['peak_mb']:,.0f}", f"{one['outputs']:,}",
            "yes" if one["same"] else "NO",
        )  # fmt: skip
    console.print(table)


def show_sizes(rows: Sequence[dict[str, Any]], console: Console) -> None:
    operators = list(dict.fromkeys(name for one in rows for name in one["operators"]))
    table = Table(title=f"nodes of the plan of {rows[0]['rules']} rules that share their prefix")
    for column in ("planner", "nodes", *operators):
        table.add_column(column, justify="left" if column == "planner" else "right")
    for one in rows:
        table.add_row(one["planner"], str(one["nodes"]), *(str(one["operators"].get(name, 0)) for name in operators))
    console.print(table)


def main(given: Sequence[str] | None = None) -> int:
    asked = arguments(given)
    console = Console(width=None if sys.stdout.isatty() else 120)
    rows: list[dict[str, Any]] = []
    for name in asked.work:
        if name == PLANS:
            found = sizes(asked.size or 100)
            show_sizes(found, console)
        else:
            runs = [*(asked.run or ["rete:iterator"]), *asked.peer]
            try:
                found = compare(name, runs, asked.size or WORKS[name].size, asked.repeat)
            except Failed as error:
                print(f"a run of `{name}` failed:\n{error}", file=sys.stderr)
                return 1
            show(found, console)
        rows += found
    if asked.json:
        asked.json.write_text(json.dumps(rows, indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
