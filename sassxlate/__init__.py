"""sassxlate: runs precompiled CUDA programs (SASS) on AMD RDNA3, or on no GPU at all."""

__version__ = "0.1.0"
