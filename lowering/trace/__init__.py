"""One launch on both sides: points, lockstep, observations, memory history, recordings."""
