"""Sums and comparisons of 64-bit integers, which nvcc makes of two instructions each."""
