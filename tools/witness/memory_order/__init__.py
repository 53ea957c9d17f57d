"""LLVM as witness of memory order: the same atomics by our rules and by LLVM."""
