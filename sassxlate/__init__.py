"""sassxlate: runs precompiled CUDA programs (SASS) on AMD RDNA3, or on no GPU at all."""

import resource
import sys

__version__ = "0.1.0"

if resource.getrlimit(resource.RLIMIT_FSIZE)[0] != resource.RLIM_INFINITY:
    # CPython leaves compiled modules that such a limit cut short, and cannot start from them again.
    sys.dont_write_bytecode = True
