"""The straight-line region: its definition, its canonical text, the RDNA3 that may implement it."""
