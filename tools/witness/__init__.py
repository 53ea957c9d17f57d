"""Other implementations as witnesses."""
