"""The assembly model: a translation engine whose every answer is verified."""
