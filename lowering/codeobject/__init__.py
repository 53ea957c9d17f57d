"""AMD code objects: their contents, and the ELF file around them."""
