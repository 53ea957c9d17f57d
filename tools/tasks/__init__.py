"""What people ask of a CUDA program, and how many commands and seconds each tool takes to answer.

``tasks.toml`` declares the tasks, ``sample.cu`` is the program; ``python -m tools.tasks`` measures.
"""
