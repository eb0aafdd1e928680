"""The tests of squall."""
