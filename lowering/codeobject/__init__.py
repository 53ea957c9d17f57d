"""AMD code objects: what is in one, and the ELF file that holds it."""
