"""Copies and reductions between global tensors and shared memory, by tensor maps."""
