"""``told-again``: updates that read what their own work has told again, as a whole, and may so go on for ever."""

from __future__ import annotations

from collections.abc import Iterator

from squall.checking.findings import WARNING, Finding
from squall.checking.program import Program, Reading, Rule, readings
from squall.model import Delete, is_update, output_specs
from squall.model.windows import CountWindow, HoppingWindow, Window


def check(program: Program) -> Iterator[Finding]:
    """A finding for each update that looks through a window with steps at a stream that the program tells whole: what
    an update does makes an instant, the stream is told again then, and the window shows it anew (docs/semantics.md,
    section 3). In windows without steps what is told again just goes on; in those of time with steps, too, unless what
    they show was deleted."""
    told = (one for one in output_specs(program.system) if one.output == "rstream" and one.report.policy != "change")
    whole = {one.stream for one in told} - {""}
    for rule in program.rules:
        for reading, stream, window in _looks(program, rule, whole) if is_update(rule.system) else ():
            message = (
                f"`{rule.name}` reads <{stream}> through the window `{window}`: what it does has all of this stream "
                "told again, on which it may act again, for ever"
            )
            hint = "let the stream be told what is new (istream), or report only when it changes"
            yield Finding("told-again", WARNING, message, reading.pattern.origin or rule.origin, hint)


def _looks(program: Program, rule: Rule, streams: set[str]) -> Iterator[tuple[Reading, str, Window]]:
    """Of each of these streams that a rule reads so the first pattern that does, and the window."""
    deletes = any(isinstance(one, Delete) for one in rule.system.consequences)
    seen: set[str] = set()
    for reading in readings(rule.system):
        made = {maker.stream for maker in program.makers(reading)}
        for stream in sorted((streams - seen) & made):
            windows = (source.window_of(stream) for source in reading.sources if source.iri in ("", stream))
            window = next((one for one in windows if _shows_anew(one, deletes)), None)
            if window is not None:
                seen.add(stream)
                yield reading, stream, window


def _shows_anew(window: Window, deletes: bool) -> bool:
    """Whether what comes again may be there anew, to whoever has acted on it and has deleted it, or has not."""
    return (isinstance(window, CountWindow) and window.step > 1) or (isinstance(window, HoppingWindow) and deletes)
