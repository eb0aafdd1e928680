"""Lowering: rules over variables become operators over columns."""
