"""Rules for loads, stores, atomics, textures, surfaces and asynchronous copies."""
