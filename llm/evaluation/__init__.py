"""What a model is worth on programs held out of training."""
