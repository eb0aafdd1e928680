"""The check ``endless-update``: updates that react to their own effect, and so may go on without end."""

from __future__ import annotations

from collections.abc import Iterator

from squall.checking.findings import WARNING, Finding
from squall.checking.program import Program, Reading, Rule, readings
from squall.model import Delete, is_update, output_specs
from squall.model.windows import Window


def check(program: Program) -> Iterator[Finding]:
    """Yields a finding for each update that reads a snapshot (rstream) stream of the program through a window with
    steps.

    An update creates an instant. The whole stream is output again then, and the window shows it anew
    (docs/semantics.md, section 3). In windows without steps a repeated fact just stays valid. So it does in hopping
    windows, unless what they show was deleted.
    """
    snapshots = (
        spec for spec in output_specs(program.system) if spec.output == "rstream" and not spec.report.only_changes
    )
    snapshot_streams = {spec.stream for spec in snapshots} - {""}
    for rule in program.rules:
        for reading, stream, window in (
            _snapshot_readings(program, rule, snapshot_streams) if is_update(rule.system) else ()
        ):
            message = (
                f"`{rule.name}` reads <{stream}> through the window `{window}`: with each update the whole stream is "
                "output again, and the rule may react to that without end"
            )
            hint = "output what is new (istream), or report only on change"
            yield Finding("endless-update", WARNING, message, reading.pattern.origin or rule.origin, hint)


def _snapshot_readings(program: Program, rule: Rule, streams: set[str]) -> Iterator[tuple[Reading, str, Window]]:
    """Yields each of these streams that a rule reads in that way, with the first pattern that does, and the window."""
    deletes = any(isinstance(consequence, Delete) for consequence in rule.system.consequences)
    visited_streams: set[str] = set()
    for reading in readings(rule.system):
        derived = {maker.stream for maker in program.makers(reading)}
        for stream in sorted((streams - visited_streams) & derived):
            windows = (source.window_of(stream) for source in reading.sources if source.iri in ("", stream))
            window = next((consequence for consequence in windows if _shows_anew(consequence, deletes)), None)
            if window is not None:
                visited_streams.add(stream)
                yield reading, stream, window


def _shows_anew(window: Window, deletes: bool) -> bool:
    """Returns whether a repeated fact may appear anew to a rule that has acted on it and has, or has not, deleted
    it.
    """
    return window.is_stepped and (window.counts_triples or deletes)
