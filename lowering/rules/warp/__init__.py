"""Rules for what a whole warp computes together."""
