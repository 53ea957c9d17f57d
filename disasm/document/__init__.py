"""Whole cubins as text in nvdisasm's shape: directives, labels, symbols, relocated operands."""

from .writer import Options, document

__all__ = ["Options", "document"]
