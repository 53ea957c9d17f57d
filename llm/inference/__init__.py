"""Models that propose answers, and the constraints on these answers."""
