"""Writes random CUDA C++ and compiles it: kernels for training pairs, besides those of files."""
