"""Translators: tree to Translated Production System, a file per language."""
