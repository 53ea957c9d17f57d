"""Whole kernels without loops, from SASS to final machine code: one lane, memory as contents."""
