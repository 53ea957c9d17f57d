"""AMD's own pseudocode as witness for RDNA3's semantics."""
