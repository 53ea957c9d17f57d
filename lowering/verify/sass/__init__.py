"""The left side of a proof: SASS over terms."""
