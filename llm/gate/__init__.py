"""What an answer must be before it is taken."""
