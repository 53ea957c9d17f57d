"""Instructions of newer architectures said in forms that a model has seen."""
