"""Cubins, sections and code objects as text, in nvdisasm's and llvm-objdump's shape: `cubin` has
whole cubins.  Nothing is re-exported: `ls` reads records alone, without the decoder's tables."""
