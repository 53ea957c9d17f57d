"""A translation shown: side by side, graphs, occupancy, pages, proofs of whole kernels."""
