"""Judges any library with the names of a BLAS; one table of the routines, routines.yaml, generates all parts."""
