"""What a search found and a library is made of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tensorop.model.kernel import Variant
from tensorop.model.point import Point


@dataclass(frozen=True)
class StartPoint:
    """What an earlier search found: a template's name, and tunables of its micro-kernel and its blocking."""

    template: str
    point: Point


@dataclass(frozen=True)
class WarmStart:
    """Where one dtype's search begins."""

    sure: tuple[StartPoint, ...] = ()  # tried however little time there is; their kernels go on to whole problems
    hints: tuple[StartPoint, ...] = ()  # other configurations, tried after what is expected of the platform


@dataclass(frozen=True)
class Leaf:
    """The end of a dispatch tree: which variant."""

    variant: int


@dataclass(frozen=True)
class Split:
    """feature <= threshold: low, else high. A feature is one of the operator's
    dispatch features, by name, or an expression over those of them that are no expressions."""

    feature: str
    threshold: int
    low: Leaf | Split
    high: Leaf | Split


@dataclass(frozen=True)
class Tree:
    """Which variant by shape."""

    root: Leaf | Split
    # geomean of (chosen cost / best variant's cost) - 1 over measured shapes left out of growing it; None: not known
    regret: float | None = 0.0
    vlen: int = 0  # bits of the vectors it was grown for; 0: the library has one tree


@dataclass(frozen=True)
class Winners:
    """One dtype of a library: its variants and the trees that choose among them."""

    dtype: str
    variants: tuple[Variant, ...]
    # one, or one a measured VLEN in rising order; any other VLEN has the tree of the next shorter one, else the first
    trees: tuple[Tree, ...]
    direct: Variant | None = None  # serves the smallest problems; trees know it by the number after the variants
    unasked: int = 0  # flops of the largest problems that it serves without a tree

    @property
    def all(self) -> tuple[Variant, ...]:
        """By number: those that a tree chooses among, then the direct one."""
        return self.variants if self.direct is None else (*self.variants, self.direct)


def trees_of(told: Mapping[str, Any]) -> tuple[Tree, ...]:
    """The trees of a dtype in a manifest, VLENs rising. Raises KeyError, TypeError or ValueError for what are none."""
    count = len(told["variants"])
    if "by_vlen" not in told:
        return (Tree(_node(told["tree"], count), told["regret"]),)
    trees = (Tree(_node(of["tree"], count), of["regret"], int(vlen)) for vlen, of in told["by_vlen"].items())
    return tuple(sorted(trees, key=lambda tree: tree.vlen))


def _node(told: Mapping[str, Any], count: int) -> Leaf | Split:
    """count: of the variants among which it chooses."""
    if "variant" in told:
        if not 0 <= int(told["variant"]) < count:
            raise ValueError(f"a tree chooses variant {told['variant']} of {count}")
        return Leaf(int(told["variant"]))
    below = (_node(told[side], count) for side in ("low", "high"))
    return Split(str(told["feature"]), int(told["threshold"]), *below)


def by_operator(manifest: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """What a manifest says of each operator: `facts` and `dtypes`. Raises KeyError, TypeError or ValueError for what is
    no manifest."""
    return dict(manifest["operators"])
