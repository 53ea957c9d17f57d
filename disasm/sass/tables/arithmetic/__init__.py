"""Encoding rows of what computes on one lane's values."""
