"""CUDA C++ made at random, for kernels that nobody wrote."""
