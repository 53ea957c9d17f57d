"""The host image: its format, and the object files linked into it."""
