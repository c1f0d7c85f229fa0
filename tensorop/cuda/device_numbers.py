"""A platform's numbers for kernels and their models."""

from __future__ import annotations

from tensorop.cuda.kernels import c_size, in_size, tf32_products
from tensorop.model.platform import Platform

_KNOWN = ("multiprocessors", "macs", "fmas", "shared_a_cycle", "l2_a_cycle", "memory_a_cycle", "shared_all")


def device_numbers(platform: Platform, dtype: str = "bf16", epilogue: bool = False) -> dict[str, int]:
    """The numbers that families get: the device's; the bytes of an element of inputs and result; `tf32_products`;
    `with_epilogue`: 1 where kernels have epilogues."""
    numbers = {name: value for name, value in (platform.device or {}).items() if isinstance(value, int)}
    of_type = {"in_size": in_size(dtype), "c_size": c_size(dtype), "tf32_products": tf32_products(dtype)}
    of_type["with_epilogue"] = int(epilogue)
    return {**{name: numbers[name] for name in _KNOWN}, "shared_most": numbers["shared"], **of_type}
