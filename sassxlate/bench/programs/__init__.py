"""Public programs: built, run, compared."""
