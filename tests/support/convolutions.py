"""conv2d's variants with small blocks before the judge."""

from __future__ import annotations

from collections.abc import Mapping

from tensorop.model.verdict import Verdict
from tensorop.specs import operators
from tests.support import variants

operator = operators.load("conv2d")

PIPELINED = {"ku": 4, "ahead": 1, "late": 2, "lead": 4, "fetch": 6, "c_ahead": 1}
SMALL_BLOCKS = {"mc": 32, "kc": 64, "nc": 128}


def verdict(platform_name: str, template: str, dtype: str, chosen: Mapping[str, int]) -> Verdict:
    """As `variants.verdict`."""
    return variants.verdict(operator, platform_name, template, dtype, {**SMALL_BLOCKS, **chosen})
