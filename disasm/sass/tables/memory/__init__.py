"""Encoding rows of loads, stores, atomics, textures, surfaces and asynchronous copies."""
