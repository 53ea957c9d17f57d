"""Between RDNA3's 32-bit words, instructions and text.  May import the tables and `instruction`."""
