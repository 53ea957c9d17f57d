"""An executor of RDNA3 that is not ours, on the very dispatches that AMD's runtime made.

``SASSXLATE_RECORD_DISPATCHES=FOLDER sassxlate run --emulated-card -- ./app`` writes each dispatch
to a file: the packet, the memory that the card has before it, and the pages that our executor
changed (`record.py`).  Another executor runs it again, in a process of its own whose memory is at
the same addresses, and memory is compared to the bit (`replay.py`).  Any callable that takes a
dispatch can be one; `tinygrad.py` is the emulator in tinygrad's repository.  Where memory differs,
`single.py` runs each of its instructions on AMD's pseudocode, from the same registers, and names
those that do something else.
"""
