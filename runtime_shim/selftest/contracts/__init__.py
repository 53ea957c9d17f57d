"""What each fixture kernel computes, in NumPy."""
