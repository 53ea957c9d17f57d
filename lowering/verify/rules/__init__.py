"""Proofs of every rule over every form, and what inputs say where the solver does not."""
