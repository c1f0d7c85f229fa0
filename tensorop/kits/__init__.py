"""Tuning kits: programs that measure a product on a machine without tensorop, and the import of their results."""
