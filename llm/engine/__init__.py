"""The model as an engine.  May import the gate and inference."""
