"""Execution of a physical plan: micro-batches, their stages, and the state between them."""
