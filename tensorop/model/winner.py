"""What a search found and a library is made of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NotRequired, TypedDict

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


# --- the same as JSON, in cards and manifests ---------------------------------------------------------------------


class NodeRecord(TypedDict, total=False):
    """A leaf has `variant`, a split the others."""

    variant: int  # leaf: index in `variants`
    feature: str  # split: name of a dispatch feature, or an expression over them
    threshold: int  # split: `low` serves up to this value
    low: NodeRecord  # split: feature <= threshold
    high: NodeRecord  # split: feature > threshold


class TreeRecord(TypedDict):
    tree: NodeRecord  # its root
    regret: float | None  # mean extra cost on shapes left out when the tree was grown; null: unknown


class DirectRecord(TypedDict):
    variant: int  # index in `variants`
    most_flops: int  # largest problem that it serves without a look at the tree


class VariantRecord(TypedDict):
    id: NotRequired[str]  # id of the variant; in manifests only
    kernel: NotRequired[str]  # id of its kernel; in manifests only
    template: str  # name of its template
    author: str  # `offline`: shipped; `plugin`: your own; otherwise a model's name
    digest: str  # digest of the template
    strategy: str  # the template's idea, in one sentence
    reads: dict[str, str]  # how each operand is read: packed or in place
    point: dict[str, int | str]  # value of every tunable
    text: NotRequired[str]  # id of the C that was packaged
    specialisations: NotRequired[list[int]]  # VLENs that it is also written for
    specialisation_texts: NotRequired[dict[str, str]]  # id of the C, by VLEN


class DtypeRecord(TypedDict):
    """One tree, or one a VLEN; neither where a model chooses at run time."""

    variants: list[VariantRecord]  # by the number that a tree's leaf has
    tree: NotRequired[NodeRecord]  # the dispatch tree
    regret: NotRequired[float | None]  # of the tree
    by_vlen: NotRequired[dict[str, TreeRecord]]  # a tree by VLEN, in place of `tree` and `regret`
    direct: NotRequired[DirectRecord]  # the variant for the smallest problems


class OperatorRecord(TypedDict):
    facts: dict[str, object]  # how the variants were found: tuner, author, seed, unit, board model, warm start
    dtypes: dict[str, DtypeRecord]  # by element type


def trees_of(record: DtypeRecord) -> tuple[Tree, ...]:
    """The trees of a dtype, VLENs rising. Raises KeyError, TypeError or ValueError for what are none."""
    count = len(record["variants"])
    if "by_vlen" not in record:
        return (Tree(_node(record["tree"], count), record["regret"]),)
    trees = (Tree(_node(of["tree"], count), of["regret"], int(vlen)) for vlen, of in record["by_vlen"].items())
    return tuple(sorted(trees, key=lambda tree: tree.vlen))


def _node(record: NodeRecord, count: int) -> Leaf | Split:
    """count: of the variants among which it chooses."""
    if "variant" in record:
        if not 0 <= int(record["variant"]) < count:
            raise ValueError(f"a tree chooses variant {record['variant']} of {count}")
        return Leaf(int(record["variant"]))
    return Split(
        str(record["feature"]), int(record["threshold"]), _node(record["low"], count), _node(record["high"], count)
    )


def by_operator(manifest: Mapping[str, Any]) -> dict[str, OperatorRecord]:
    """What a manifest says of each operator. Raises KeyError, TypeError or ValueError for what is no manifest."""
    return dict(manifest["operators"])
