"""Runs workloads on planner:builder pairs and on peers side by side:

    python -m tests.bench q3 rdfs --run rete:iterator --run greedy:iterator --peer pyoxigraph --json figures.json

Every run is a process of its own; runs are interleaved, and of their repetitions the medians are shown. A peer that
cannot run here is left out, and why is said; one that takes long is run once.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from rich.console import Console
from rich.table import Table

from squall import plugins
from tests.bench import ours, peers
from tests.bench.plans import sizes
from tests.bench.watch import Failed, Measured, measure
from tests.bench.works import WORKS

ROOT = Path(__file__).parent.parent.parent
PLANS = "plans"
LONG = 20
"""The seconds from which on a run of a peer is not repeated."""

OnLeftOut = Callable[[str, str], None]
"""A function that is called with each peer that is left out, and the reason."""


def arguments(given: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser("python -m tests.bench", description="Measures workloads, runs side by side.")
    parser.add_argument("work", nargs="+", choices=[*WORKS, PLANS], metavar="WORK", help=", ".join([*WORKS, PLANS]))
    parser.add_argument("--size", type=int, help="triples of the stream (for `plans`: rules)")
    parser.add_argument(
        "--run", action="append", type=pair, metavar="PLANNER:BUILDER[:events|rules]", help="rete:iterator"
    )
    parser.add_argument("--peer", action="append", choices=peers.PEERS, default=[], help=", ".join(peers.PEERS))
    parser.add_argument("--repeat", type=int, default=3, help="times that each is run (3)")
    parser.add_argument("--limit", type=float, default=3600, help="seconds that a run may take (3600)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there, too")
    return parser.parse_args(given)


def pair(text: str) -> str:
    planner, _, remainder = text.partition(":")
    builder, _, form = remainder.partition(":")
    for group, name in ((plugins.PLANNERS, planner), (plugins.BUILDERS, builder)):
        if name not in plugins.names(group):
            raise argparse.ArgumentTypeError(f"no `{name}` among {', '.join(plugins.names(group))}")
    if form not in ("", ours.EVENTS, ours.RULES):
        raise argparse.ArgumentTypeError(f"no `{form}` behind a builder, only `{ours.EVENTS}` and `{ours.RULES}`")
    return text


def left_out(peer: str, reason: str) -> None:
    print(f"left out: {peer}: {reason}", file=sys.stderr)


def able(asked: Sequence[str], name: str, on_left_out: OnLeftOut = left_out) -> list[str]:
    """Returns the peers that can run a workload here. Prints why the others cannot."""
    reasons = {peer: peers.reason(peer, WORKS[name]) for peer in asked}
    for peer, reason in reasons.items():
        if reason:
            on_left_out(peer, reason)
    return [peer for peer in asked if not reasons[peer]]


def compare(
    name: str, runs: Sequence[str], size: int, repeat: int, limit: float = 3600, on_left_out: OnLeftOut = left_out
) -> list[dict[str, Any]]:
    """Returns the medians of each run of a workload.

    A peer that fails or takes longer than `limit` seconds is left out, and the reason is printed. Raises Failed if one
    of our own runs fails.
    """
    with tempfile.TemporaryDirectory() as folder:
        WORKS[name].write(Path(folder), size)
        measureds: dict[str, list[Measured]] = {run: [] for run in runs}
        for _ in range(repeat):
            for run in [run for run, measured in measureds.items() if _goes_on(run, measured)]:
                command = [sys.executable, "-m", "tests.bench.child", name, run, folder]
                try:
                    measureds[run].append(measure(command, ROOT, limit))
                except Failed as error:
                    if run not in peers.PEERS:
                        raise
                    on_left_out(run, str(error))
                    del measureds[run]
    return [row(name, size, run, measured, measureds[runs[0]]) for run, measured in measureds.items()]


def _goes_on(run: str, measured: Sequence[Measured]) -> bool:
    """Returns whether a run is repeated once more."""
    return run not in peers.PEERS or all(item.total < LONG for item in measured)


def row(name: str, size: int, run: str, measured: Sequence[Measured], first: Sequence[Measured]) -> dict[str, Any]:
    """Returns the measurements of a run as a row of the results. Its ratios compare its rates with those of the first
    run."""
    wall, cpu = median(item.wall for item in measured), median(item.cpu for item in measured)
    message = {key: median(item.said[key] for item in measured) for key in measured[0].said if key.endswith("_us")}
    return {
        "work": name, "run": run, "triples": size, "repetitions": len(measured), **measured[0].said, **message,
        "wall_s": wall, "cpu_s": cpu, "total_s": median(item.total for item in measured),
        "peak_mb": median(item.peak for item in measured) / 1e6, "triples_per_s": size / wall,
        "triples_per_cpu_s": size / max(cpu, 1e-6), "ratio": median(item.wall for item in first) / wall,
        "cpu_ratio": median(item.cpu for item in first) / max(cpu, 1e-6),
        "same": None if run == peers.PARSING else len({item.said["digest"] for item in (*measured, *first)}) == 1,
    }  # fmt: skip


COLUMNS: dict[str, Callable[[dict[str, Any]], str]] = {
    "run": lambda one: str(one["run"]),
    "triples/s": lambda one: f"{one['triples_per_s']:,.0f}",
    "ratio": lambda one: f"{one['ratio']:.2f}",
    "triples/CPU s": lambda one: f"{one['triples_per_cpu_s']:,.0f}",
    "CPU ratio": lambda one: f"{one['cpu_ratio']:.2f}",
    "total s": lambda one: f"{one['total_s']:.1f}",
    "peak MB": lambda one: f"{one['peak_mb']:,.0f}",
    "outputs": lambda one: f"{one['outputs']:,}",
    "same answer": lambda one: {True: "yes", False: "NO", None: ""}[one["same"]],
}
WAITS: dict[str, Callable[[dict[str, Any]], str]] = {
    "median us": lambda one: f"{one['median_us']:,.0f}",
    "p99 us": lambda one: f"{one['p99_us']:,.0f}",
}


def show(rows: Sequence[dict[str, Any]], console: Console) -> None:
    table = Table(title=f"{rows[0]['work']}, {rows[0]['triples']:,} triples, medians of {rows[0]['repetitions']}")
    columns = COLUMNS | (WAITS if "median_us" in rows[0] else {})
    for column in columns:
        table.add_column(column, justify="left" if column in ("run", "same answer") else "right")
    for item in rows:
        table.add_row(*(write(item) for write in columns.values()))
    console.print(table)


def show_sizes(rows: Sequence[dict[str, Any]], console: Console) -> None:
    operators = list(dict.fromkeys(name for item in rows for name in item["operators"]))
    table = Table(title=f"nodes of the plan of {rows[0]['rules']} rules that share their prefix")
    for column in ("planner", "nodes", *operators):
        table.add_column(column, justify="left" if column == "planner" else "right")
    for item in rows:
        table.add_row(item["planner"], str(item["nodes"]), *(str(item["operators"].get(name, 0)) for name in operators))
    console.print(table)


def main(given: Sequence[str] | None = None) -> int:
    request = arguments(given)
    console = Console(width=None if sys.stdout.isatty() else 120)
    rows: list[dict[str, Any]] = []
    for name in request.work:
        if name == PLANS:
            result = sizes(request.size or 100)
            show_sizes(result, console)
        else:
            runs = [*(request.run or [WORKS[name].run]), *able(request.peer, name)]
            try:
                result = compare(name, runs, request.size or WORKS[name].size, request.repeat, request.limit)
            except Failed as error:
                print(f"a run of `{name}` failed:\n{error}", file=sys.stderr)
                return 1
            show(result, console)
        rows += result
    if request.json:
        request.json.write_text(json.dumps(rows, indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
