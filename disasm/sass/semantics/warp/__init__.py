"""Semantics of what a whole warp computes together."""
