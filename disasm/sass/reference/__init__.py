"""The instruction set to read: a page a mnemonic, made of the tables that decoder and assembler
run on.  Imports tables, codec and nothing above them; `sassxlate isa` prints it."""

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
