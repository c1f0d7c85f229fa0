"""The winners of a library without a search: those of an earlier library, or kernels chosen by expected costs."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

import numpy as np

from tensorop.author import offline
from tensorop.costs.expected import Expectation
from tensorop.dispatch.choice import Candidates
from tensorop.dispatch.shapes import Draw, drawn
from tensorop.dispatch.tree import DEPTH, distil
from tensorop.errors import JobError
from tensorop.model.kernel import Kernel, KernelTemplate, Variant
from tensorop.model.point import Point
from tensorop.model.winner import DtypeRecord, Leaf, StartPoint, Tree, WarmStart, Winners, trees_of
from tensorop.render import instantiate
from tensorop.search.task import Task
from tensorop.space import seeds
from tensorop.specs import products
from tensorop.warm import start

SHAPES = 1500  # in each layout, on which variants are compared
GAIN = 1e-3  # least gain of a split: mean over these shapes, natural logarithm of an expected cost


def winners(task: Task, refused: Collection[str] = ()) -> Winners | None:
    """The variants of the warm start with their recorded choice; without one, the expected costs choose.

    Without a whole variant, each template's first expected kernel has the default blocking. None if there is none.

    refused: names of templates to leave out
    """
    begun = task.warm.get(task.dtype, WarmStart())
    every = [*task.known_templates, *([task.direct] if task.direct else [])]
    templates = {
        one.name: one
        for one in every
        if one.name not in refused and not instantiate.missing_primitives(task.target.platform, one, task.dtype)
    }
    if begun.choice is not None and not refused and (recorded := _recorded(task, begun.choice, templates)):
        return recorded
    small = templates.pop(offline.DIRECT, None)
    here = task.operator, task.target.platform, task.dtype, templates
    found = [one for known in begun.sure if (one := start.variant_of(*here, known)) is not None]
    found = found or [one for template in templates.values() if (one := _first(task, template)) is not None]
    if not found:
        return None
    direct = None if small is None else _direct(task, small)
    unasked = task.operator.direct.unasked if direct and task.operator.direct else 0
    return Winners(task.dtype, tuple(found), _expected(task, found), direct, unasked)


def _recorded(task: Task, record: DtypeRecord, templates: Mapping[str, KernelTemplate]) -> Winners | None:
    """The winners of a record, with the tree of the next shorter VLEN for each VLEN; None if one is not legal here."""
    vlens, variants = task.target.vlens, []
    several = len(vlens) > 1
    for one in record["variants"]:
        point = StartPoint(one["template"], Point.of(one["point"]))
        made = start.variant_of(task.operator, task.target.platform, task.dtype, templates, point)
        if made is None:
            return None
        fixed = tuple(vlen for vlen in one.get("specialisations", ()) if several and vlen in vlens)
        variants.append(replace(made, specialisations=fixed))
    direct = variants.pop() if variants[-1].template.name == offline.DIRECT else None
    trees = trees_of(record)
    if any(tree.vlen for tree in trees):
        near = (([tree for tree in trees if tree.vlen <= vlen] or [trees[0]])[-1] for vlen in vlens)
        trees = tuple(replace(tree, vlen=vlen if several else 0) for vlen, tree in zip(vlens, near, strict=True))
    most = task.operator.direct.unasked if task.operator.direct else 0
    unasked = min(most, record["direct"]["most_flops"]) if "direct" in record else 0
    tunables, values = products.load(task.operator).tunables, record.get("of_routines", {})
    of_routines = {name: values[name] for name, one in tunables.items() if values.get(name) in one.values}
    return Winners(task.dtype, tuple(variants), trees, direct, unasked, of_routines)


def _first(task: Task, template: KernelTemplate) -> Variant | None:
    """The first expected kernel of a template with the legal blocking nearest to the default; None if none is legal."""
    platform = task.target.platform
    try:
        space = instantiate.micro_space(platform, template, task.dtype)
        expected = seeds.named(task.hints(template), template, space)
        kernel = Kernel(template, task.dtype, expected[0] if expected else space.at(0))
        blocks = instantiate.blocking_space(task.operator, platform, kernel)
    except JobError:
        return None
    default = instantiate.defaults(task.operator, platform, task.dtype, kernel.configuration)
    return Variant(kernel, blocks.nearest(default))


def _direct(task: Task, template: KernelTemplate) -> Variant:
    """The best known configuration of the direct template, else its first expected one."""
    space = instantiate.micro_space(task.target.platform, template, task.dtype)
    found = seeds.named((*task.sure, *task.hints(template)), template, space)
    return Variant(Kernel(template, task.dtype, found[0] if found else space.at(0)))


def _expected(task: Task, variants: Sequence[Variant]) -> tuple[Tree, ...]:
    """A tree for each VLEN, grown on expected costs; of an operator without decisions, the first variant serves all."""
    operator, platform, vlens = task.operator, task.target.platform, task.target.vlens
    if len(variants) < 2 or not instantiate.decides(operator):
        return (Tree(Leaf(0), 0.0 if len(variants) < 2 else None),)
    problems = drawn(operator, task.dtype, Draw(SHAPES))
    columns = Candidates(operator, platform, task.dtype, tuple(variants)).columns(problems)
    seen = {name: columns[name] for name in operator.features}
    logs = Expectation(operator, platform, problems, vlens).logs(variants)
    trees = []
    for vlen, of_vlen in zip(vlens, np.split(logs, len(vlens), axis=1), strict=True):
        losses = np.round(of_vlen - of_vlen.min(axis=0), 6).T
        root = distil(losses, seen, depth=DEPTH, gain=GAIN * len(losses))
        trees.append(Tree(root, None, vlen if len(vlens) > 1 else 0))
    return tuple(trees)
