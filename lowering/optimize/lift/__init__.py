"""Whole regions through the semantics, simplified and written again."""
