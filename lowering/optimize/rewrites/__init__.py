"""Rewrites of a few RDNA3 instructions, as data: each is proved for all operands."""
