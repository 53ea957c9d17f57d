"""Checks that an answer must pass before it is used."""
