"""tensorop without one of its sub-packages, or without all: the rest works, and what needs one says so."""

from __future__ import annotations

import ast
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tensorop import subpackages
from tests.support.classes import extended
from tests.support.commands import JOURNAL, ROOT, events

JOB = ("gemm", "--runner", "null", "--platform", "rvv", "--dtype", "f32", "--shapes", "64x64x64", "--jobs", "1")
WORDS = {
    "help": ("--help",),
    "platforms": ("platforms", "list"),
    "job": (*JOB, "--trials", "12", "--seed", "3", "--out", "out"),
    "calibration": ("platforms", "show", "fitted", "--plugins", "plugins"),
    "cluster": (*JOB, "--trials", "2", "--workers", "2", "--out", "other"),
    "cuda": ("gemm", "--platform", "cuda-sm90", "--out", "other"),
    "kits": ("export", "out"),
}
# All commands in one process: each start of Python takes longer than they do.
SCRIPT = """
import contextlib, io, json, sys
from tensorop.cli.main import main
ended = {}
for name, words in json.loads(sys.argv[1]).items():
    sys.argv, out, err, status = ["tensorop", *words], io.StringIO(), io.StringIO(), 0
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            main()
        except SystemExit as end:
            status = end.code or 0
    ended[name] = [status, out.getvalue(), err.getvalue()]
print(json.dumps(ended))
"""
ALL = tuple(subpackages.OFFERS)


def without(folders: tuple[str, ...], place: Path) -> dict[str, tuple[int, str, str]]:
    """How the commands end in a copy of the package that lacks these folders."""
    shutil.copytree(ROOT / "tensorop", place / "tensorop", ignore=shutil.ignore_patterns("__pycache__", *folders))
    for plugins in ("cmake", "platforms", "primitives", "templates", "tuners"):
        (place / plugins).symlink_to(ROOT / plugins)
    (place / "plugins" / "platforms").mkdir(parents=True)
    (place / "plugins" / "platforms" / "fitted.yaml").write_text(
        "schema: 1\nname: fitted\nparent: spacemit-k1\ncalibration: calibration-k1.yaml\n"
    )
    words = {name: given for name, given in WORDS.items() if name in folders or name not in ALL}
    ended = subprocess.run(
        [sys.executable, "-c", SCRIPT, json.dumps(words)],
        cwd=place,
        env={**os.environ, "PYTHONPATH": str(place)},
        text=True,
        capture_output=True,
        timeout=300,
    )
    assert ended.returncode == 0, ended.stderr
    return {name: tuple(one) for name, one in json.loads(ended.stdout).items()}


@pytest.mark.parametrize("folders", [*(extended((name,)) for name in ALL), ALL], ids=lambda folders: "+".join(folders))
def test_a_job_is_done_without_it_and_what_needs_it_says_so(folders: tuple[str, ...], tmp_path: Path) -> None:
    ended = without(folders, tmp_path)
    for name in ("help", "platforms", "job"):
        assert ended[name][0] == 0, ended[name]
    assert "cuda-sm90" in ended["platforms"][1]
    assert len(events(tmp_path / "out", "finished")) == 12
    assert (tmp_path / "out" / JOURNAL).is_file()
    for name in folders:
        status, out, err = ended[name]
        assert status, (name, out, err)
        if name == "kits":
            assert "export" not in ended["help"][1]
            assert err.startswith("error: unknown command or operator 'export'")
        else:
            assert f"needs the sub-package tensorop.{name}, which is not installed" in err.splitlines()[0]
            assert "install tensorop again" in err.splitlines()[1]


def test_the_core_imports_none_of_them() -> None:
    """Also not within a function, where the import contracts look too."""
    core = [
        path for path in (ROOT / "tensorop").rglob("*.py") if path.relative_to(ROOT / "tensorop").parts[0] not in ALL
    ]
    for path in core:
        text = path.read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(text)):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [f"{node.module}.{a.name}" for a in node.names] if isinstance(node, ast.ImportFrom) else []
            assert not [name for name in names if name.startswith(tuple(f"tensorop.{folder}" for folder in ALL))], path
        assert "cublaslt" not in text.lower(), path
        assert "platform.device" not in text, path


def test_what_they_offer_is_there() -> None:
    for folder, modules in subpackages.OFFERS.items():
        for module in modules:
            assert subpackages.file(folder, module).is_file()
