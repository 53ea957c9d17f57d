"""HTML pages of graphs, each with its script and style.  May import the rest of cfg."""
