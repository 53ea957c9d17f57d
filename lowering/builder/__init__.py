"""The interface of a lowering rule, and the state of the kernel under construction."""
