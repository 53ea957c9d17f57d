"""nvdisasm as witness for SASS."""
