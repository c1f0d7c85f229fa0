"""What makes two trials the same trial."""

from __future__ import annotations

from collections.abc import Sequence

from tensorop.model.kernel import Variant
from tensorop.model.point import identity
from tensorop.model.problem import Problem
from tensorop.model.trial import Stage


def trial_key(
    variant: Variant,
    *,
    stage: Stage,
    problems: Sequence[Problem],
    platform: str,
    vlens: Sequence[int],
    compiler: Sequence[str],
    tool: str,
) -> str:
    """An id of everything a trial's result depends on.

    platform: digest of what it holds, not its name; compiler: its version and the platform's flags, beside which there
    are those of the template's author; tool: our version.
    """
    asked = [[p.operator, p.dtype, p.pairs, p.options.pairs] for p in problems]
    return identity(variant.id, stage.value, asked, platform, list(vlens), [*compiler, *variant.template.flags], tool)
