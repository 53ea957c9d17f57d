"""Semantics of what computes on one lane's values."""
