"""The plots of docs/benchmarks.md, as SVG that is the same for the same figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.figure import Figure

from tests.bench.ours import NAMES

matplotlib.rcParams.update({"svg.hashsalt": "squall", "svg.fonttype": "none", "font.size": 9})

OURS, OTHERS = "#d1495b", "#8d99ae"


def rates(parts: Sequence[Mapping[str, Any]], path: Path) -> None:
    """Triples per second of CPU of each engine, a panel for each workload."""
    parts = [part for part in parts if len(part["rows"]) > 1]
    heights = [len(part["rows"]) + 1 for part in parts]
    figure = Figure(figsize=(8, 0.25 * sum(heights) + 0.5 * len(parts)), layout="constrained")
    panels = figure.subplots(len(parts), 1, sharex=True, squeeze=False, height_ratios=heights)[:, 0]
    for panel, part in zip(panels, parts, strict=True):
        rows = part["rows"][::-1]
        names = [NAMES.get(row["run"], row["run"]) for row in rows]
        values = [row["triples_per_cpu_s"] for row in rows]
        bars = panel.barh(names, values, color=[OURS if name in NAMES.values() else OTHERS for name in names])
        panel.bar_label(bars, [f" {value:,.0f}" for value in values])
        panel.set_title(part["title"], loc="left", fontsize=9)
        panel.set_xscale("log")
        panel.margins(x=0.15)
        panel.minorticks_off()
        panel.xaxis.set_visible(panel is panels[-1])
        panel.spines[["top", "right"]].set_visible(False)
    panels[-1].set_xlabel("triples per second of CPU (logarithmic)")
    save(figure, path)


def soak(samples: Sequence[tuple[int, int, float]], path: Path) -> None:
    """Memory in use, and state per live fact, over events. samples: (events, bytes, bytes per live fact)."""
    figure = Figure(figsize=(8, 4), layout="constrained")
    above, below = figure.subplots(2, 1, sharex=True)
    events = [one[0] for one in samples]
    above.plot(events, [one[1] / 1e6 for one in samples], color=OURS)
    above.set_ylabel("memory in use, MB")
    below.plot(events, [one[2] for one in samples], color=OURS)
    below.set_ylabel("bytes per live fact")
    below.set_xlabel("events (eight triples each)")
    for panel in (above, below):
        panel.set_ylim(bottom=0)
        panel.spines[["top", "right"]].set_visible(False)
    below.ticklabel_format(axis="x", style="plain")
    save(figure, path)


def save(figure: Figure, path: Path) -> None:
    figure.savefig(path, format="svg", metadata={"Date": None})
