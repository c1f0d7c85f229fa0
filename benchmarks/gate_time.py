"""How long the gates and the rendering of one point take for an untrusted template.

    python benchmarks/gate_time.py [--platform generic avx512 rvv cortex-a53] [--points 12]

Each shipped template of gemm stands for one of a language model: it is gated, rendered in a process of its own for each
point, and its C is read and proved, as before every trial. The first rendering starts the process that others are
forked from, and is not counted. Prints the processor time of all these processes, which other programs do not change
much, and the time that passed: median and 90th percentile, in milliseconds.
"""

from __future__ import annotations

import argparse
import contextlib
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import psutil

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tensorop.author import offline
from tensorop.author.llm.rounds import NAME
from tensorop.model.kernel import KernelText
from tensorop.render import instantiate
from tensorop.render.texts import Texts
from tensorop.specs import operators, platforms
from tensorop.trial import judging

OPERATOR = operators.load("gemm")


def spent_ms() -> np.ndarray:
    """Processor time of this process and those below it, and the time of day, in milliseconds."""
    processor = time.process_time()
    for child in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.NoSuchProcess):
            processor += sum(child.cpu_times()[:4])  # user, system, and those of its children that ended
    return 1000 * np.array([processor, time.perf_counter()])


def times(platform_name: str, points: int) -> Iterator[tuple[str, np.ndarray]]:
    """(template, milliseconds) of points spread over each template's space."""
    platform = platforms.load(platform_name)
    for shipped in offline.templates(OPERATOR.folder, OPERATOR.name):
        if instantiate.missing_primitives(platform, shipped, "f32"):
            continue
        template = replace(shipped, author=NAME)
        space = instantiate.micro_space(platform, template, "f32")
        for index in [0, *judging.spread(space, points)]:
            variant = instantiate.variant(OPERATOR, template, "f32", space.at(index))
            began = spent_ms()
            text = Texts().kernel(OPERATOR, platform, variant)
            spent = spent_ms() - began
            assert isinstance(text, KernelText), text
            yield template.name, spent


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--platform", nargs="+", default=["generic", "avx512", "rvv", "cortex-a53"])
    parser.add_argument("--points", type=int, default=12)
    given = parser.parse_args()
    print(f"{'platform':12} {'template':10} {'points':>6} {'processor':>9} {'90 %':>8} {'passed':>8} {'90 %':>8}")
    every: list[np.ndarray] = []
    for platform in given.platform:
        found: dict[str, list[np.ndarray]] = {}
        for name, spent in times(platform, given.points):
            found.setdefault(name, []).append(spent)
        for name, (_, *warm) in found.items():
            every += warm
            show(platform, name, warm)
    show("all", "", every)


def show(platform: str, name: str, spent: list[np.ndarray]) -> None:
    processor, passed = np.array(spent).T
    values = [value for one in (processor, passed) for value in (np.median(one), np.percentile(one, 90))]
    print(f"{platform:12} {name:10} {len(spent):6}  " + " ".join(f"{value:8.0f}" for value in values), flush=True)


if __name__ == "__main__":
    main()
