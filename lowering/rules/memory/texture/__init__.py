"""Rules for texture reads: where a texel is, what is in it, and how texels are filtered."""
