"""Instructions to and from LLVM's text."""
