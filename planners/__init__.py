"""Planners: a Translated Production System to a Planned Production System."""
