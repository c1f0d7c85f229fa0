"""tensorop: tuned, proven kernels for BLAS-style operators as a C library."""

from __future__ import annotations

__version__ = "0.1.0"
