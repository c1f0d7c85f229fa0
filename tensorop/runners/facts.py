"""Reads a machine's properties into a Core, from the output of a shell script and a small program."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from tensorop.errors import BoardError, JobError
from tensorop.model.architecture import of_uname
from tensorop.model.core import Core
from tensorop.runners import confined
from tensorop.runners.base import Launch, Machine, Runner
from tensorop.specs import native

VECTORS = "v"  # RISC-V's vector extension in the line `isa` of /proc/cpuinfo
_SCRIPT = Path(__file__).with_name("facts.sh")


def read(runner: Machine, program: Path | None = None) -> Core:
    """The core of the machine behind a runner.

    program: native/identify.c built for it (see tensorop.toolchain.programs). Without it, VLEN, clock and identity
    registers are unknown.
    Raises BoardError if a board does not answer, JobError if the program does not run.
    """
    output = runner.shell(_SCRIPT.read_text())
    reported = execute(runner, program) if program is not None else {}
    return parse(output, reported, runner.link())


def execute(runner: Runner, program: Path, vlen: int | None = None) -> dict[str, str]:
    """The output of identify.c on a target, key -> text. vlen: bits, if an emulator's can be chosen.

    Raises BoardError, JobError.
    """
    ended = confined.run(runner, Launch([runner.place(program)], vlen), timeout_s=90)
    if ended.status != 0:
        why = runner.lost(ended.status, ended.stderr)
        lines = ended.stderr.strip().splitlines()[-1:] or [f"status {ended.status}"]
        if why is not None and runner.far:
            raise BoardError(f"{why}: {lines[0]}", hint=runner.hint)
        raise JobError(f"a small static program does not run on the target ({runner.name}): {lines[0]}")
    return dict(line.split(" ", 1) for line in ended.stdout.decode(errors="replace").splitlines() if " " in line)


def confirms(reported: Mapping[str, str]) -> bool:
    """False if identify.c's output contradicts RISC-V's letter `v`.

    Kernels print the letter also for cores of the draft 0.7.1, which have no vlenb to read.
    """
    return not reported or "vlen" in reported


def parse(output: str, reported: Mapping[str, str], link: float = 0.0) -> Core:
    """The outputs of facts.sh and identify.c as a Core. Raises BoardError if the script did not run."""
    parts = _parts(output)
    if "end" not in parts:
        raise BoardError("the target has no usable shell: it did not run our script", hint="install sh there")

    def first(part: str) -> str:
        return next(iter(parts.get(part, [])), "")

    machine, *rest = [*parts.get("uname", []), ""]
    processors = _processors(parts.get("cpuinfo", []))
    caches = _sysfs(parts.get("sysfs", [])) or _getconf(parts.get("getconf", [])) or _tree(parts.get("tree", []))
    online = reported.get("cores") or first("online")
    page = reported.get("page") or first("page")
    flags = frozenset[str]().union(*map(native.flags_of, processors.values()))
    return Core(
        arch=of_uname(machine),
        kernel=rest[0],
        libc=first("libc"),
        flags=flags if confirms(reported) else flags - {VECTORS},
        processors=processors,
        identity={key: reported[key] for key in ("vendor", "architecture", "implementation") if key in reported},
        vlen=int(reported["vlen"]) if "vlen" in reported else None,
        page=int(page) if page.isdigit() else 0,
        cores=int(online) if online.isdigit() else 0,
        caches=caches,
        clock_mhz=float(reported.get("clock", 0)),
        link=link,
        governor=first("governor"),
        load=float((first("load") or "0").split()[0]),
    )


def _parts(output: str) -> dict[str, list[str]]:
    parts: dict[str, list[str]] = {}
    current: list[str] = []
    for line in output.splitlines():
        if line.startswith("@"):
            current = parts.setdefault(line[1:], [])
        else:
            current.append(line)
    return {name: [line.strip() for line in lines] for name, lines in parts.items()}


def _processors(lines: list[str]) -> dict[int, dict[str, str]]:
    """/proc/cpuinfo by processor; lines outside of a processor's block (a board's name) belong to all."""
    out: dict[int, dict[str, str]] = {}
    common: dict[str, str] = {}
    current = common
    for line in lines:
        key, colon, value = (word.strip() for word in line.partition(":"))
        if not colon:
            current = common
        elif key == "processor" and value.isdigit():
            current = out.setdefault(int(value), {})
        else:
            current[key] = value
    return {number: {**common, **own} for number, own in out.items()}


def _sysfs(lines: list[str]) -> dict[str, dict[str, int]]:
    indices: dict[str, dict[str, str]] = {}
    for line in lines:
        index, key, value = (*line.split(" ", 2), "", "")[:3]
        indices.setdefault(index, {})[key] = value
    return native.levels(indices.values())


def _getconf(lines: list[str]) -> dict[str, dict[str, int]]:
    """Caches as glibc reports them; 0 or nothing means unknown. It does not report sharing."""
    values = {words[0]: native.size_of(words[1]) for words in map(str.split, lines) if len(words) == 2}
    out = {}
    for level, stem in (("l1", "LEVEL1_DCACHE"), ("l2", "LEVEL2_CACHE"), ("l3", "LEVEL3_CACHE")):
        size, ways, line = (values.get(f"{stem}_{what}", 0) for what in ("SIZE", "ASSOC", "LINESIZE"))
        if size and ways and line:
            out[level] = {"size": size, "ways": ways, "line": line}
    return out


def _tree(lines: list[str]) -> dict[str, dict[str, int]]:
    """Caches from a device tree's big-endian words: size, sets, block-size."""
    values = {(w[0], w[1]): int(w[2][:8], 16) for w in map(str.split, lines) if len(w) == 3}
    out = {}
    for level in ("l1", "l2"):
        size, sets = values.get((level, "size"), 0), values.get((level, "sets"), 0)
        line = values.get((level, "block-size"), 64)
        if size and sets and size % (sets * line) == 0:
            out[level] = {"size": size, "ways": size // (sets * line), "line": line}
    return out
