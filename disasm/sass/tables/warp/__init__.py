"""Encoding rows of operations of a whole warp."""
