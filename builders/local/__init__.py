"""The in-process engine: a job in this Python process, with checkpoints."""
