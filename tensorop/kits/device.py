"""Products for a device, which only kits measure. The backend makes the kit's files and reads its results."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from statistics import median

from tensorop import paths
from tensorop.commands.opened import Opened
from tensorop.device_target import DeviceContent, DeviceTarget, PredictedProduct, TimedProblem, for_device
from tensorop.errors import UsageError
from tensorop.kits import rows as kitrows
from tensorop.kits.product import KINDS, KitPlan, KitProduct, KitResult, Retuned, read_manifest, unreadable
from tensorop.measure.statistics import geomean
from tensorop.model.problem import Problem
from tensorop.target import KitRequest

_KEPT = ("of", "arms", "chosen", "date", "mhz", "watts")  # fields of a timed row


@dataclass(frozen=True)
class DeviceProduct(KitProduct):
    """A product for a device."""

    content: DeviceContent | None = None  # as in PredictedProduct

    device = True
    board = ("board", "device")

    @cached_property
    def target(self) -> DeviceTarget:
        found = for_device(self.opened.reach())
        assert found is not None  # as `read` asks for
        return found

    @property
    def predicted(self) -> PredictedProduct:
        return PredictedProduct(self.operator, self.root, self.of_operator, self.content)

    def plan(self, request: KitRequest) -> KitPlan:
        platform = self.platform
        with self._read():
            files, lines = self.target.kit(self.predicted, replace(request, before=len(self.kept())))
        lines = [line for line in lines if line.split()[0] in ("settings", *request.kinds)]
        text = "\n".join([f"product {self.digest}", f"platform {platform.name}", *lines, ""])
        kit = hashlib.sha256(hashlib.sha256(files["kit"]).digest() + text.encode()).hexdigest()
        script = self.script(paths.native_dir() / "device" / "kit", "x86_64", "plan.txt")
        return KitPlan(
            kit,
            {**files, "run-kit": script, "plan.txt": f"tensorop-device-kit 1\nkit {kit}\n{text}".encode()},
            {kind: sum(line.startswith(f"{kind} ") for line in lines) for kind in KINDS},
            {"platform": {"name": platform.name, "device": dict(platform.device or {})}},
        )

    def require_machine(self, path: Path, machine: kitrows.KitMachine) -> None:
        assert isinstance(machine, kitrows.DeviceMachine)
        device = self.platform.device or {}
        if not int(device["least"]) <= machine.capability <= int(device["most"]):
            raise UsageError(
                f"{path} was measured on {machine.device} (compute capability {machine.capability}), "
                f"{self.platform.name} needs {device['least']} to {device['most']}",
                hint="run the kit on a GPU of that kind",
            )

    def require_judged(self, path: Path, rows: Sequence[kitrows.KitRow]) -> None:
        """Nothing to check: a kit's program stops at a control with a wrong outcome."""

    def row(self, path: Path, row: kitrows.KitRow) -> kitrows.KeptRow | None:
        assert isinstance(row, kitrows.DeviceTiming)
        of, arms = row.of, [arm.variant for arm in row.arms if arm.variant is not None]
        dtypes = self.of_operator["dtypes"]
        count = sum(len(of_dtype["variants"]) for of_dtype in dtypes.values())
        if of.dtype not in dtypes or not self._legal(of):
            wrong, expected = f"the problem {of.model_dump()!r:.120}", f"sizes above 0 of {', '.join(dtypes)}"
        elif len(set(arms)) != len(arms) or any(number >= count for number in (*arms, row.chosen)):
            wrong, expected = f"variants {arms!r:.80}", f"different ones, of 0 to {count - 1}"
        elif row.outcome == "ok" and any(arm.variant is not None and arm.us for arm in row.arms):
            return kitrows.KeptOnDevice(**{name: getattr(row, name) for name in _KEPT})
        else:
            return None
        raise UsageError(
            f"{path} is damaged: row {row.step} has {wrong}; expected {expected}",
            hint="copy the file from the GPU machine again",
        )

    def _legal(self, of: kitrows.KitProblem) -> bool:
        call = self.operator.on_device
        layout = of.options.keys() == call.layouts.keys() and tuple(of.options[name] for name in call.layouts)
        return layout in call.keys and of.dims.keys() == {*call.call} and all(of.dims.values())

    def where(self, machine: kitrows.KitMachine) -> str:
        return f"{' '.join(machine.board.split()):.80}"

    def retuned(self, kits: Sequence[kitrows.KeptKit], result: KitResult, jobs: int) -> Retuned:
        problems = self.problems(kits)
        with self._read():
            made, choice = self.target.retuned(self.predicted, problems, self.source(result))
        verified = {"dtype": ", ".join(self.opened.dtypes), "vlen": 0, "threads": 1, "outcome": "ok"}
        results = {"choice": choice, "verification": [{**verified, "cases": result.cases}]}
        against = _against(result.kept.rows)
        lines = [
            f"{dtype}: dispatch loss on held-out shapes {of['regret']['after']:.1%} "
            f"(by the cost model alone {of['regret']['before']:.1%}); "
            f"predictions are off by {of['off']['after']:.1%} ({of['off']['before']:.1%})"
            for dtype, of in choice.items()
        ]
        if against:
            lines.append(
                f"of {_best(result.kept.machine)}: {against['before']:.2f} as the library chose, "
                f"{against['fastest']:.2f} by its fastest kernels; a kit exported now measures other shapes"
            )
        record = {"choice": dict(choice), "against": against, "baseline": _best(result.kept.machine)}
        return Retuned(made, results, record, lines, kits)

    def costs(self, rows: Sequence[TimedProblem], problem: Problem) -> Mapping[int, float]:
        """As `DeviceTarget.costs`. Raises UsageError for a manifest that is not as the backend expects."""
        with self._read():
            return self.target.costs(self.predicted, rows, problem)

    def problems(self, kits: Sequence[kitrows.KeptKit]) -> list[TimedProblem]:
        """What kits timed on the board of the last one."""
        own = [kit for kit in kits if self.board_of(kit.machine) == self.board_of(kits[-1].machine)]
        return [self.timed(row) for kit in own for row in kit.rows if isinstance(row, kitrows.KeptOnDevice)]

    def timed(self, row: kitrows.KeptOnDevice) -> TimedProblem:
        us = {arm.variant: median(arm.us) for arm in row.arms if arm.variant is not None and arm.us and not arm.refused}
        names, dims = self.operator.on_device.call, row.of.dims
        of = self.operator.name, row.of.dtype, {name: dims[name] for name in names}, row.of.options
        return TimedProblem(Problem.of(*of), us)

    @contextmanager
    def _read(self) -> Iterator[None]:
        """Raises UsageError if the manifest is not as the backend expects."""
        try:
            yield
        except (OSError, KeyError, ValueError, TypeError) as error:
            raise unreadable(self.root, error) from None


