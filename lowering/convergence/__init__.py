"""How lanes that diverge come together again: masks, synchronisation points, barriers, control
flow."""
