"""Training of a model, on one GPU or several."""
