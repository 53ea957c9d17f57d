"""Terms of z3."""
