"""Property paths (SPARQL 1.1 Query, section 9)."""

from __future__ import annotations

from dataclasses import dataclass

from squall.rdf import Term


@dataclass(frozen=True)
class Inverse:
    """The inverse path ``^path``."""

    path: Path

    def __str__(self) -> str:
        return f"(^{self.path})"


@dataclass(frozen=True)
class Steps:
    """The sequence ``path/path``, of two or more."""

    paths: tuple[Path, ...]

    def __str__(self) -> str:
        return f"({'/'.join(map(str, self.paths))})"


@dataclass(frozen=True)
class Alternative:
    """The alternative ``path|path``, of two or more."""

    paths: tuple[Path, ...]

    def __str__(self) -> str:
        return f"({'|'.join(map(str, self.paths))})"


@dataclass(frozen=True)
class Repeat:
    """The repetition ``path*``, ``path+`` or ``path?``, by its mark."""

    path: Path
    mark: str

    def __str__(self) -> str:
        return f"({self.path}{self.mark})"


@dataclass(frozen=True)
class Negated:
    """The negated property set ``!(a|^b)``: any other predicate, forward, and also backward if some of them are
    inverse.
    """

    forward: tuple[Term, ...]
    backward: tuple[Term, ...] = ()

    def __str__(self) -> str:
        return f"!({'|'.join([*self.forward, *(f'^{term}' for term in self.backward)])})"


Path = Term | Inverse | Steps | Alternative | Repeat | Negated
