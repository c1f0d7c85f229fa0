"""Warm start: winners of earlier searches, read from journals and winners files."""
