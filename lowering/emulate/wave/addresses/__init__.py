"""What a kernel's code shows of its addresses before any of it is compiled."""
