"""The functions of the driver that kernels call, and the records that they leave for the host."""
