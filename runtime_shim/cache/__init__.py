"""What is kept on disk between runs, and under which tag.  May import `paths`."""
