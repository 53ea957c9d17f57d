"""Cheaper code for a region, each change proved.  May import `verify.steps` and `select`."""
