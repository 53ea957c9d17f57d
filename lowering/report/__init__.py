"""Reports on a translation: side by side, graphs, occupancy, pages, proofs of whole kernels."""
