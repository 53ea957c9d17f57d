"""The operations that semantics are written over; re-exports `interface`."""
