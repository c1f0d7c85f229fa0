"""Records of measurements, a file each in benchmarks/results/: what was measured, how, where and when.

    python -m benchmarks.records NAME                  # runs the commands of results/NAME.json again and replaces it
    python -m benchmarks.records NAME --page gemm-rvv --title "Suite quick" --payload bench \\
        --command "tensorop gemm --platform rvv" --command "tensorop bench build/gemm-rvv --format json"

Commands run one after the other in the checkout, with its environment first in PATH. The last one's standard output
is the data: JSON, or the lines of a terminal with `--payload output`. Where they have just been run, `--output FILE`
has what the last one printed. `make results` renders pages and plots of it.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any, Literal

import psutil
from pydantic import BaseModel, ConfigDict, Field, model_validator

from tensorop.errors import SpecError, TensoropError, UsageError
from tensorop.model.bench import Bench
from tensorop.provision.check import DISTRIBUTION
from tensorop.specs import benches, files, jsontext, yamlfile
from tensorop.specs.yamlfile import File, Record

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "benchmarks" / "results"
AGAIN = (
    "measure it again: python -m benchmarks.records NAME; or take the committed file: git checkout benchmarks/results"
)
SHOWN = 16  # last lines of a terminal that are kept

Number = Annotated[float, Field(allow_inf_nan=False)]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class Machine(Record):
    """accelerator: of a GPU's results."""

    cpu: str = ""
    cores: int = 0  # 0: unknown
    system: str = ""
    accelerator: str = ""


class Measurement(File):
    """What every file says of its data. page: of docs/results/, where it is shown; title: its heading there."""

    page: Annotated[str, Field(pattern=r"^[a-z0-9-]+$")]
    title: str
    payload: Literal["bench", "unseen", "points", "tuners", "kit", "peers", "judgement", "steering", "output"]
    commands: Annotated[list[str], Field(min_length=1)]
    machine: Machine
    versions: dict[str, str]
    date: Annotated[str, Field(pattern=r"^\d{4}-\d\d-\d\d$")]
    commit: Annotated[str, Field(pattern=r"^[0-9a-f]{7,40}$")]
    data: dict[str, Any]


class UnseenShape(Record):
    """madds: multiply-adds; ratio: the baseline's cost over ours; regret: of the chosen variant over the fastest;
    called: the baseline's function, where it has several."""

    problem: str
    dtype: str
    vlen: int
    madds: Positive
    ratio: Positive | None
    regret: Number | None
    called: str | None = None


class Unseen(Record):
    platform: str
    unit: str
    baseline: str
    seeds: list[int]
    limit: Positive | None  # flops of the largest shape
    left_out: int
    shapes: Annotated[list[UnseenShape], Field(min_length=1)]


class Point(Record):
    """Speeds in GFLOP/s at the model's clock; low, high: the range over its assumed constants."""

    name: str
    published: list[Positive]
    best: Positive
    low: Positive
    high: Positive


class Points(Record):
    platform: str
    model: str
    version: int
    calibrated: bool
    points: Annotated[list[Point], Field(min_length=1)]


class Interval(Record):
    value: Number
    low: Number
    high: Number


class Tuner(Record):
    """trials: by space and nearness to the best, in median over the seeds; over: how many times fewer than at random,
    by nearness; ask_ms: of asking and telling."""

    tuner: str
    trials: dict[str, dict[str, Interval]]
    over: dict[str, Interval | None]
    ask_ms: Number | None


class Tuners(Record):
    """What `tensorop tuners bench --format json` printed."""

    seeds: int
    batch: int = 1
    spaces: dict[str, dict[str, Any]]
    hard: dict[str, list[str]]
    rows: Annotated[list[Tuner], Field(min_length=1)]


class Closed(Record):
    """closed: mean share of the distance to the bound; interval: half of its 95 % interval; of_greedy: over the mean
    of `greedy`."""

    closed: Number
    interval: Number
    of_greedy: Number


