"""Pictures of the documentation."""
