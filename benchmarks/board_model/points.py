"""Holds a board model against published speeds of whole programs (points/): intervals, order, what moves them.

    python benchmarks/board_model/points.py [PLATFORM] [--size N] [--sensitivity | --alternative NAME | --json]
                                            [--ours DIR] [--only TEXT]

PLATFORM: one of points/, spacemit-k1 if not given. Prints a Markdown table; exit status 1 when a published speed lies
outside its interval, an order does not hold in every scenario, or an interval is wider than 35 % to either side of its
middle. --size: products no larger (published ones are 1024 cubed, half a minute each).
--sensitivity: each unknown alone at either end instead, and each of the model's alternatives. --alternative: the table
as it would be, were the core like this alternative of the model. --only: the points whose names hold this text.
--ours: a product's folder, whose SGEMM joins the table.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tensorop.measure import board
from tensorop.model.platform import Platform
from tensorop.paths import native_dir
from tensorop.provision import baseline, libc, zig
from tensorop.runners.base import Launch
from tensorop.runners.qemu import Qemu
from tensorop.specs import board as spec
from tensorop.specs import platforms
from tensorop.specs.board_scenarios import scenario_values, under
from tensorop.toolchain import tool

HERE = Path(__file__).parent
WIDEST = 0.35
_TILE = 2 * 16 * 15


@dataclass(frozen=True)
class Speed:
    """GFLOP/s of a point by scenario, the best fit first."""

    point: dict[str, Any]
    all: tuple[float, ...]
    alternatives: dict[str, float]  # of the best fit under each of the model's alternatives, where asked for
    within: float = 0.0  # share by which a published speed may lie beside the interval

    @property
    def best(self) -> float:
        return self.all[0]

    @property
    def low(self) -> float:
        return min(self.all)

    @property
    def high(self) -> float:
        return max(self.all)

    @property
    def width(self) -> float:
        """Half of the interval over its middle."""
        return (self.high - self.low) / (self.high + self.low)

    def outside(self) -> list[float]:
        low, high = self.low * (1 - self.within), self.high * (1 + self.within)
        return [p["value"] for p in self.point["published"] if not low <= p["value"] <= high]


def build(name: str, platform: Platform, folder: Path) -> Path:
    """One of programs/; blas loads a shared library, so it links to glibc, as products do."""
    compiler, out = platform.compiler, folder / name
    target = compiler.shared_target if name == "blas" else compiler.static_target
    extensions = ["-mcpu=baseline_rv64+v+zvl256b"] if platform.arch == "riscv64" else []
    source, made = HERE / "programs" / f"{name}.c", folder / f"{name}.o"
    compiled = (*tool.cc("-target", target, "-O2", *extensions, "-I", str(native_dir())), "-c", source, "-o", made)
    # Linked without the extensions, and optimised: zig would build a C library for them, and else a sanitizer.
    linked = tool.cc("-target", target, "-O2", str(made), "-o", name)
    if name != "blas":
        linked = libc.static_link(platform.arch).argv((str(made),), name)
    for command in (compiled, linked):
        subprocess.run(command, check=True, cwd=folder, env=zig.zig_environment())
    out.chmod(0o755)
    return out


def measure(
    point: dict[str, Any],
    program: Path,
    platform: Platform,
    model: spec.BoardModel,
    mode: str,
    most: int,
    within: float,
    alternative: str,
) -> Speed:
    """Runs one point's program under the model, or under one of its alternatives."""
    choices = scenario_values(model, mode)
    if alternative:
        choices = tuple(under(choice, model, alternative) for choice in choices)
    size = min(point["size"], most) if point["program"] != "tile" else point["size"]
    arguments = [str(size), *map(str, point.get("arguments", []))]
    environment = {"OPENBLAS_NUM_THREADS": "1", "TENSOROP_NUM_THREADS": "1"}  # the model counts one thread
    if "ours" in point:
        folder = point["ours"].absolute() / "lib"
        arguments = [str(folder / "libtensorop_cblas.so"), "cblas_sgemm", *arguments]
        environment["LD_LIBRARY_PATH"] = str(folder)
    elif point["program"] == "blas":
        library = baseline.baseline(f"openblas@{point['library']['version']}", platform.arch).bring()
        arguments = [str(library.path), f"{library.prefix}cblas_sgemm", *arguments]
        environment |= {
            "OPENBLAS_CORETYPE": point["library"]["core"],
            "LD_LIBRARY_PATH": ":".join(map(str, library.library_path)),
        }
    with tempfile.TemporaryDirectory() as scratch:
        beside = mode == "sensitivity"
        run = board.prepare(model, platform.vlens[0], Path(scratch), scenarios=choices, alternatives=beside)
        command = Qemu(platform.arch, platform.qemu_cpu).command(
            Launch([str(program), *arguments], platform.vlens[0], dynamic=True, plugin_args=run.arguments)
        )
        subprocess.run(command, check=True, env=environment)
        (counts,) = board.parse(run.out, run.alternatives)
    flop = _TILE * size * point["arguments"][0] if point["program"] == "tile" else 2 * size**3
    speeds = [flop * model.clock_ghz.value / cycles for cycles in (*counts.cycles, *counts.alternatives.values())]
    own = len(counts.cycles)
    return Speed(point, tuple(speeds[:own]), dict(zip(counts.alternatives, speeds[own:], strict=True)), within)


