"""Models that propose, and what constrains their answers."""
