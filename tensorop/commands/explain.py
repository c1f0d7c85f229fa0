"""`explain`: which variant of a library serves a shape, which rule chose it, and what the other variants cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from tensorop import subpackages
from tensorop.commands import past
from tensorop.commands.opened import Opened
from tensorop.errors import TensoropError, UsageError
from tensorop.model.expression import evaluate
from tensorop.model.problem import Problem
from tensorop.model.winner import Leaf, Split, Tree, VariantRecord, trees_of
from tensorop.space import problems
from tensorop.specs import products

_DAMAGE = (AttributeError, IndexError, KeyError, TypeError, ValueError, RecursionError)


@dataclass(frozen=True)
class VariantCost:
    """A variant of the library, with its costs."""

    number: int
    template: str
    predicted: float | None  # by the cost model that the decision tree was made with
    measured: float | None  # in the search, on this very problem
    slower: float | None  # cost over that of the variant that serves, minus 1
    by: str  # the costs that `slower` compares: measured if both are, else predicted


@dataclass(frozen=True)
class Explanation:
    problem: str
    vlen: int  # bits of the tree's vectors; 0: the library has one tree
    blocks: int  # into which several threads cut the call; what follows is of one block
    features: Mapping[str, int]  # what the library sees of it; tests may compute others of these
    variant: int  # the number of the variant that serves
    rule: str  # in words
    path: Sequence[str]  # the tests of the decision tree that lead to the variant
    unit: str  # of costs
    variants: Sequence[VariantCost]
    next_best: int | None  # the number of the cheapest other variant; None: no cost is known
    lacking: str  # why there are no costs; empty: nothing is lacking
    remedy: str  # what gives them, if they are lacking
    origin: str = ""  # where the variant's blocking comes from, in words; empty: it has none, or no journal says so
    epilogue: Sequence[str] = ()  # what a call of the library may add to the product, by the same variant


def explain(found: Opened, problem: Problem, vlen: int = 0, threads: int = 1) -> Explanation:
    """Explains the choice of a library. vlen: bits; 0: the first tree

    Raises UsageError for a VLEN or threads that the library does not use, or a damaged card.
    """
    if found.by_kit:
        for name, given in (("vlen", vlen), ("threads", threads - 1)):
            if given:
                raise UsageError(f"--{name} has no effect on a GPU library", hint=f"remove --{name}")
        kits = subpackages.require("kits", "here", "explaining a GPU library")
        return cast(Explanation, kits.explain(found, problem))
    try:
        return _explained(found, problem, vlen, threads)
    except _DAMAGE as error:
        what = f"{type(error).__name__}: {error!s:.200}"
        raise UsageError(f"the card of {found.library} is damaged: {what}", hint="build the library again") from None


def _explained(found: Opened, problem: Problem, vlen: int, threads: int) -> Explanation:
    operator, winners, facts = found.operator, found.card["dtypes"][problem.dtype], found.card["facts"]
    records, chooser = winners["variants"], _tree(found, trees_of(winners), vlen)
    features, blocks = problems.features(operator, problem), 1
    path, variant = _walk(chooser.root, features)
    work, direct = float(operator.reference.work(problem)), winners.get("direct")
    if direct is not None and work <= direct["most_flops"]:
        path, variant = [], int(direct["variant"])
        rule = f"direct serves all problems of at most {direct['most_flops']} flops; this one has {work:.0f}"
    else:
        if threads > 1:
            features, blocks = _block(found, problem, records[variant], chooser.vlen, threads)
            path, variant = _walk(chooser.root, features)
        rule = "the decision tree" if len(records) > 1 else "it is the only variant"
    if facts.get("measured"):
        rule += "; it was made from the measurements of a tuning kit, but the costs are those of the search"
    unknown: past.Costs = [None] * len(records)
    predicted, measured, lacking, remedy, origin = unknown, unknown, "", "", ""
    try:
        predicted, measured = past.costs(found, problem, chooser.vlen, features if blocks > 1 else None)
        origin = past.origin(found, problem.dtype, variant)
    except (TensoropError, *_DAMAGE) as error:
        lacking = getattr(error, "message", f"the journal is damaged, or of another product ({type(error).__name__})")
        remedy = getattr(error, "hint", "") or "for costs, pass the folder that the search wrote"
    variants = []
    for number, record in enumerate(records):
        by = "predicted" if None in (measured[number], measured[variant]) else "measured"
        costs = predicted if by == "predicted" else measured
        own, served = costs[number], costs[variant]
        slower = None if own is None or served is None else own / served - 1
        variants.append(VariantCost(number, record["template"], predicted[number], measured[number], slower, by))
    others = [(one.slower, one.number) for one in variants if one.slower is not None and one.number != variant]
    how = {name: features[name] for name in operator.seen}, variant, rule, path
    best = min(others)[1] if others else None
    unit = str(facts.get("unit", ""))
    steps = operator.epilogue if facts.get("epilogue") else ()
    return Explanation(problem.label, chooser.vlen, blocks, *how, unit, variants, best, lacking, remedy, origin, steps)


def _tree(found: Opened, trees: Sequence[Tree], vlen: int) -> Tree:
    """The tree for a VLEN (bits); 0: the first."""
    known = [one.vlen for one in trees] if len(trees) > 1 else found.card["platform"]["vlens"]
    if vlen and vlen not in known:
        what = f"{found.library} has trees for vectors of {', '.join(map(str, known))} bits; got --vlen {vlen}"
        raise UsageError(what, hint=f"e.g. --vlen {known[-1]}; longer vectors use the tree of the longest ones")
    return next((one for one in trees if one.vlen == vlen), trees[0])


def _walk(node: Leaf | Split, features: Mapping[str, int]) -> tuple[list[str], int]:
    """The tests on a problem's way through a tree, and the variant at its end."""
    path = []
    while isinstance(node, Split):
        value = problems.feature(node.feature, features)
        low = value <= node.threshold
        path.append(f"{node.feature} = {value} {'<=' if low else '>'} {node.threshold}")
        node = node.low if low else node.high
    return path, node.variant


