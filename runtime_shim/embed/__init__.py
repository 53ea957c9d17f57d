"""Programs and libraries that carry their translation: `sassxlate embed`."""
