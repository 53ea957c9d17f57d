"""The page about the layout common to all instructions: fixed fields, scheduling, how to read a
form."""

from __future__ import annotations

import re

from sassxlate.disasm.sass.reference.numbers import span
from sassxlate.disasm.sass.tables.arithmetic import forms as arithmetic
from sassxlate.disasm.sass.tables.spec import GENERATIONS
from sassxlate.disasm.sass.tables.special_registers import special_name

_TEXT = """\
# The common layout

Every instruction is a word of 128 bits, little-endian; bit 0 is the lowest of the first byte.

```
127 ..CCCCCC CCCCCCCC CCCCCCC. ....0... 96
 95 ........ ........ ........ ........ 64
 63 ........ ........ ........ ........ 32
 31 ........ ........ GGGG0000 00000000  0
```

| | bits | |
|---|---|---|
| 0, 1 | 0-11, 91 | the opcode; other fixed bits of a form are shown in the same way |
| G | 12-14, 15 | the guard: P0 to P6 or PT (7), and `!`; of uniform instructions of the file UP |
| C | 105-125 | scheduling, see below |
| letters | | modifiers and operands; the table below a picture names them |
| `.` | | zero in what compilers write; strict decoding refuses ones |
| `-` | | no meaning, compilers write zeros |
| `+` | | no meaning, compilers write ones |
| `!` | | reserved: refused even without strict decoding |

## Scheduling

| bits | |
|---|---|
| 105-108 | stall: cycles until the next instruction of the warp may issue |
| 109 | yield; where it is clear the reuse bits mean something else |
| 110-112 | the scoreboard that is released when the result is written; 7 for none |
| 113-115 | the scoreboard that is released when the operands have been read; 7 for none |
| 116-121 | the scoreboards to wait for, one bit each |
| 122-125 | reuse: the operand's register is kept in the operand cache |

## How to read a form

The heading is the template of the text. `Pu?` is left out where it has its default value, `Pp:X` is
printed only with the modifier X, words in quotation marks stand for themselves. Modifiers print
after the mnemonic, each with a dot; those of one name that differ from form to form are numbered.
`-` among their values prints nothing, and values that are not listed are undefined.

Operands are named by role: `Rd` is the destination, `Ra`, `Rb`, `Rc` are the sources, `Pu` and `Pv`
predicates that are written, `Pp` and `Pq` those that are read; `UR` and `UP` are the uniform files.
A role exists whether or not the text shows it. Uniform registers have six bits up to sm_90, eight
from sm_100 on. The same bit may belong to several operands, or to a modifier that is decided by
them: the picture shows the first.

Arithmetic instructions share the places of their sources; bits 9 to 11 choose the form, the numbers
are the lowest bits of the operands (the tables' module `forms`):

{forms}

## Special registers

What S2R, CS2R and S2UR read, by number; a name that not all architectures have with those that do.

{specials}
"""


def _forms_table() -> str:
    lines = (arithmetic.__doc__ or "").splitlines()
    rows = [line for line in lines if re.match(r"form|\d  ", line)]
    return "\n".join(["```", *rows, "```"])


def _specials_table() -> str:
    out = ["| number | name |", "|---|---|"]
    for number in range(256):
        known: dict[str, list[int]] = {}
        for generation in GENERATIONS:
            known.setdefault(special_name(number, generation), []).append(generation)
        known.pop(f"SR{number}", None)
        if known:
            everywhere = len(GENERATIONS)
            shown = (
                f"`{name}`" + f" ({span(where)})" * (len(where) < everywhere)
                for name, where in known.items()
            )
            out.append(f"| {number} | {', '.join(shown)} |")
    return "\n".join(out)


def layout_page() -> str:
    """The page."""
    return _TEXT.replace("{forms}", _forms_table()).replace("{specials}", _specials_table())
