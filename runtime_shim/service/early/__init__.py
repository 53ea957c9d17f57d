"""Kernels that are prepared before they are needed."""
