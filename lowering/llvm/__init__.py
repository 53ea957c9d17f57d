"""LLVM IR: its text, the semantics' operations over it, floats that the host does not compute
alike."""
