"""Proofs of rewritten RDNA3, one step at a time."""
