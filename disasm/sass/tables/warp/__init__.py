"""Encoding rows of what a whole warp computes together."""
