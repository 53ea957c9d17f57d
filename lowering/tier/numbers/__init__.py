"""Numbers of one lane as LLVM values, and instructions that stand in for others."""
