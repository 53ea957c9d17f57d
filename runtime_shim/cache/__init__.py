"""Files kept on disk between runs, and their tag.  May import `paths`."""
