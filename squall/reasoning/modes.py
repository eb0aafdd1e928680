"""The modes of `REASONING [U]`, by which a query in a language of streams says which entailment its patterns have.

Source: X. Ren, O. Curé, H. Naacke and G. Xiao, StriderR: Massive and distributed RDF graph stream reasoning (BigData
2017): ``U`` is reasoning over hierarchies by LiteMat, and ``SM`` over owl:sameAs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from squall.errors import Origin, TranslatorError, did_you_mean, raise_all
from squall.reasoning.schema import Regime

HIERARCHIES, SAME_AS = "U", "SM"
_SUBCLASSES: Regime = "rhodf"


def entailment_of_modes(modes: Iterable[tuple[str, Origin | None]]) -> Regime | None:
    """Returns the entailment regime of a query with the clause `REASONING`; None for one without modes.

    Args:
        modes: The modes as they are written, with their places. Their case does not matter.

    Raises:
        TranslatorError: There is no such mode, or it is written twice, or it cannot be run.
        Errors: There are several errors.
    """
    listed = [(name.upper(), origin) for name, origin in modes]
    raise_all(list(_errors(listed)))
    return _SUBCLASSES if listed else None


def _errors(modes: list[tuple[str, Origin | None]]) -> Iterator[TranslatorError]:
    for place, (name, origin) in enumerate(modes):
        if name == SAME_AS:
            hint = "leave it out, and derive what follows from owl:sameAs by `--rules owl2rl`"
            yield TranslatorError(f"the reasoning mode `{SAME_AS}` (owl:sameAs) is not supported", origin, hint)
        elif name != HIERARCHIES:
            hint = did_you_mean(name, (HIERARCHIES, SAME_AS)) or f"write `REASONING [{HIERARCHIES}]`"
            yield TranslatorError(f"there is no reasoning mode `{name}`", origin, hint)
        elif name in [other for other, _ in modes[:place]]:
            yield TranslatorError(f"the reasoning mode `{name}` is written twice", origin, "leave one of them out")
