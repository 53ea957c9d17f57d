"""Instruction selection: kernels block by block, one instruction with its guard, rewritten
regions."""
