"""Whole cubins as text in nvdisasm's shape: directives, labels, symbols, relocated operands."""

from sassxlate.disasm.listing.cubin import Document, ListingOptions

__all__ = ["Document", "ListingOptions"]
