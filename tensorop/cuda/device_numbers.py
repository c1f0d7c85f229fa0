"""A platform's numbers for kernels and their models."""

from __future__ import annotations

from tensorop.model.platform import Platform

_KNOWN = ("multiprocessors", "macs", "shared_a_cycle", "l2_a_cycle", "memory_a_cycle", "shared_all")


def device_numbers(platform: Platform, c_size: int = 2) -> dict[str, int]:
    """The numbers that families get: the device's, and the bytes of an element of the result."""
    numbers = {name: value for name, value in (platform.device or {}).items() if isinstance(value, int)}
    return {**{name: numbers[name] for name in _KNOWN}, "shared_most": numbers["shared"], "c_size": c_size}
