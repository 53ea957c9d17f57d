"""The straight-line region: what it is, its canonical text, the RDNA3 that may stand for it."""
