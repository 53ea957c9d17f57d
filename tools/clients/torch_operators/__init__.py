"""PyTorch's operators, each compared with the CPU's result and with a real GPU's."""
