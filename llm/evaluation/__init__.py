"""Evaluation of a model on programs held out of training."""
