"""The expected results of each fixture kernel, in NumPy."""
