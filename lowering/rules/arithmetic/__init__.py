"""Rules for computations on one lane's values."""
