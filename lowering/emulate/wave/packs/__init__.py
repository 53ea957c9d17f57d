"""Runs of instructions for active lanes side by side, eight at a time."""
