"""The languages of RIF: a tree, and its two syntaxes."""
