"""Encoding rows of control flow and of the system's instructions."""
