"""Libraries with epilogues on a platform: whether verification accepts one, and knows what is wrong."""

from __future__ import annotations

from pathlib import Path

from tensorop.commands import verify
from tensorop.model.verdict import Seed
from tests.support import products


def accepted(platform: str, folder: Path, dtypes: tuple[str, ...] = ("f32", "f64")) -> Path:
    """The product of fixed winners, after the quick verification of its calls with and without an epilogue."""
    root = products.install(platform, folder, dtypes, epilogue=True)
    opened, target = products.reached(root)
    verdicts = list(verify.quick(opened, target, Seed.draw()))
    assert len(verdicts) == 2 * len(opened.dtypes) * len(target.verify_vlens)
    for verdict in verdicts:
        assert verdict.ok, verdict.outcome.message
    return root
