"""Windows in conditions: what holds in the last time, and facts with the begin and the end of their validity.

``External(win:in(?s ?p ?o "PT10S"^^xs:duration))`` is about the frame ``?s[?p -> ?o]``, ``External(win:in(ex:p(?x)
"PT10S"^^xs:duration))`` about the atom ``ex:p(?x)``. The grammar of RIF has terms as arguments, and no formulas: in
front of it an atom looks like a term of the same form.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from squall.errors import Origin, TranslatorError, did_you_mean
from squall.functions.values import duration
from squall.lexers.rif import tree
from squall.rdf import literal

NAMESPACE = "urn:x-squall:window:"


class _Form(NamedTuple):
    """The arguments of a window: its text, the number of its variables of times, and the numbers of its lengths."""

    text: str
    times: int
    lengths: tuple[int, ...] = (0,)


_FORMS = {
    "in": _Form("win:in(?s ?p ?o length)", 0, (1, 2)),
    "always": _Form("win:always(?s ?p ?o length)", 0, (1, 2)),
    "at": _Form("win:at(?s ?p ?o ?time length)", 1, (1, 2)),
    "start": _Form("win:start(?s ?p ?o ?start)", 1),
    "end": _Form("win:end(?s ?p ?o ?end)", 1),
    "interval": _Form("win:interval(?s ?p ?o ?start ?end)", 2),
}


class WindowedAtom(NamedTuple):
    """A frame or an atom through a window, or with its times.

    Attributes:
        mode: One of ``in``, ``always``, ``at``, ``start``, ``end``, ``interval``.
        atom: The frame or atom.
        times: The variables of its times.
        length: The length of the window (integer ms); 0 without one.
        step: The distance of the instants at which it moves (integer ms); 0: it moves with time.
    """

    mode: str
    atom: tree.Frame | tree.Atom
    times: tuple[tree.Var, ...]
    length: int
    step: int


def is_window(node: object) -> bool:
    """Returns whether a node of a document is an external predicate for a window."""
    return isinstance(node, tree.External) and node.content.op.lexical.startswith(NAMESPACE)


def atom_of(external: tree.External) -> tree.Frame | tree.Atom | None:
    """Returns the frame or atom that a window is about; None if it has too few arguments."""
    arguments, origin = external.content.arguments, external.origin
    match arguments:
        case (tree.Expr() as content, *_):
            return tree.Atom(content.op, content.arguments, content.names, meta=content.meta, origin=content.origin)
        case (about, attribute, value, *_):
            return tree.Frame(about, ((attribute, value),), origin=origin)
        case _:
            return None


def further_arguments(external: tree.External) -> tuple[tree.Term, ...]:
    """Returns the arguments behind those of the frame or atom."""
    arguments = external.content.arguments
    return arguments[1:] if arguments and isinstance(arguments[0], tree.Expr) else arguments[3:]


def windowed_atom(external: tree.External) -> WindowedAtom:
    """Returns what an external predicate for a window says.

    Raises:
        TranslatorError: It is no window: it has another name, other arguments, or a length that is none.
    """
    content = external.content
    mode = content.op.lexical.removeprefix(NAMESPACE)
    if mode not in _FORMS:
        hint = did_you_mean(mode, list(_FORMS)) or f"there are {', '.join(f'`{name}`' for name in _FORMS)}"
        raise TranslatorError(f"there is no window `{mode}`", content.op.origin, hint)
    form, atom, arguments = _FORMS[mode], atom_of(external), further_arguments(external)
    times = tuple(argument for argument in arguments[: form.times] if isinstance(argument, tree.Var))
    lengths = [_milliseconds(argument) for argument in arguments[form.times :]]
    if (
        atom is None
        or content.names
        or len(times) != form.times
        or len(lengths) not in form.lengths
        or 0 in lengths[1:]
    ):
        step = ", and a step behind the length" if form.lengths != (0,) else ""
        hint = f"write `External({form.text})`, or an atom in place of `?s ?p ?o`{step}"
        raise TranslatorError(f"these are no arguments of the window `{mode}`", external.origin, hint)
    _check_new(times, atom, external.origin)
    return WindowedAtom(mode, atom, times, *[*lengths, 0, 0][:2])


def _check_new(times: tuple[tree.Var, ...], atom: tree.Atom | tree.Frame, origin: Origin | None) -> None:
    """Raises TranslatorError if a variable of a time occurs in the atom, or twice."""
    for place, time in enumerate(times):
        if time in (*tree.parts(atom), *times[:place]):
            hint = "give the time a name of its own, and compare the two"
            raise TranslatorError(f"`?{time.name}` has a value already", origin, hint)


def _milliseconds(argument: tree.Term) -> int:
    """Returns the length of time of a constant (integer ms).

    Raises:
        TranslatorError: It is none, or is less than 0.
    """
    term = literal(argument.lexical, argument.space) if isinstance(argument, tree.Const) else None
    value = None if term is None else duration(term)
    length = None if value is None or value.months else value.seconds * 1000
    if length is None or length < 0 or length != int(length):
        hint = 'write a duration of days, hours, minutes, seconds or ms: `"PT10S"^^xs:dayTimeDuration`'
        raise TranslatorError("this is not a length of time", argument.origin, hint)
    return int(length)


def first_window(formulas: Sequence[object]) -> tree.External | None:
    """Returns the first window among formulas; None if there is none."""
    windows = (formula for formula in formulas if isinstance(formula, tree.External) and is_window(formula))
    return next(windows, None)
