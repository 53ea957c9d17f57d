"""PTX: NVIDIA's own assembler and linker, where they are found, make machine code of it."""
