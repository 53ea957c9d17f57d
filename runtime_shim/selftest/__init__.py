"""Every fixture on a device, and a report."""
