"""The contract with the launcher: kernel arguments, host calls, the layout of a module."""
