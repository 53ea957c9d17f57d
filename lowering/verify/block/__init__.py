"""Proofs of a block of RDNA3 against its block of SASS."""
