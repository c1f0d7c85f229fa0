"""A small gemm product from fixed winners: two variants a dtype and a tree of three leaves."""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from filelock import FileLock

from tensorop.author import offline
from tensorop.commands import opened, past
from tensorop.commands.opened import Opened
from tensorop.dispatch import winners as choosing
from tensorop.model.kernel import KernelTemplate, Variant
from tensorop.model.winner import Leaf, Split, Tree, Winners, trees_of
from tensorop.package import product as making
from tensorop.package import publish
from tensorop.package.product import Product
from tensorop.package.sources import OperatorPart
from tensorop.render import instantiate
from tensorop.specs import operators, platforms
from tensorop.target import Target

STACK = Path(__file__).with_name("stack.c")
MOST_STACK = 12 << 10  # bytes, as the headers say

FACTS = {"seed": 7, "machine": "none: fixed winners of a test"}


def winners(dtypes: tuple[str, ...] = ("f32", "f64")) -> list[Winners]:
    """One variant that packs both operands, one that reads them in place; small blocks, so that all loops turn."""
    operator = operators.load("gemm")
    template = next(d for d in offline.templates(operator.folder, operator.name) if d.name == "outer")
    blocks = {"mr_vectors": 1, "nr": 6, "mc": 64, "kc": 128, "nc": 256}
    tree = Split("size", 32768, Leaf(1), Split("a_in_place", 0, Leaf(0), Split("k", 100, Leaf(1), Leaf(0))))
    found = []
    for dtype in dtypes:
        packs = int(dtype not in ("f32", "f64"))  # operands of the others are widened by packing
        packed = _variant(template, dtype, mr_vectors=2, nr=4, mc=32, kc=64, nc=48, pack_a=1, pack_b=1)
        second = _variant(template, dtype, **blocks, pack_a=packs, pack_b=packs)
        found.append(Winners(dtype, (packed, second), (Tree(tree, 0.0125),)))
    return found


def with_direct(dtypes: tuple[str, ...] = ("f32", "f64"), **chosen: int) -> list[Winners]:
    """The same with the direct variant of the smallest products, variant 2."""
    operator = operators.load("gemm")
    template = offline.direct(operator.folder, operator.name)
    assert template is not None
    assert operator.direct is not None
    unasked = operator.direct.always
    point = {"mr_vectors": 2, "nr": 4, "partial_sums": 8, "narrow": 1, **chosen}
    return [
        replace(found, direct=_variant(template, found.dtype, **point), unasked=unasked) for found in winners(dtypes)
    ]


def of_all_templates(dtypes: tuple[str, ...] = ("f32", "f64")) -> list[Winners]:
    """The same with a variant of each other template for any instruction set."""
    operator = operators.load("gemm")
    known = {template.name: template for template in offline.templates(operator.folder, operator.name)}
    blocks = {"mc": 64, "kc": 128, "nc": 256}
    dot = {"mr_vectors": 4, "nr": 3, "straight": 1, "fetch": 4, **blocks}
    stream = {"mr_vectors": 64, "nr": 2, "ku": 4, "wide": 2, "fetch": 4, **blocks, "mc": 2048, "pack_a": 0, "pack_b": 0}
    return [
        replace(
            found,
            variants=(
                *found.variants,
                _variant(known["dot"], found.dtype, **dot),
                _variant(known["stream"], found.dtype, **stream),
            ),
        )
        for found in with_direct(dtypes)
    ]


def by_vlen(found: Winners) -> Winners:
    """Variant 0 alone at VLEN 128, the tree at 256, variant 1 alone at 512; variant 0 has a specialisation for 256, 1
    for 512."""
    (tree,) = found.trees
    trees = (Tree(Leaf(0), 0.01, 128), replace(tree, vlen=256), Tree(Leaf(1), 0.0, 512))
    zero, one = found.variants
    return replace(
        found, trees=trees, variants=(replace(zero, specialisations=(256,)), replace(one, specialisations=(512,)))
    )


def _variant(template: KernelTemplate, dtype: str, **chosen: int) -> Variant:
    point = {**{name: values[0] for name, values in template.tunables.items()}, **chosen}
    return instantiate.variant(operators.load("gemm"), template, dtype, point)


def product(
    platform: str,
    dtypes: tuple[str, ...] = ("f32", "f64"),
    found: Sequence[Winners] | None = None,
    operator: str = "gemm",
    epilogue: bool = False,
) -> Product:
    """found: other winners than the fixed ones of `dtypes`; operator: gemm, or one that extends it."""
    facts = {**FACTS, "epilogue": True} if epilogue else FACTS
    part = OperatorPart(operators.load(operator), winners(dtypes) if found is None else found, facts, "Fixed by a test")
    return making.product(platforms.load(platform), [part])


def reached(folder: Path, runner: str | None = None) -> tuple[Opened, Target]:
    """A product with the target it runs on."""
    found = opened.open_product(folder)
    return found, found.reach(runner)


def install(
    platform: str,
    folder: Path,
    dtypes: tuple[str, ...] = ("f32", "f64"),
    found: Sequence[Winners] | None = None,
    operator: str = "gemm",
    epilogue: bool = False,
) -> Path:
    """A copy of the product in `folder`. The first test of a run that wants a product makes it for all."""
    more = ("epilogue",) if epilogue else ()
    wanted = repr((platform, operator, winners(dtypes) if found is None else found, *more))
    name = hashlib.sha256(wanted.encode()).hexdigest()[:16]
    made = Path(os.environ["TENSOROP_OBJECTS"]).with_name("products") / name
    made.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(f"{made}.lock"):
        if not made.exists():
            publish.publish(publish.stage(product(platform, dtypes, found, operator, epilogue), made), made)
    folder.parent.mkdir(parents=True, exist_ok=True)
    return Path(shutil.copytree(made, folder, symlinks=True, dirs_exist_ok=True))


def blas(given: str, folder: Path) -> Path:
    """The product that a run of the suite names by --blas; else one for any CPU of this architecture, in `folder`."""
    return Path(given).resolve() if given else install("generic", folder, operator="blas")


def trees_again(folder: Path, plugins: tuple[Path, ...] = ()) -> tuple[tuple[Tree, ...], tuple[Tree, ...]]:
    """The trees of a job's f32 gemm library, and those that its journal gives as `explain` reads it."""
    found = opened.open_product(folder, plugins)
    record, task = found.card["dtypes"]["f32"], past.task(found, "f32")
    given, _ = past.candidates(task, record["variants"])
    return trees_of(record), choosing.carried(choosing.final(task, given)).trees
