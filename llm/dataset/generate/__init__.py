"""Random CUDA C++, for additional kernels."""
