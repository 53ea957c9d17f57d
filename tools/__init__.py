"""What makes and checks the project's data; run as `python -m tools.NAME` in the repository's
root."""
