"""Rules for calls that leave the kernel."""
