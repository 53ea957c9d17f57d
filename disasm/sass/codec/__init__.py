"""Between SASS words, instructions and text.  May import the tables and `instruction`."""
