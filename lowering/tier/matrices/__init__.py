"""Matrices whose elements are spread over a warp."""
