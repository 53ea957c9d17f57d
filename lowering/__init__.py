"""From SASS control-flow graphs to gfx1100 code objects, and from code objects to host code."""
