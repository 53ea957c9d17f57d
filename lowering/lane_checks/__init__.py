"""Checks, at translation, of code that writes EXEC: every lane is somewhere, and in one place."""