def read(opened: Opened) -> DeviceProduct:
    """The product of an opened library. Raises UsageError for a library outside its product's folder."""
    return DeviceProduct(opened, *read_manifest(opened))


def _best(machine: kitrows.KitMachine) -> str:
    """The baseline's best as a text, with the limit of the comparison."""
    assert isinstance(machine, kitrows.DeviceMachine)
    limit = kitrows.BASELINES.get(machine.baseline, ("", ""))[1]
    return "cuBLASLt's best" + f" ({limit})" * bool(limit)


def _against(rows: Sequence[kitrows.KeptRow]) -> dict[str, float]:
    """Geometric means of speedups over the baseline's best right answer, on rows that have one.

    before: of the variant that the library chose; fastest: of the fastest variant.
    """
    ratios: dict[str, list[float]] = {"before": [], "fastest": []}
    for row in rows:
        assert isinstance(row, kitrows.KeptOnDevice)
        us = {arm.variant: median(arm.us) for arm in row.arms if arm.variant is not None and arm.us}
        best = [median(arm.us) for arm in row.arms if arm.answer and arm.us and not arm.refused]
        chosen = us.get(row.chosen)
        if best and chosen:
            ratios["before"].append(min(best) / chosen)
            ratios["fastest"].append(min(best) / min(us.values()))
    return {name: round(geomean(of), 4) for name, of in ratios.items() if of}
