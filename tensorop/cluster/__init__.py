"""Trials on the workers of a Dask cluster: `--workers` (docs/workers.md)."""
