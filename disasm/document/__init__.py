"""Whole cubins as text in nvdisasm's shape: directives, labels, symbols, relocated operands."""

from .writer import Document, Options

__all__ = ["Document", "Options"]
