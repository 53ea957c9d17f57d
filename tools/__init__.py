"""Tools that make and check the project's data; run as `python -m tools.NAME` in the repository's
root."""
