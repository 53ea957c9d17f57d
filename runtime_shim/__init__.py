"""Replacements for NVIDIA's driver and runtime: native libraries, the service, the cache."""
