"""The meaning of the bits of a word, found by probing nvdisasm."""
