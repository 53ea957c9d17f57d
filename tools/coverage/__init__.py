"""The opcode forms that occur, and whether they have semantics, a measurement, and a rule."""
