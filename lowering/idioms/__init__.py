"""nvcc's software quotients and roots, recognised by what they compute."""
