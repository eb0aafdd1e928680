"""Builders: a Planned Production System to a job that runs it."""
