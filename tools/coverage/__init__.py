"""Which opcode forms occur, and which have semantics, a measurement, and a rule."""
