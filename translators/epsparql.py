"""EP-SPARQL to a Translated Production System, by SPARQL's translator: it knows patterns over time as well."""

from __future__ import annotations

from squall.translators.sparql import translator

__all__ = ["translator"]
