"""From SASS control-flow graphs to AMD code objects, and from code objects to host code."""
