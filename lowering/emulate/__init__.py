"""RDNA3 machine code to host machine code: one wave is one function over vectors of 32 lanes."""
