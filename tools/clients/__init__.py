"""Python packages of others, run over the shim."""