class Steering(Record):
    """What `benchmarks/steering.py compare` printed. failed: the share of calls that fail; platforms: by platform and
    policy."""

    seeds: int
    calls: int
    failed: Number
    platforms: Annotated[dict[str, dict[str, Closed]], Field(min_length=1)]


class Output(Record):
    lines: Annotated[list[str], Field(min_length=1)]


class Finding(Record):
    """confirmed: what its C program printed, and its exit status, when it was run without tensorop."""

    fault: str
    calls: int
    shared: list[str]
    smallest: str
    detail: str
    program: str
    confirmed: str = ""


class JudgedFunction(Record):
    function: str
    calls: int
    error_over_bound: Number
    differs: list[str] = Field(default_factory=list)
    findings: list[Finding]


class Judgement(Record):
    """What `tensorop judge --blas LIB --format json` printed."""

    library: str
    arch: str
    interfaces: list[str]
    seed: int
    seconds: Positive
    ok: bool
    remarks: list[str]
    functions: Annotated[list[JudgedFunction], Field(min_length=1)]


class Kit(Record):
    """Rows that a tuning kit or a job on a GPU wrote: those of one product and dtype in a file of benchmarks/cuda/."""

    file: str
    product: str
    dtype: str


class KitProblem(BaseModel):
    """One problem of a product. us: by kernel of the product, and by query of cuBLASLt, "0" its first answer.

    more: what the call does besides the product, e.g. `bias`
    """

    model_config = ConfigDict(strict=True)
    m: int
    n: int
    k: int
    batch: int = 1
    more: str = ""
    a_along_m: Literal[0, 1]
    b_along_k: Literal[0, 1]
    chosen: int
    variants_us: dict[str, Positive]
    cublaslt_us: Annotated[dict[str, Positive], Field(min_length=1)]

    @model_validator(mode="after")
    def _chosen_was_timed(self) -> KitProblem:
        if str(self.chosen) not in self.variants_us:
            raise ValueError(f"key 'chosen': expected a key of 'variants_us', got {self.chosen}")
        return self

    def timed(self) -> OnGpu:
        layout = ("T" if self.b_along_k else "N") + ("T" if self.a_along_m else "N")  # as cuBLAS says, by columns
        shape = f"{f'{self.batch} x ' if self.batch > 1 else ''}{self.m}x{self.n}x{self.k}"
        shape += f", {self.more}" if self.more else ""
        ours, first = self.variants_us[str(self.chosen)], self.cublaslt_us.get("0")
        best = min(self.cublaslt_us.values())
        return OnGpu(shape, layout, ours, best / ours, first / ours if first else None)


class BenchedOnGpu(BaseModel):
    """One problem that `tensorop bench` compared on the GPU."""

    model_config = ConfigDict(strict=True)
    m: int
    n: int
    k: int
    layout: Literal["NN", "NT", "TN", "TT"]
    gflops: Positive
    ratio: dict[str, Positive]

    def timed(self) -> OnGpu:
        us = 2 * self.m * self.n * self.k / self.gflops / 1e3
        ratio = self.ratio
        return OnGpu(f"{self.m}x{self.n}x{self.k}", self.layout, us, ratio["cublaslt"], ratio.get("cublaslt-top1"))


@dataclass(frozen=True)
class OnGpu:
    """Our time, and those of cuBLASLt's fastest and first answers over it."""

    shape: str
    layout: str
    us: float
    ratio: float
    first: float | None


class Peers(Record):
    """What attention_peers.py printed into a file of benchmarks/cuda/. ours: the name of our library there."""

    file: str
    ours: str


