"""Where the bits of a NaN can be seen, and how large float results can be."""
