"""HTML pages of graphs, each with its script and style sheet.  May import the rest of cfg."""
