"""Candidates that end badly, and the command that judges them where files left behind would be seen."""

from __future__ import annotations

import resource
import shlex
import subprocess
import sys
from pathlib import Path

from tests.support import commands
from tests.support.commands import Ended

HEAD = "/*---\nstrategy: s\nreads: {a: rows, b: columns}\ntunables: {mr_vectors: [1], nr: [1]}\n---*/\n"
CRASHES = {"a load": "c[0] = a[(size_t)1 << 40];\n", "a store": "c[(size_t)1 << 40] = 1;\n", "an end": "for (;;) ;\n"}

# What the gates admit, and what takes longer than any test.
LONG = (
    "element waste = alpha;\n"
    + "".join(f"for (size_t w{i} = 0; w{i} < 64; ++w{i}) " for i in range(6))
    + "waste = waste * beta + alpha;\nc[0] = waste;\n"
)

# The command without the gate that proves accesses, which would refuse these: the jail is what is tested here.
UNGATED = """
from tensorop.author import c_gate
from tensorop.cli.entry import main

c_gate.read = lambda source, *given, **more: c_gate.Checked(source)
main()
"""


def made(tmp_path: Path) -> tuple[Path, Path]:
    """Where the command runs, and where its temporary files lie."""
    for name in ("here", "tmp"):
        (tmp_path / name).mkdir()
    return tmp_path / "here", tmp_path / "tmp"


def listed(places: tuple[Path, Path]) -> list[str]:
    return sorted(str(path) for place in places for path in place.rglob("*"))


def judge(platform: str, file: str, *more: str) -> list[str]:
    words = ["judge", file, "--operator", "gemm", "--platform", platform, "--shapes", "8x8x8", "--configurations", "1"]
    return [*words, *more]


def with_cores(words: list[str], places: tuple[Path, Path]) -> Ended:
    """The command as a user starts it whose shell allows core files of any size."""
    line = shlex.join([sys.executable, "-c", UNGATED, *words])
    done = subprocess.run(
        ["sh", "-c", f"ulimit -c unlimited; exec {line}"],
        cwd=places[0],
        env=commands.environment({"TMPDIR": str(places[1])}),
        capture_output=True,
        text=True,
        timeout=300,
    )
    return Ended(done.returncode, done.stdout, done.stderr)


def nothing_is_left(platform: str, places: tuple[Path, Path], names: tuple[str, ...] = tuple(CRASHES)) -> None:
    """Judges each of these crashes; afterwards both folders hold what they held."""
    for name in names:
        (places[0] / f"{name.replace(' ', '_')}.c").write_text(HEAD + CRASHES[name])
    before = listed(places)
    for name in names:
        ended = with_cores(judge(platform, f"{name.replace(' ', '_')}.c", "--timeout", "2s"), places)
        assert ended.status == 1, ended.stderr
        assert "failed at stage verify" in ended.stdout, name
    assert listed(places) == before


def may_leave_cores() -> bool:
    """Whether a process here may have a core file at all: else nothing would be shown by its absence."""
    return resource.getrlimit(resource.RLIMIT_CORE)[1] != 0
