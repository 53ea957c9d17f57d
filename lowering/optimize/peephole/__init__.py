"""Small rewrites of a few instructions."""
