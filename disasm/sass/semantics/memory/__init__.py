"""Semantics of loads, stores, atomics and asynchronous copies."""
