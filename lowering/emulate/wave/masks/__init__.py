"""What the code shows of EXEC: where all lanes are active, and where none may be."""
