"""Which SASS register stands in which RDNA3 register."""
