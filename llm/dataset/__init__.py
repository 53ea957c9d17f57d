"""Proved pairs that a model learns from.  May import the gate and inference."""
