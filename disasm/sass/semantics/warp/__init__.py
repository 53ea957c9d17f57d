"""Semantics of operations of a whole warp."""
