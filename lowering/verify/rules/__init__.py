"""Proofs of every rule in every form, and tests on inputs where the solver cannot decide."""
