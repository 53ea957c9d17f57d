"""Proofs about masks of lanes: that two programs keep EXEC and all that reads it equal."""
