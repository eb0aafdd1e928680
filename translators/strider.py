"""Strider to a Translated Production System, by SPARQL's translator: it knows the window of all streams as well."""

from __future__ import annotations

from squall.translators.sparql import translator

__all__ = ["translator"]
