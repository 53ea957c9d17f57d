"""What a rule sees and writes, and the state of the kernel that is being built."""
