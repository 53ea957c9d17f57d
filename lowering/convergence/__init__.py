"""Divergence and reconvergence of lanes: masks, synchronisation points, barriers, control flow."""
