"""Which blocks of two kernels are the same code.  May import the views."""
