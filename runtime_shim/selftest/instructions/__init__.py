"""One instruction at a time on a device, against its semantics."""
