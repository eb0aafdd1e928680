"""The ways of treating owl:sameAs: what a run and its programs choose."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Literal, get_args

from squall.errors import UsageError, did_you_mean
from squall.model import System
from squall.model.systems import BY_CLIQUE

Mode = Literal["none", "axioms", "representative", "provenance"]
MODES: tuple[Mode, ...] = get_args(Mode)
"""The ways of treating owl:sameAs: as any property, by the axioms of equality, by a representative of each clique, and
by cliques with the terms that matched."""
Answers = Literal["representatives", "members"]
ANSWERS: tuple[Answers, ...] = get_args(Answers)
"""What answers have of a clique: its representative, or each of its terms."""
FOLLOW = "follow"
"""What a run does with triples of owl:sameAs in streams (`schema_changes`) that change how it reads facts."""
AXIOMS = "sameas"
"""The rule set of the axioms of equality."""


def mode_of(programs: Iterable[System], default: str | None) -> str:
    """Returns how the programs of a run treat owl:sameAs.

    Args:
        programs: The programs. They and their queries may name a mode.
        default: The mode of programs that name none; None: ``none``.

    Raises:
        UsageError: There is no such mode, or programs have different ones.
    """
    if default not in (None, *MODES):
        hint = did_you_mean(str(default), MODES) or f"there is {', '.join(MODES)}"
        raise UsageError(f"there is no way `{default}` to treat owl:sameAs", hint=hint)
    modes = sorted({mode for program in programs for mode in _modes(program, default or "none")} or {default or "none"})
    if len(modes) > 1:
        message = f"the programs of a run treat owl:sameAs in one way, not both `{modes[0]}` and `{modes[1]}`"
        raise UsageError(message, hint="give them the same pragma, or run them one by one")
    return modes[0]


def _modes(system: System, default: str) -> Iterator[str]:
    """Yields the modes of programs and queries: that which is named nearest to their patterns."""
    mode = system.same_as or default
    if mode == BY_CLIQUE:
        mode = default if default == "provenance" else "representative"
    if not _names_mode_within(system):
        yield mode
        return
    for part in system.subsystems:
        if not part.is_background:
            yield from _modes(part, mode)


def _names_mode_within(system: System) -> bool:
    return any(part.same_as or _names_mode_within(part) for part in system.subsystems)


_REMEDIES = {
    "none": "name it: `--same-as representative`",
    "axioms": "leave it out: answers have all terms",
    "provenance": "leave it out: answers have the terms that matched",
}


def check_answers(mode: str, answers: str) -> None:
    """Raises UsageError if there are no such answers, or the mode has no representatives."""
    if answers not in ANSWERS:
        hint = did_you_mean(answers, ANSWERS) or f"there is {' and '.join(ANSWERS)}"
        raise UsageError(f"there are no answers `{answers}` under owl:sameAs", hint=hint)
    if answers != ANSWERS[0] and mode != "representative":
        hint = _REMEDIES[mode]
        raise UsageError(f"answers by {answers} go with owl:sameAs by representative", hint=hint)


def check_following(mode: str, answers: str, schema_changes: str) -> None:
    """Raises UsageError if what streams say of owl:sameAs cannot be followed."""
    if schema_changes != FOLLOW:
        return
    if mode != "representative":
        hint = {
            "none": "name it: `--same-as representative`",
            "axioms": "leave it out: the axioms read what streams say of owl:sameAs",
            "provenance": "ask for representatives, or treat owl:sameAs by axioms",
        }[mode]
        raise UsageError(f"`{FOLLOW}` goes with owl:sameAs by representative, not with `{mode}`", hint=hint)
    if answers != ANSWERS[0]:
        hint = "ask for representatives, or treat owl:sameAs by axioms (`--same-as axioms`)"
        raise UsageError(f"answers by {answers} need cliques that no stream changes (`{FOLLOW}`)", hint=hint)
