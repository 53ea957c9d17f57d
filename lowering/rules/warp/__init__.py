"""Rules for operations of a whole warp."""
