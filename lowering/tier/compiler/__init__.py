"""LLVM in a process of its own: it may end its process, by exit or by a signal, and that must not
be the user's (:mod:`.process` asks, :mod:`.__main__` answers with :mod:`.passes`)."""
