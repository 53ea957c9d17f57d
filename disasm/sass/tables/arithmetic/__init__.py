"""Encoding rows of instructions that compute on one lane's values."""
