"""Settings of the whole process for a run: signals and the garbage collector."""
