"""Which lanes run together, and what must not depend on it."""
