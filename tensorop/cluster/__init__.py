"""Runs trials on the workers of a Dask cluster: `--workers` (docs/how-to/distribute-trials.md)."""
