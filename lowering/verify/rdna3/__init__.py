"""The right side of a proof: RDNA3 over terms."""
