"""LLVM's tools as witness for RDNA3."""
