"""The identity of a trial."""

from __future__ import annotations

from collections.abc import Sequence

from tensorop import __version__
from tensorop.model.kernel import Variant
from tensorop.model.point import identity
from tensorop.model.stage_run import StageRun


def trial_key(variant: Variant, run: StageRun, *, platform: str, vlens: Sequence[int], compiler: Sequence[str]) -> str:
    """An id of everything that a trial's result depends on.

    platform: digest of its contents, not its name; compiler: its version and the platform's flags. The flags of the
    template's author are added here.
    """
    asked = [[p.operator, p.dtype, p.pairs, p.options.pairs] for p in run.problems]
    flags = [*compiler, *variant.template.flags, *([list(run.weights)] if run.weights else [])]
    return identity(variant.id, run.stage.value, asked, platform, list(vlens), flags, __version__)
