"""An NVIDIA GPU as witness: programs that measure, and their results."""
