"""What a run shows of itself: progress, a summary, and metrics."""