def _block(
    found: Opened, problem: Problem, first: VariantRecord, vlen: int, threads: int
) -> tuple[dict[str, int], int]:
    """The features of the blocks into which threads cut a call, as the library's C does (`cut`), and their number.

    first: the variant for the whole problem, whose tiles are not cut
    """
    operator, spec = found.operator, products.load(found.operator)
    features = problems.features(operator, problem)
    seen = {name: features[name] for name in operator.seen}
    if operator.threads is not None:
        dim, known = operator.threads.dim, operator.reference.known(problem)
        usable = evaluate(operator.threads.work, known) // spec.settings["work_per_thread"]
        length = -(-known[dim] // max(1, min(threads, usable, known[dim])))
        return problems.derived(operator, {**seen, dim: length}, problem), -(-known[dim] // length)
    if not spec.threads:
        what = (
            f"--threads has no effect for {operator.name}: neither its operator.yaml nor its product.yaml has `threads`"
        )
        raise UsageError(what, hint="remove --threads")
    most_parts = operator.reference.work(problem) / 2 / spec.settings["work_per_thread"]
    if most_parts < 2:
        return features, 1
    lanes = found.platform.lanes(problem.dtype, first["point"], vlen or found.card["platform"]["vlens"][0])
    tile = operator.reference.tile(first["point"], lanes, first["reads"])
    (rows, high), (columns, wide) = (
        (-(-features[name] // tile[side]), tile[side]) for name, side in spec.threads.items()
    )
    most = min(int(most_parts), threads)

    def cost(grid: tuple[int, int]) -> float:
        height, width = -(-rows // grid[0]) * high, -(-columns // grid[1]) * wide
        return height * width + 1e-3 * (height + width)

    grid = min(((down, min(most // down, columns)) for down in range(1, min(most, rows) + 1)), key=cost)
    cut = {name: features[name] // parts for name, parts in zip(spec.threads, grid, strict=True)}
    return problems.derived(operator, {**seen, **cut}, problem), grid[0] * grid[1]
