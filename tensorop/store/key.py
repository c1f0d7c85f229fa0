"""What makes two trials the same trial."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence

from tensorop.model.point import Point
from tensorop.model.problem import Problem
from tensorop.model.trial import Stage


def trial_key(
    *,
    draft: str,
    point: Point,
    stage: Stage,
    problems: Sequence[Problem],
    dtype: str,
    platform: str,
    vlens: Sequence[int],
    compiler: Sequence[str],
    tool: str,
) -> str:
    """16 hexadecimal digits over everything a trial's result depends on.

    draft, platform: digests of what they hold, not their names; compiler: its version and every flag; tool: our
    version.
    """
    parts = [
        draft,
        dict(point),
        stage.value,
        [[p.operator, p.dtype, p.dims.pairs, p.options.pairs] for p in problems],
        dtype,
        platform,
        list(vlens),
        list(compiler),
        tool,
    ]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:16]