def table(speeds: list[Speed]) -> str:
    lines = ["| what | published | best fit | interval | +- |", "|---|---|---|---|---|"]
    for s in speeds:
        published = ", ".join(f"{p['value']:g}" for p in s.point["published"]) or "none known"
        lines.append(
            f"| {s.point['name']} | {published} | {s.best:.2f} | {s.low:.2f} to {s.high:.2f} | {100 * s.width:.0f} % |"
        )
    return "\n".join(lines)


def sensitivity(speeds: list[Speed], unknowns: list[str]) -> str:
    lines = ["| unknown | " + " | ".join(s.point["name"] for s in speeds) + " |", "|---|" + "---|" * len(speeds)]
    lines.append("| best fit | " + " | ".join(f"{s.best:.2f}" for s in speeds) + " |")
    for i, name in enumerate(unknowns):
        ends = [f"{s.all[1 + 2 * i]:.2f} .. {s.all[2 + 2 * i]:.2f}" for s in speeds]
        lines.append(f"| {name} | " + " | ".join(ends) + " |")
    for name in speeds[0].alternatives:
        lines.append(f"| *{name}* | " + " | ".join(f"{s.alternatives[name]:.2f}" for s in speeds) + " |")
    return "\n".join(lines)


def faults(speeds: list[Speed], order: list[list[str]]) -> list[str]:
    named = {s.point["name"]: s for s in speeds}
    found = [f"{s.point['name']}: {v:g} lies outside" for s in speeds for v in s.outside()]
    found += [f"{s.point['name']}: the interval is +-{100 * s.width:.0f} %" for s in speeds if s.width > WIDEST]
    for slow, fast in order:
        if slow not in named or fast not in named:
            continue
        wrong = sum(a >= b for a, b in zip(named[slow].all, named[fast].all, strict=True))
        if wrong:
            found.append(f"{slow} is not slower than {fast} in {wrong} scenarios")
    return found


def as_json(platform: Platform, model: spec.BoardModel, speeds: list[Speed]) -> str:
    points = [
        {
            "name": s.point["name"],
            "published": [float(p["value"]) for p in s.point["published"]],
            "best": s.best,
            "low": s.low,
            "high": s.high,
        }
        for s in speeds
    ]
    about = {"platform": platform.name, "model": model.name, "version": model.version, "calibrated": model.calibrated}
    return json.dumps({**about, "points": points})


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    known = sorted(path.stem for path in (HERE / "points").glob("*.yaml"))
    parser.add_argument("platform", nargs="?", choices=known, default="spacemit-k1")
    parser.add_argument("--size", type=int, default=4096)
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--sensitivity", action="store_true")
    what.add_argument("--alternative", default="")
    parser.add_argument("--only", default="")
    what.add_argument("--json", action="store_true", help="the table as JSON, for benchmarks/records.py")
    parser.add_argument("--ours", type=Path)
    given = parser.parse_args()
    data = yaml.safe_load((HERE / "points" / f"{given.platform}.yaml").read_text(encoding="utf-8"))
    if given.ours:
        data["points"].append(
            {"name": "tensorop, SGEMM", "program": "blas", "size": 1024, "ours": given.ours, "published": []}
        )
    platform = platforms.load(given.platform)
    assert platform.board is not None
    model = spec.load(platform.board, platform.name)
    alternative = given.alternative
    if alternative and alternative not in model.alternatives:
        there = "; ".join(model.alternatives) or "none"
        parser.error(f"{model.name} has no alternative '{alternative}'; there are: {there}")
    data["points"] = [point for point in data["points"] if given.only in point["name"]]
    if not data["points"]:
        parser.error(f"no point of {given.platform} is named like '{given.only}'")
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(2) as pool:
        names = dict.fromkeys(point["program"] for point in data["points"])
        programs = {name: build(name, platform, Path(folder)) for name in names}
        mode = "sensitivity" if given.sensitivity else "interval"
        within = data.get("within", 0.0)
        speeds = list(
            pool.map(
                lambda p: measure(p, programs[p["program"]], platform, model, mode, given.size, within, alternative),
                data["points"],
            )
        )
    if given.json:
        print(as_json(platform, model, speeds))
        return 0
    like = f", were it like '{alternative}': {model.alternatives[alternative].meaning}" if alternative else ""
    print(f"{model.name} {model.version}, {'calibrated' if model.calibrated else 'not calibrated'}{like}\n")
    if given.sensitivity:
        print(sensitivity(speeds, list(model.unknowns())))
        return 0
    print(table(speeds))
    found = faults(speeds, data["order"])
    print("\n" + ("\n".join(found) or "every published speed inside, every order kept, no interval beyond 35 %"))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
