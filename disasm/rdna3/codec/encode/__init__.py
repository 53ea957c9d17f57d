"""Instructions to words, one module per family of encodings."""
