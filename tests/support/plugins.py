"""A user's own folder with one small plug-in of each kind."""

from __future__ import annotations

from pathlib import Path

PLATFORM = """\
schema: 1
name: my-board
parent: generic
description: a board of the user's own
primitives: [my-primitives]
caches:
  - {size: 16384, ways: 4, line: 64}
"""

# The whole grid goes past every block, so that small ones cost an emulator a tenth of the time.
SMALL_BLOCKS = """\
schema: 1
name: {name}
parent: {parent}
description: small blocks
tunables: {{mc: [64, 256, 2048], kc: [64, 128], nc: [128, 256]}}
"""
# Two VLENs are several: the searches, trees and specialisations of rvv's own three differ in number alone.
TWO_VLENS = "vlens: [128, 256]\nverify_vlens: [128, 256]\n"  # test_dtypes_qemu.py verifies at others too

# The scalar set's primitives under another name, one of them said differently: `fma` by the C library's builtin.
PRIMITIVES_FROM, PRIMITIVES = "scalar", "my-primitives"

TUNER = '''\
"""Points from the last to the first."""

from tensorop.model.point import Point
from tensorop.space import Space

DESCRIPTION = "every legal point, the last first"


class Tuner:
    def __init__(self, space: Space, seed: int) -> None:
        self._left = list(space.points())
        self._told: set[Point] = set()

    def ask(self, n: int = 1) -> list[Point]:
        self._left = [point for point in self._left if point not in self._told]
        found, self._left = self._left[-n:][::-1], self._left[:-n]
        return found

    def tell(self, point: Point, cost: float | None) -> None:
        self._told.add(point)
'''

OPERATOR = """\
schema: 1
name: axpy
description: y = alpha * x + y
dims: [n]
dtypes: [f32, f64]
operands:
  x: {role: in, shape: [n]}
  y: {role: inout, shape: [n]}
parameters: {alpha: 1}
layouts:
  - {inc: 1}
  - {inc: 2}
micro: {n: 1024 * lanes}
micro_layout: {inc: 1}
defaults: {chunk: "4096"}
blocking:
  tunables: {chunk: [1024, 2048, 4096, 8192]}
  constraints:
    - {must: "chunk * size <= 2 * l1", reason: "a chunk of x and y stays in L1"}
suites:
  quick: [[1000], [4096], [100000]]
"""

REFERENCE = '''\
"""axpy: two flops an element."""

from tensorop.model.contract import Contract


class Axpy(Contract):
    CONTROL_TILE = {"elements": 4}
    CONTROL_SHAPE = (64,)

    def work(self, problem):
        return 2.0 * problem.dims["n"]

    def expected(self, problem, given):
        x, y = (buffer.data.astype("f8") for buffer in given.buffers)
        return {"y": (given.scalars[0] * x + y, 1e-6 * (abs(given.scalars[0] * x) + abs(y)))}

    def tile(self, point, lanes, reads):
        return {"elements": point["unroll"] * lanes}

    def quick_grid(self, dtype, tile, rng):
        return []
'''

# What every operator has; this one's kernels are only searched, by a runner that pretends.
NEVER_BUILT = ("adapter.c", "binding.py", "candidate.c.j2", "product/product.yaml")

TEMPLATE = """\
---
strategy: a loop over vectors, unrolled
needs: [splat, load, load_tail, store, store_tail, fma_vv]
tunables:
  unroll: [1, 2, 4, 8]
constraints:
  - {must: "unroll <= registers // 2", reason: "x and y of every unrolled step are in registers"}
---
{% for i in range(unroll) %}
{{ prefetch("x + %d * lanes" % i) }};
{% endfor %}
"""


def write(folder: Path, root: Path) -> Path:
    """The folder, filled. root: the checkout, whose scalar primitives are copied."""
    for kind in ("platforms", "primitives", "tuners", "templates/axpy/kernels"):
        (folder / kind).mkdir(parents=True, exist_ok=True)
    (folder / "platforms" / "my-board.yaml").write_text(PLATFORM)
    primitives = (root / "primitives" / f"{PRIMITIVES_FROM}.yaml").read_text()
    own = primitives.replace(f"name: {PRIMITIVES_FROM}\n", f"name: {PRIMITIVES}\n").replace(
        '"(($acc) + ($v) * ($s))"', '"(($v) * ($s) + ($acc))"'
    )
    assert own.count(f"name: {PRIMITIVES}") == 1
    (folder / "primitives" / f"{PRIMITIVES}.yaml").write_text(own)
    (folder / "tuners" / "backwards.py").write_text(TUNER)
    (folder / "templates" / "axpy" / "operator.yaml").write_text(OPERATOR)
    (folder / "templates" / "axpy" / "reference.py").write_text(REFERENCE)
    (folder / "templates" / "axpy" / "kernels" / "plain.c.j2").write_text(TEMPLATE)
    for name in NEVER_BUILT:
        (folder / "templates" / "axpy" / name).parent.mkdir(exist_ok=True)
        (folder / "templates" / "axpy" / name).write_text("")
    return folder


def small_blocks(folder: Path, parent: str, more: str = "") -> tuple[str, ...]:
    """Options that name a platform like `parent` with small blocks, in a plug-in folder. more: lines of its file."""
    (folder / "platforms").mkdir(parents=True)
    text = SMALL_BLOCKS.format(name=f"{parent}-small", parent=parent) + more
    (folder / "platforms" / f"{parent}-small.yaml").write_text(text)
    return ("--platform", f"{parent}-small", "--plugins", str(folder))
