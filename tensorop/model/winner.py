"""Results of a search: the variants of a library and their dispatch trees."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NotRequired, TypedDict

from tensorop.model.kernel import Variant
from tensorop.model.point import Point

MOST_LEVELS = 64  # of a tree from a file


@dataclass(frozen=True)
class StartPoint:
    """A result of an earlier search."""

    template: str  # its name
    point: Point  # tunables of its micro-kernel and its blocking


@dataclass(frozen=True)
class WarmStart:
    """The starting points of one dtype's search."""

    # always tried, even beyond the time budget; their kernels go on to whole problems
    sure: tuple[StartPoint, ...] = ()
    hints: tuple[StartPoint, ...] = ()  # other configurations, tried after the prior's points
    # for a library without a search:
    choice: DtypeRecord | None = None  # an earlier library's variants and trees
    journal: str | None = None  # path of a journal that has no library, whose measurements choose


@dataclass(frozen=True)
class Leaf:
    """The end of a dispatch tree."""

    variant: int  # its number


@dataclass(frozen=True)
class Split:
    """A branch of a dispatch tree: `low` if feature <= threshold, else `high`."""

    feature: str  # name of a dispatch feature, or an expression over plain features
    threshold: int
    low: Leaf | Split
    high: Leaf | Split


@dataclass(frozen=True)
class Tree:
    """A dispatch tree, which gives the variant for a shape."""

    root: Leaf | Split
    # geomean of (chosen cost / best variant's cost) - 1 over held-out measured shapes; None: unknown
    regret: float | None = 0.0
    vlen: int = 0  # bits of the measured vectors; 0: the library has one tree


@dataclass(frozen=True)
class Winners:
    """One dtype of a library: its variants, and the trees that choose a variant."""

    dtype: str
    variants: tuple[Variant, ...]
    # one, or one for each measured VLEN, ascending; other VLENs use the tree of the next shorter one, or else the first
    trees: tuple[Tree, ...]
    direct: Variant | None = None  # for the smallest problems; in trees its number is len(variants)
    unasked: int = 0  # flops up to which it serves without a tree
    of_routines: Mapping[str, int] = field(default_factory=dict)  # measured tunables of routines over them

    @property
    def all(self) -> tuple[Variant, ...]:
        """All variants in the order of their numbers, the direct one last."""
        return self.variants if self.direct is None else (*self.variants, self.direct)


# --- JSON of cards and manifests ----------------------------------------------------------------------------------


class NodeRecord(TypedDict, total=False):
    """A leaf has `variant`, a split has the other keys."""

    variant: int  # leaf: index in `variants`
    feature: str  # split: name of a dispatch feature, or an expression over them
    threshold: int  # split: `low` serves up to this value
    low: NodeRecord  # split: feature <= threshold
    high: NodeRecord  # split: feature > threshold


class TreeRecord(TypedDict):
    tree: NodeRecord  # the root
    regret: float | None  # mean extra cost on held-out shapes; null: unknown


class DirectRecord(TypedDict):
    variant: int  # index in `variants`
    most_flops: int  # flops up to which it serves without the tree


class VariantRecord(TypedDict):
    id: NotRequired[str]  # id of the variant; in manifests only
    kernel: NotRequired[str]  # id of its kernel; in manifests only
    template: str  # name of its template
    author: str  # `offline`: shipped; `plugin`: your own; otherwise a model's name
    digest: str  # digest of the template
    parent: NotRequired[str]  # digest of the template that it was made from
    strategy: str  # the template's idea, in one sentence
    reads: dict[str, str]  # how each operand is read: packed or in place
    point: dict[str, int | str]  # value of every tunable
    text: NotRequired[str]  # id of the C that was packaged
    specialisations: NotRequired[list[int]]  # VLENs for which it is also specialised
    specialisation_texts: NotRequired[dict[str, str]]  # id of the C, by VLEN


class DtypeRecord(TypedDict):
    """One tree, or one for each VLEN; none if a cost model chooses at run time."""

    variants: list[VariantRecord]  # the leaves of trees have indices in this list
    tree: NotRequired[NodeRecord]  # the dispatch tree
    regret: NotRequired[float | None]  # mean extra cost of the tree on held-out shapes; null: unknown
    by_vlen: NotRequired[dict[str, TreeRecord]]  # tree for each VLEN, in place of `tree` and `regret`
    direct: NotRequired[DirectRecord]  # the variant for the smallest problems
    of_routines: NotRequired[dict[str, int]]  # libraries of several BLAS routines: measured tunables of their own


class OperatorRecord(TypedDict):
    facts: dict[str, object]  # how the variants were found: tuner, author, seed, unit, board model, warm start
    dtypes: dict[str, DtypeRecord]  # by element type
    routines: NotRequired[dict[str, str]]  # libraries of several BLAS routines: what of each is tuned


def trees_of(record: DtypeRecord) -> tuple[Tree, ...]:
    """The trees of a dtype, VLEN ascending. Raises KeyError, TypeError or ValueError for an invalid record."""
    count = len(record["variants"])
    if "by_vlen" not in record:
        return (Tree(_node(record["tree"], count), record["regret"]),)
    trees = (Tree(_node(of["tree"], count), of["regret"], int(vlen)) for vlen, of in record["by_vlen"].items())
    return tuple(sorted(trees, key=lambda tree: tree.vlen))


def _node(record: NodeRecord, count: int) -> Leaf | Split:
    """Checks and converts a node. count: number of variants"""
    if "variant" in record:
        if not 0 <= int(record["variant"]) < count:
            raise ValueError(f"a tree chooses variant {record['variant']} of {count}")
        return Leaf(int(record["variant"]))
    return Split(
        str(record["feature"]), int(record["threshold"]), _node(record["low"], count), _node(record["high"], count)
    )


def asked(node: Leaf | Split, levels: int = MOST_LEVELS) -> set[str]:
    """The features that a tree asks for. Raises ValueError for one of more levels."""
    if isinstance(node, Leaf):
        return set()
    if not levels:
        raise ValueError(f"a tree has more than {MOST_LEVELS} levels")
    return {node.feature} | asked(node.low, levels - 1) | asked(node.high, levels - 1)


def by_operator(manifest: Mapping[str, Any]) -> dict[str, OperatorRecord]:
    """Operator -> its record in a manifest. Raises KeyError, TypeError or ValueError for an invalid one."""
    return dict(manifest["operators"])
