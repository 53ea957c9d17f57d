"""Where the bits of a NaN are observable, and bounds of float results."""
