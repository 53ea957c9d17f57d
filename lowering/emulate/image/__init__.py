"""The host image: its format, and the object files that it is linked with."""
