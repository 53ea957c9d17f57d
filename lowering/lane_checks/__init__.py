"""Checks code that writes EXEC at translation: each lane is in exactly one place."""
