"""Figures that anyone can repeat.  May import everything but the command line."""
