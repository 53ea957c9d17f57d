"""Proofs of a change to RDNA3, a step at a time."""
