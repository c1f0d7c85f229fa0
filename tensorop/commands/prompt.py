"""What a language model is asked: the facts of a job's prompt."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tensorop import backends
from tensorop.author import offline
from tensorop.author.llm.messages import Message
from tensorop.author.llm.prompt import AnyBrief, Brief
from tensorop.author.llm.transcript import RecordedTransport
from tensorop.author.parse import parse
from tensorop.commands import operator_read
from tensorop.device_target import for_device
from tensorop.errors import UsageError
from tensorop.measure import model_peak, statistics
from tensorop.model.operator import Operator
from tensorop.model.platform import Platform
from tensorop.model.point import Value
from tensorop.model.shape import Shape
from tensorop.render import instantiate, prior
from tensorop.specs import board
from tensorop.specs.board import BoardModel
from tensorop.trial import roof


def require_prompts(operator: Operator, what: str) -> None:
    """Raises UsageError if the operator has no prompts. what: it needs them"""
    if lacking := operator_read.prompts(operator):
        raise UsageError(
            f"{what} needs prompts of the operator, and {lacking[0]} is missing",
            hint="add the prompts (CONTRIBUTING.md, An operator), or leave the model out",
        )


def any_brief(
    operator: Operator,
    platform: Platform,
    dtypes: Sequence[str],
    shapes: Sequence[Shape],
    plugins: tuple[Path, ...] = (),
) -> AnyBrief:
    """The facts of a job's prompt, for processors and GPUs. Raises UsageError for what no model is asked for."""
    if not backends.load(platform.runner, plugins).measures:
        target = for_device(backends.reach(platform, plugins=plugins))
        assert target is not None, platform.name
        return target.brief(operator, dtypes, shapes)
    require_prompts(operator, f"tensorop prompt {operator.name}")
    return brief(operator, platform, dtypes, shapes)


def brief(
    operator: Operator, platform: Platform, dtypes: Sequence[str], shapes: Sequence[Shape], left_out: str = ""
) -> Brief:
    """The facts of a job's prompt for a processor. left_out: as in Brief"""
    dtype = dtypes[0]
    primitives = platform.primitives_of(dtype)
    example = offline.example(*operator.prompts)
    template = parse(example, operator=operator.name, name="example", author=offline.AUTHOR)
    point = instantiate.micro_space(platform, template, dtype).at(0)
    facts = instantiate.facts(platform, dtype, {})
    full = instantiate.defaults(operator, platform, dtype, point)
    names, _ = instantiate.kernel_context(operator, platform, instantiate.variant(operator, template, dtype, full))
    model = board.load(platform.board, f"platform '{platform.name}'") if platform.board else None
    known: dict[str, Value] = {}  # of the core
    if left_out != "facts":
        known = {name: int(getattr(of, "value", 0)) for name, of in model.core if of is not None} if model else {}
        known |= prior.facts(platform, dtype, {})
        known["out_of_order"] = int(not known["in_order"])
    return Brief(
        operator=operator,
        platform=platform,
        primitives=primitives,
        dtypes=tuple(dtypes),
        shapes=tuple(operator.shapes.text(shape) for shape in shapes),
        facts=facts,
        differing={
            other: {
                name: value for name, value in instantiate.facts(platform, other, {}).items() if value != facts[name]
            }
            for other in dtypes[1:]
        },
        known={
            **dict.fromkeys(primitives.with_aliases, 1),
            **known,
            "settings": len(platform.settings),
            "board": int(model is not None),
            "masked": int(primitives.masked),
            "facts_left_out": int(left_out == "facts"),
        },
        names={name: value for name, value in names.items() if {**facts, **point}.get(name) != value},
        bounds=_bounds(platform, model, dtypes) if model and left_out != "facts" else {},
        example=example,
        left_out=left_out,
    )


def recorded(run: Path, number: int) -> tuple[Message, ...]:
    """The question of a round of a run, from its transcript. Raises UsageError if there is none."""
    folder = run / "work" / "llm"
    asked = RecordedTransport(folder, None).requests
    if not asked:
        raise UsageError(
            f"{folder} contains no transcript: that run asked no language model, or was copied without its work/",
            hint="name the folder of a run with --author llm or manual",
        )
    if number > len(asked):
        raise UsageError(f"--round {number}: {folder} has {len(asked)} rounds", hint=f"use --round {len(asked)}")
    return asked[number - 1].messages


def _bounds(platform: Platform, model: BoardModel, dtypes: Sequence[str]) -> dict[str, float]:
    """As `Roof.bound`, for the dtypes that have one."""
    found = {
        dtype: statistics.bound([model_peak.best(model, vlen, dtype) for vlen in platform.vlens])
        for dtype in dtypes
        if dtype in roof.MEASURED
    }
    return {dtype: bound for dtype, bound in found.items() if bound}
