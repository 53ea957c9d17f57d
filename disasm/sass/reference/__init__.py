"""Reference pages of the instruction set, one per mnemonic, made from the tables that decoder and
assembler use.  Imports tables, codec and nothing above them; `sassxlate isa` prints it."""

from sassxlate.disasm.sass.reference.layout import layout_page
from sassxlate.disasm.sass.reference.pages import (
    all_pages,
    architectures,
    example_words,
    listing,
    mnemonics,
    page,
)

__all__ = [
    "all_pages",
    "architectures",
    "example_words",
    "layout_page",
    "listing",
    "mnemonics",
    "page",
]
