"""Control-flow graphs of SASS kernels and the analyses that stand on them."""
