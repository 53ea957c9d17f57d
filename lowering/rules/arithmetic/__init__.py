"""Rules for what computes on one lane's values."""
