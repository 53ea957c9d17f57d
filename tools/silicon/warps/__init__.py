"""Words that reach other lanes or memory, against an NVIDIA GPU."""
