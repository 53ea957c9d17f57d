"""What is in a CUDA program's file: its containers and the two instruction sets."""
