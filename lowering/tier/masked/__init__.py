"""Kernels whose lanes LLVM would not bring together as SASS does: with the masks of the rules."""
