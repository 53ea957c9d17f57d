"""Shorter code between blocks, which moves lanes; :mod:`..verify.masks` proves it."""
