"""Third-party Python packages, run over the shim."""
