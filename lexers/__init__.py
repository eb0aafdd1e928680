"""Lexers: text to tree, a file and a grammar per language."""
