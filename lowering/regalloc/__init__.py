"""Maps SASS registers to RDNA3 registers."""
