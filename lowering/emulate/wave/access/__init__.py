"""Loads, stores and atomic operations of a wave: LDS, global, flat and scratch memory."""
