"""The emulator backend: a board model counts the cycles of an emulated core.

The counts are the same in every run, and the load of this machine does not change them.
"""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import ClassVar, Self

from tensorop.errors import JobError, UsageError
from tensorop.measure import board as board_run
from tensorop.measure import model_peak, modelled
from tensorop.measure.request import MeasureRequest
from tensorop.model.budget import Budgets
from tensorop.model.platform import Platform
from tensorop.provision import qemu as provision_qemu
from tensorop.runners.qemu import Qemu
from tensorop.specs import board
from tensorop.target import Answer, Assumed, Target


@dataclass(frozen=True)
class Backend(Target):
    """An emulated core with a board model."""

    runner: Qemu
    model: board.BoardModel = field(kw_only=True)  # counts the cycles

    name = "qemu"
    unit = modelled.UNIT
    speed = "flop/modelled-cycle"
    shown = "modelled cycles/kflop"
    # With these budgets, a problem of a search takes about a second.
    budgets = Budgets(
        problem_flops=4e7,
        every_layout_flops=2e6,
        all_problems_flops=4e8,
        finalists_flops=4e8,
        flops_per_s=2e7,
        compared_flops=3e8,
        probe_flops=1e7,
        random_probe_flops=2e6,
        random_probe_s=0.07,
        part_seconds={
            "set-up": 1.4,
            "micro": 1.8,
            "blocking": 0.95,
            "library": 9.0,
            "tunables": 1.5,
            "verification": 6.7,
            "routines": 2.0,
            "comparison and report": 1.55,
        },
        fixed_units={"trial": 1.25, "problem": 0.02, "compared": 0.03},
        flops_per_unit=1e8,
    )
    side_by_side = True
    deterministic = True
    ignores: ClassVar[Mapping[str, str]] = {
        "threads": "a board model has one core; every job verifies several threads anyway"
    }
    confined = True

    @classmethod
    def start(cls, platform: Platform, address: str) -> Qemu:
        vlen = platform.vlens[0] if "{vlen}" in platform.qemu_cpu else None
        return Qemu(platform.arch, platform.qemu_cpu, vlen)

    @classmethod
    def reach(cls, platform: Platform, address: str) -> Self:
        if not platform.qemu_cpu:
            raise UsageError(
                f"platform '{platform.name}' cannot run in the emulator: its file has no `qemu_cpu`",
                hint="add `qemu_cpu:` to it, remove --runner, or use --runner native",
            )
        if not platform.board:
            raise JobError(
                f"platform '{platform.name}' has no board model, so an emulator cannot measure it",
                hint="add a `model:` section (docs/explanation/modelled-cycles.md), or measure on a board with --runner ssh://host",
            )
        model = board.load(platform.board, f"platform '{platform.name}'")
        return cls(platform, cls.start(platform, address), model=model)

    @property
    def tools(self) -> dict[str, str]:
        return super().tools | {"emulator": provision_qemu.qemu_version(provision_qemu.qemu(self.platform.arch))}

    @property
    def assumed(self) -> Assumed:
        """The board model's name, version, assumed constants and alternatives, with a record for results."""
        model, platform = self.model, self.platform
        record = {
            "calibrated": model.calibrated,
            "caches": list(platform.modelled_caches),  # levels
            "not_modelled": list(platform.unmodelled_caches),  # levels
            "indicative": dict(model.indicative),  # dtype -> why its figures are only indicative
            # Name -> behaviour of the core under the alternative.
            "alternatives": {name: alternative.meaning for name, alternative in model.alternatives.items()},
        }
        return Assumed(model.name, model.version, list(model.unknowns()), list(model.alternatives), record)

    def bring(self, offline: bool | None) -> None:
        with ThreadPoolExecutor(1) as pool:  # builds the plug-ins during the downloads
            built = pool.submit(board_run.bring, self.model)
            super().bring(offline)
            built.result()

    def peak(self, dtype: str, vlen: int, fresh: bool = False) -> float:
        return model_peak.best(self.model, vlen, dtype)

    def measure(self, request: MeasureRequest) -> Answer:
        return modelled.count(self.runner, self.model, request)
