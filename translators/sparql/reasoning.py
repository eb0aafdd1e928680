"""The modes of `REASONING [U,SM]`, by which a query in a language of streams says how its patterns reason.

Source: X. Ren, O. Curé, H. Naacke and G. Xiao, StriderR: Massive and distributed RDF graph stream reasoning (BigData
2017): ``U`` is reasoning over hierarchies by LiteMat, and ``SM`` over owl:sameAs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from squall.errors import Origin, TranslatorError, did_you_mean, raise_all
from squall.model.systems import BY_CLIQUE

HIERARCHIES, SAME_AS = "U", "SM"


class Reasoning(NamedTuple):
    """What a query says of its reasoning: an entailment regime, and how it treats owl:sameAs; None: nothing."""

    entailment: str | None = None
    same_as: str | None = None


def reasoning_of_modes(modes: Iterable[tuple[str, Origin | None]]) -> Reasoning:
    """Returns the reasoning of a query with the clause `REASONING`.

    Args:
        modes: The modes as they are written, with their places. Their case does not matter.

    Raises:
        TranslatorError: There is no such mode, or it is written twice.
        Errors: There are several errors.
    """
    listed = [(name.upper(), origin) for name, origin in modes]
    raise_all(list(_errors(listed)))
    names = {name for name, _ in listed}
    return Reasoning("rhodf" if HIERARCHIES in names else None, BY_CLIQUE if SAME_AS in names else None)


def _errors(modes: list[tuple[str, Origin | None]]) -> Iterator[TranslatorError]:
    for place, (name, origin) in enumerate(modes):
        if name not in (HIERARCHIES, SAME_AS):
            remedy = f"write `REASONING [{HIERARCHIES}]`, `[{SAME_AS}]` or `[{HIERARCHIES},{SAME_AS}]`"
            hint = did_you_mean(name, (HIERARCHIES, SAME_AS)) or remedy
            yield TranslatorError(f"there is no reasoning mode `{name}`", origin, hint)
        elif name in [other for other, _ in modes[:place]]:
            yield TranslatorError(f"the reasoning mode `{name}` is written twice", origin, "leave one of them out")
