"""tensorop: tuned, proven kernels for BLAS-style operators as a C library."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tensorop.api import Library as Library
    from tensorop.api import load as load
    from tensorop.tuning import tune as tune

__version__ = "0.1.0"

# Public names by the module they lie in, imported at first use: the command line does not wait for all of them.
_PUBLIC = {"Library": "tensorop.api", "load": "tensorop.api", "tune": "tensorop.tuning"}


def __getattr__(name: str) -> Any:
    if name in _PUBLIC:
        return getattr(import_module(_PUBLIC[name]), name)
    raise AttributeError(f"module 'tensorop' has no attribute '{name}'")


def __dir__() -> list[str]:
    return [*globals(), *_PUBLIC]
