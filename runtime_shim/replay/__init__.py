"""Launches recorded once and run again, here or in the interpreter."""