class PeersProblem(BaseModel):
    """One problem. arms: by library, its time or why there is none; `NAME, pages`: of a cache in pages."""

    model_config = ConfigDict(strict=True)
    kind: str
    b: int
    h: int
    g: int
    s: int
    t: int
    d: int
    v: int
    causal: bool
    lengths: list[int] = []  # of a ragged batch: the rows of each sequence
    arms: dict[str, dict[str, Any]]

    def timed(self, ours: str) -> BesidePeers | None:
        """None where our library has no time."""
        us = {name: float(arm["us"]) for name, arm in self.arms.items() if "us" in arm}
        if (own := us.pop(ours, None)) is None:
            return None
        pages = us.pop(f"{ours}, pages", None)
        shape = f"b{self.b}h{self.h}g{self.g}s{self.s}t{self.t}d{self.d}" + f"v{self.v}" * (self.v != self.d)
        shape += f", {sum(self.lengths)} rows" if self.lengths else ""
        kind = f"{self.kind}, causal" if self.causal else self.kind
        ratios = {name: other / own for name, other in us.items()}
        return BesidePeers(kind, shape, own, ratios, own / pages if pages else None)


@dataclass(frozen=True)
class BesidePeers:
    """ratios: a peer's time over ours; pages: our time over that with the keys in pages."""

    kind: str
    shape: str
    us: float
    ratios: dict[str, float]
    pages: float | None

    @property
    def best(self) -> float | None:
        """The fastest peer's time over ours."""
        return min(self.ratios.values(), default=None)


@dataclass(frozen=True)
class Measured:
    """A file that was read. data: of the payload; gpu: the rows of a kit; peers: of attention beside its peers."""

    name: str
    about: Measurement
    data: Bench | Unseen | Points | Tuners | Output | Kit | Peers | Judgement | Steering
    gpu: tuple[OnGpu, ...] = ()
    peers: tuple[BesidePeers, ...] = ()


SCHEMAS: dict[str, type[Unseen | Points | Tuners | Output | Kit | Peers | Judgement | Steering]] = {
    "unseen": Unseen,
    "points": Points,
    "tuners": Tuners,
    "output": Output,
    "kit": Kit,
    "peers": Peers,
    "judgement": Judgement,
    "steering": Steering,
}


def read(path: Path, root: Path = ROOT) -> Measured:
    """A record with its data, all of it checked. Raises UsageError with file and place."""
    try:
        about = yamlfile.validate(Measurement, _json(path), str(path))
        place = f"{path}: data"
        if about.payload == "bench":
            (bench,) = benches.parse(about.data, place)
            return Measured(path.stem, about, bench)
        data = yamlfile.validate(SCHEMAS[about.payload], about.data, place)
        gpu = tuple(_kit(root, data)) if isinstance(data, Kit) else ()
        return Measured(path.stem, about, data, gpu, tuple(_peers(root, data)) if isinstance(data, Peers) else ())
    except TensoropError as error:
        raise UsageError(error.message, hint=AGAIN) from None


def _json(path: Path) -> dict[str, object]:
    try:
        found = jsontext.loads(files.text(path, files.JSON))
    except ValueError as error:
        raise SpecError(f"{path}: expected JSON: {error}") from None
    if not isinstance(found, dict):
        raise SpecError(f"{path}: expected an object of JSON, got {type(found).__name__}")
    return found


