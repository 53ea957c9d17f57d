"""Pictures of graphs as values, and as text, SVG and dot.  May import the analyses."""
