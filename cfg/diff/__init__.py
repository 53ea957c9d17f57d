"""Finds the blocks of two kernels that are the same code.  May import the views."""