def _rows(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """The objects of a file, a line each, and their places."""
    for number, line in enumerate(files.text(path, files.LINES).splitlines(), 1):
        place = f"{path}:{number}"
        try:
            row = jsontext.loads(line)
        except ValueError as error:
            raise SpecError(f"{place}: expected JSON: {error}") from None
        if isinstance(row, dict):
            yield place, row


def _kit(root: Path, kit: Kit) -> list[OnGpu]:
    path = root / kit.file
    found = []
    for place, row in _rows(path):
        if (row.get("product"), row.get("dtype")) == (kit.product, kit.dtype):
            schema: type[BenchedOnGpu | KitProblem] = BenchedOnGpu if "gflops" in row else KitProblem
            found.append(yamlfile.validate(schema, row, place).timed())
    if not found:
        raise SpecError(f"{path}: expected rows of product '{kit.product}' and dtype '{kit.dtype}', got none")
    return found


def _peers(root: Path, of: Peers) -> list[BesidePeers]:
    path = root / of.file
    rows = (yamlfile.validate(PeersProblem, row, place) for place, row in _rows(path) if "arms" in row)
    found = [timed for row in rows if (timed := row.timed(of.ours)) is not None]
    if not found:
        raise SpecError(f"{path}: expected times of '{of.ours}', got none")
    return found


def read_all(folder: Path = FOLDER, root: Path = ROOT) -> list[Measured]:
    return [read(path, root) for path in sorted(folder.glob("*.json"))]


def here() -> Machine:
    lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    system = platform.freedesktop_os_release().get("PRETTY_NAME", "")
    return Machine(cpu=names[0] if names else platform.machine(), cores=psutil.cpu_count() or 0, system=system)


def versions() -> dict[str, str]:
    """Of what makes the figures, beside the baseline's and the model's, which the data has."""
    found = {"tensorop": version(DISTRIBUTION), "Python": platform.python_version(), "zig": version("ziglang")}
    try:
        words = subprocess.run(["qemu-riscv64", "--version"], capture_output=True, text=True, check=True).stdout.split()
        found["QEMU"] = words[words.index("version") + 1]
    except (OSError, subprocess.CalledProcessError, ValueError):
        pass  # one of the user's cache serves, or none
    return found


def run(commands: list[str], may_find: bool = False) -> str:
    """Runs commands in the checkout; the last one's output. Raises UsageError where one fails.

    may_find: exit status 1 of the last one means findings, not a failure.
    """
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    for number, command in enumerate(commands, 1):
        print(f"$ {command}", file=sys.stderr, flush=True)
        last = number == len(commands)
        done = subprocess.run(
            ["bash", "-c", command],
            cwd=ROOT,
            env={**os.environ, "PATH": path},
            stdout=subprocess.PIPE if last else sys.stderr,
            text=True,
        )
        if done.returncode not in ((0, 1) if last and may_find else (0,)):
            raise UsageError(f"'{command}' ended with exit status {done.returncode}", hint="run it alone and mend it")
    return done.stdout


def record(about: dict[str, Any], output: str) -> dict[str, Any]:
    """The record of commands that printed this. about: page, title, payload and commands."""
    output = output.replace(str(Path.home()), "~")  # of the paths of judged libraries
    data = {"lines": output.rstrip().splitlines()[-SHOWN:]} if about["payload"] == "output" else json.loads(output)
    commit = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=True)
    return {
        "schema": 1,
        **about,
        "machine": here().model_dump(exclude_defaults=True),
        "versions": versions(),
        "date": datetime.now(UTC).date().isoformat(),
        "commit": commit.stdout.strip()[:12],
        "data": data,
    }


def write(path: Path, about: dict[str, Any]) -> None:
    """Writes a record that `read` takes; else the file stays as it was."""
    part = path.with_suffix(".part")
    part.write_text(json.dumps(about, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    try:
        read(part)
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", help="of the file, e.g. gemm-rvv-quick")
    parser.add_argument("--page", help="page of docs/results/ that shows it, e.g. gemm-rvv")
    parser.add_argument("--title", help='heading there, e.g. "Suite quick"')
    parser.add_argument("--payload", help="kind of data, e.g. bench")
    parser.add_argument("--command", dest="commands", action="append", help="may be given several times")
    parser.add_argument("--output", type=Path, metavar="FILE", help="what the last command printed; none is run")
    given = parser.parse_args()
    path = FOLDER / f"{given.name}.json"
    keys = ("page", "title", "payload", "commands")
    try:
        known = read(path).about.model_dump() if path.exists() else {}
        about: dict[str, Any] = {key: getattr(given, key) or known.get(key) for key in keys}
        if missing := [key for key, value in about.items() if not value]:
            raise UsageError(f"{path} is new: missing {', '.join(missing)}", hint="give them as options")
        finds = about["payload"] == "judgement"
        output = given.output.read_text(encoding="utf-8") if given.output else run(about["commands"], finds)
        write(path, record(about, output))
    except TensoropError as error:
        print(f"error: {error.message}\nhint: {error.hint}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
