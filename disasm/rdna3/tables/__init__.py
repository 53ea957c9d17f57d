"""RDNA3's encodings as data: opcodes, operand codes, field layouts, the kernel descriptor."""
