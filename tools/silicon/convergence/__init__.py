"""How an NVIDIA GPU schedules the lanes of a warp: small kernels in SASS that record which lanes
run."""
