"""Restates instructions of newer architectures in forms that a model has seen."""
