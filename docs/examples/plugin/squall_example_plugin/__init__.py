"""A language of one-line rules and a planner that joins as written, for squall."""
