"""Verification: candidates on a quick grid, libraries on the full one, and verification itself by negative controls."""
