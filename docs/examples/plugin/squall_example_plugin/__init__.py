"""A language of one-line rules, a planner that joins as written, and a function, for squall."""
