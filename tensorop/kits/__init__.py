"""Tuning kits: what a machine without tensorop measures of a product, and how that comes back into it."""
