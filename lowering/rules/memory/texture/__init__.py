"""Rules for texture reads: a texel's address, its channels, and filtering."""
