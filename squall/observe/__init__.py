"""Observability of a run: progress, a summary, and metrics."""
