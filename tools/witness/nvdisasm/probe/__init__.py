"""Which bits of a word mean what, found by asking nvdisasm."""
