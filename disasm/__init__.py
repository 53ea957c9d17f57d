"""The contents of a CUDA program's file: containers and the two instruction sets."""
