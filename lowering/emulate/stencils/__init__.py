"""The baseline tier: host code of single instructions, copied and patched by the native library."""
