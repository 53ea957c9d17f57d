"""LLVM IR: its text, the semantics' operations over it, and floats that the host computes
differently."""
