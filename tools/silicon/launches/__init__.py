"""Whole launches on an NVIDIA GPU: control flow, barriers and fences against the interpreter."""
