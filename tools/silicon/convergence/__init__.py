"""How an NVIDIA GPU keeps the lanes of a warp together: small kernels in SASS that say who runs."""
