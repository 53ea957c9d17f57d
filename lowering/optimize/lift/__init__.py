"""Whole regions lifted through the semantics, simplified and lowered again."""
