"""The text that a model reads and writes."""
