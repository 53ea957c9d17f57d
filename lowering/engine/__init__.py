"""The one way in for code that the rules did not write: proposed, judged by one gate, put in."""
