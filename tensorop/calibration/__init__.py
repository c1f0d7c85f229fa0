"""Fits board models to measurements of a board: `platforms check --runner ssh://`, `calibration:` of platforms."""
