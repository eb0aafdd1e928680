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
SQUALL = "squall"
"""The beginning of the names of squall's own bars."""
APART = 40
"""The ratio of the largest value to the least one from which on the axis is logarithmic."""


Panel = tuple[str, Mapping[str, float]]
"""A title, and the value of each bar."""


def rates(parts: Sequence[Mapping[str, Any]], path: Path) -> None:
    """Triples per second of CPU of each engine, a panel for each workload that has several; nothing where no engine has
    run."""
    panels = [
        (part["title"], {NAMES.get(row["run"], row["run"]): row["triples_per_cpu_s"] for row in part["rows"]})
        for part in parts
        if part["rows"]
    ]
    if not panels:
        return
    bars([panel for panel in panels if len(panel[1]) > 1] or panels, "triples per second of CPU", path)


def seconds(panels: Sequence[Panel], path: Path) -> None:
    """Plots seconds. Those of bars that are named after squall have its colour."""
    bars(panels, "seconds", path)


def bars(panels: Sequence[Panel], label: str, path: Path) -> None:
    """Plots horizontal bars on one axis, which is logarithmic if they are far apart. Those of squall have its
    colour."""
    everything = [value for _, values in panels for value in values.values()]
    apart = max(everything) > APART * min(everything)
    heights = [len(values) + 1 for _, values in panels]
    figure = Figure(figsize=(8, 0.25 * sum(heights) + 0.5 * len(panels)), layout="constrained")
    places = figure.subplots(len(panels), 1, sharex=True, squeeze=False, height_ratios=heights)[:, 0]
    for place, (title, values) in zip(places, panels, strict=True):
        names = [*values][::-1]
        result = place.barh(names, [values[name] for name in names], color=[_colour(name) for name in names])
        place.bar_label(result, [f" {_written(values[name])}" for name in names])
        place.set_title(title, loc="left", fontsize=9)
        if apart:
            place.set_xscale("log")
        place.margins(x=0.15)
        place.minorticks_off()
        place.xaxis.set_visible(place is places[-1])
        place.spines[["top", "right"]].set_visible(False)
    places[-1].set_xlabel(f"{label} (logarithmic)" if apart else label)
    save(figure, path)


def _colour(name: str) -> str:
    return OURS if name.startswith(SQUALL) else OTHERS


def _written(value: float) -> str:
    return f"{value:,.0f}" if value >= 10 else f"{value:.2f}"


def soak(samples: Sequence[tuple[int, int, float]], path: Path) -> None:
    """Plots memory in use, and state per live fact, over events.

    Args:
        samples: The measured samples: (events, bytes in use, bytes per live fact).
    """
    figure = Figure(figsize=(8, 4), layout="constrained")
    above, below = figure.subplots(2, 1, sharex=True)
    events = [sample[0] for sample in samples]
    above.plot(events, [sample[1] / 1e6 for sample in samples], color=OURS)
    above.set_ylabel("memory in use, MB")
    below.plot(events, [sample[2] for sample in samples], color=OURS)
    below.set_ylabel("bytes per live fact")
    below.set_xlabel("events (eight triples each)")
    for panel in (above, below):
        panel.set_ylim(bottom=0)
        panel.spines[["top", "right"]].set_visible(False)
    below.ticklabel_format(axis="x", style="plain")
    save(figure, path)


def over_windows(panels: Mapping[str, Mapping[str, Sequence[float]]], label: str, phase: int, path: Path) -> None:
    """Plots values over the windows of a stream, a panel for each query with a line for each run.

    Args:
        panels: The values in each window, by query and run. The last run has squall's colour.
        label: What the values are.
        phase: The number of windows after which the stream changes.
        path: The file.
    """
    figure = Figure(figsize=(8, 1.6 * len(panels) + 0.4), layout="constrained")
    places = figure.subplots(len(panels), 1, sharex=True, squeeze=False)[:, 0]
    for place, (title, lines) in zip(places, panels.items(), strict=True):
        for number, (name, values) in enumerate(lines.items(), 1):
            place.plot(range(1, len(values) + 1), values, label=name, color=OURS if number == len(lines) else OTHERS)
            for change in range(phase, len(values), phase):
                place.axvline(change + 0.5, color=OTHERS, linewidth=0.5, linestyle=":")
        place.set_title(title, loc="left", fontsize=9)
        place.set_ylim(bottom=0)
        place.spines[["top", "right"]].set_visible(False)
    places[0].legend(frameon=False, fontsize=8)
    places[-1].set_xlabel(f"window of 10 s ({label} in each; dotted: another kind becomes rare)")
    save(figure, path)


def save(figure: Figure, path: Path) -> None:
    figure.savefig(path, format="svg", metadata={"Date": None})
