"""Out-of-line functions of accesses, in LLVM IR."""
