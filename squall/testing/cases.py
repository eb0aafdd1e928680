"""Reads ``.case`` files: a program in several languages, its events, and the one answer expected of all."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

from squall.errors import LexerError, Origin, did_you_mean
from squall.rdf import Event, Triple
from squall.testing.streams import Timed, static, stream, timed

OUTPUTS = ("istream", "dstream", "rstream")
_DATA = ("static", "events", "expect", "output", "schema", "ontology")
_HEADING = re.compile(r"--- +(?P<kind>\S+)(?: +(?P<argument>\S+))? *$")


@dataclass(frozen=True)
class Case:
    """A program in several languages, and its expected outputs.

    Attributes:
        title: The title.
        programs: The texts of the program, by language (the name of a lexer).
        static: The static data.
        events: The events.
        expected: The expected outputs with their times, as a set.
        output: The R2S operator (see `squall.model.System`).
        schema: The schema of its entailment (``rhodf``). Without one there is none.
        ontology: The text of an ontology, which is a program beside its own, or ``""``.
    """

    title: str
    programs: tuple[tuple[str, str], ...] = ()
    static: tuple[Event, ...] = ()
    events: tuple[Event, ...] = ()
    expected: tuple[Timed, ...] = ()
    output: str = "istream"
    schema: tuple[Triple, ...] = ()
    ontology: str = ""
    origin: Origin | None = field(default=None, compare=False, repr=False)


class _Section(NamedTuple):
    kind: str
    argument: str
    text: str
    origin: Origin


def load(path: Path) -> list[Case]:
    """Returns the cases of a file.

    Raises:
        LexerError: The file is wrong. The error has its place.
    """
    return parse(path.read_text(encoding="utf-8"), str(path))


def parse(text: str, name: str = "case") -> list[Case]:
    """Returns the cases of a text, in its order.

    A case begins with ``# title``. Sections follow, each with the heading ``--- kind``. ``static``, ``events`` and
    ``expect`` have the form of `squall.testing.streams`, and ``schema`` that of ``static``: with it the programs have
    entailment. ``ontology`` is a text that the lexer ``owl`` reads. ``output KIND`` has no text. All other sections are
    programs, and are named after the language. A program may be a file: ``--- jena ../rules.jena``, relative to the
    folder of `name`.

    A title is a line that begins with ``# `` at the top or after a blank line. Elsewhere such a line belongs to its
    section, as a comment does.

    Raises:
        LexerError: The text is wrong. The error has its place.
    """
    return [_case(title, sections) for title, sections in _split(text, name)]


def _split(text: str, name: str) -> Iterator[tuple[Origin, list[_Section]]]:
    title: Origin | None = None
    sections: list[_Section] = []
    blank = True
    for number, line in enumerate(text.splitlines(), 1):
        origin = Origin(name, text, number, 1, len(line))
        if blank and line.startswith("# "):
            if title:
                yield title, sections
            title, sections = origin, []
        elif line.startswith("---"):
            sections.append(_heading(line, origin))
        elif sections:
            # Blank lines in front of the section's text keep its line numbers those of the file.
            body = sections[-1].text or "\n" * (number - 1)
            sections[-1] = sections[-1]._replace(text=f"{body}{line}\n")
        elif line.strip():
            raise LexerError("text outside of a section", origin, "a case is `# title`, then `--- kind` and its lines")
        if title is None and line.strip():
            raise LexerError("a section before the first title", origin, "a case begins with `# title`")
        blank = not line.strip()
    if title:
        yield title, sections


def _heading(line: str, origin: Origin) -> _Section:
    match = _HEADING.match(line)
    if not match:
        raise LexerError(f"`{line}` heads no section", origin, "write `--- kind`")
    return _Section(match["kind"], match["argument"] or "", "", origin)


def _case(title: Origin, sections: list[_Section]) -> Case:
    case = Case(_line(title).removeprefix("# ").strip(), origin=title)
    kinds: set[str] = set()
    for section in sections:
        if section.kind in kinds:
            raise LexerError(f"`--- {section.kind}` twice in one case", section.origin)
        kinds.add(section.kind)
        case = _with(case, section)
    if not case.programs or "expect" not in kinds:
        raise LexerError("a case needs a program and `--- expect`", title)
    return case


def _with(case: Case, section: _Section) -> Case:
    name = section.origin.name
    match section.kind:
        case "static":
            return replace(case, static=tuple(static(section.text, name)))
        case "events":
            return replace(case, events=tuple(stream(section.text, name)))
        case "expect":
            return replace(case, expected=tuple(timed(section.text, name)))
        case "schema":
            facts = (fact for event in static(section.text, name) for fact in event.facts)
            return replace(case, schema=tuple(fact for fact in facts if isinstance(fact, Triple)))
        case "ontology":
            return replace(case, ontology=_program(section))
        case "output":
            return replace(case, output=_output(section))
        case language:
            _check_language(section)
            return replace(case, programs=(*case.programs, (language, _program(section))))


def _program(section: _Section) -> str:
    """Returns the text of a program, or of the file that the section names."""
    if not section.argument:
        return section.text
    if section.text.strip():
        raise LexerError(f"the program is the file `{section.argument}`, and there is a text", section.origin)
    try:
        return (Path(section.origin.name).parent / section.argument).read_text(encoding="utf-8")
    except OSError as error:
        message = f"the program `{section.argument}` cannot be read: {error.strerror}"
        raise LexerError(message, section.origin, "its path is seen from the case's folder") from error


def _output(section: _Section) -> str:
    if section.argument not in OUTPUTS:
        raise LexerError(
            f"`{section.argument}` is no output",
            section.origin,
            did_you_mean(section.argument, OUTPUTS) or ", ".join(OUTPUTS),
        )
    return section.argument


def _check_language(section: _Section) -> None:
    hint = did_you_mean(section.kind, _DATA)
    if hint:
        raise LexerError(f"`--- {section.kind}` is no section", section.origin, hint)


def _line(origin: Origin) -> str:
    return origin.text.splitlines()[origin.line - 1]
