"""An NVIDIA GPU as witness: programs that measure, and what they measured."""
