"""The benchmark: workloads, what runs them, and what is measured."""
