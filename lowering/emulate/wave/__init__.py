"""One wave as one LLVM function over vectors of 32 lanes.  May import `image` and `options`."""
