"""Whole jobs through the command line on this machine, and what may befall them."""

from __future__ import annotations

import contextlib
import json
import os
import random
import re
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tensorop as package
from tensorop.backends import reach
from tensorop.commands import explain, libraries, opened
from tensorop.space import problems
from tensorop.specs import platforms
from tensorop.toolchain import tool
from tests.support import disks, products
from tests.support.commands import (
    JOURNAL,
    ROOT,
    Watched,
    environment,
    events,
    journal,
    kill_group,
    refused,
    start,
    tensorop,
    wait_for,
)
from tests.support.operators import gemm

SMALL = ("gemm", "--platform", "generic", "--dtype", "f32", "--shapes", "24x17x33", "--jobs", "1")


def product_of(folder: Path) -> set[str]:
    return {entry.name for entry in folder.iterdir()} & {"include", "lib"} if folder.exists() else set()


@dataclass(frozen=True)
class Made:
    """A finished job that was killed in its middle and gone on with: its folder, the trials that had ended when it was
    killed and in the end, what was in the folder then, what the second process printed and told meanwhile."""

    folder: Path
    before: list[dict[str, Any]]
    left: set[str]
    finished: list[dict[str, Any]]
    said: dict[str, Any]
    told: str
    peers: list[str]  # in the cache before


def peers() -> list[str]:
    return libraries.in_cache(gemm(), reach(platforms.load("generic"), "native"), 1)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    """--out is relative, as by default."""
    place, there = tmp_path_factory.mktemp("job"), peers()
    words = (*SMALL, "--trials", "6", "--out", "out", "--format", "json")
    child = start(*words, cwd=place)
    wait_for(lambda: len(events(place / "out", "finished")) >= 3, child)
    kill_group(child)
    child.communicate()
    before, left = events(place / "out", "finished"), product_of(place / "out")
    ended = tensorop(*words, cwd=place, fresh=True)
    assert ended.status == 0, ended.stderr
    return Made(place / "out", before, left, events(place / "out", "finished"), ended.json(), ended.stderr, there)


def test_a_job_ends_with_a_library_that_computes(made: Made) -> None:
    folder = made.folder
    assert Path(str(made.said["library"])).name == "libtensorop_gemm.so"
    assert {"openblas", *made.peers} <= made.said["bench"]["baselines"].keys() <= {"openblas", *peers()}
    assert ("best" in made.said["bench"]["geomean"]) or not made.peers
    assert "negative controls" in made.told
    assert (folder / "share/tensorop/report.html").is_file()
    a, b = np.ones((5, 7), np.float32), np.full((7, 3), 2, np.float32)
    assert np.array_equal(package.load(folder).gemm(a, b), np.full((5, 3), 14, np.float32))


@pytest.mark.extended
def test_the_same_command_again_tries_nothing_anew(made: Made) -> None:
    folder = made.folder
    library = (folder / "lib/libtensorop_gemm.so").resolve().read_bytes()
    ended = tensorop(*SMALL, "--trials", "6", "--out", folder, cwd=folder.parent)
    assert ended.status == 0, ended.stderr
    assert events(folder, "finished") == made.finished
    assert (folder / "lib/libtensorop_gemm.so").resolve().read_bytes() == library
    assert "library: " in ended.stdout


@pytest.mark.extended
def test_without_a_search_it_has_the_variants_and_the_choice_of_another_product(made: Made, tmp_path: Path) -> None:
    words = (*SMALL, "--no-search", "--warm-start", made.folder, "--out", tmp_path / "again", "--format", "json")
    ended = tensorop(*words, cwd=tmp_path)
    assert ended.status == 0, ended.stderr
    assert ended.json()["bench"]
    assert not events(tmp_path / "again", "started")
    manifests = [
        json.loads((at / "share/tensorop/manifest.json").read_text()) for at in (made.folder, tmp_path / "again")
    ]
    first, again = (manifest["operators"]["gemm"]["dtypes"] for manifest in manifests)
    assert again == first
    assert (tmp_path / "again/share/tensorop/report.html").is_file()


def test_without_a_search_and_known_winners_it_has_first_expected_kernels(tmp_path: Path) -> None:
    ended = tensorop(*SMALL, "--no-search", "--out", tmp_path / "out", cwd=tmp_path)
    assert ended.status == 0, ended.stderr
    assert "no tuned configuration of gemm is known for generic" in ended.stderr
    assert "calls passed" in ended.stderr
    a, b = np.ones((5, 7), np.float32), np.full((7, 3), 2, np.float32)
    assert np.array_equal(package.load(tmp_path / "out").gemm(a, b), np.full((5, 3), 14, np.float32))
    explained = tensorop("explain", tmp_path / "out", "16x16x16", cwd=tmp_path)
    assert "the library was made without a search" in explained.stderr
    assert "without --no-search" in explained.stderr


def test_other_settings_do_not_mix_with_a_run(made: Made) -> None:
    folder = made.folder
    words = ["7" if word == "1" else word for word in SMALL]
    message = refused(*words, "--trials", "6", "--seed", "5", "--out", folder, cwd=folder.parent)
    assert "seed" in message
    assert "--fresh" in message
    assert product_of(folder) == {"include", "lib"}


def test_killed_in_the_middle_it_goes_on(made: Made) -> None:
    assert made.left == set()
    assert made.finished[: len(made.before)] == made.before
    assert len(made.finished) > len(made.before) >= 3
    assert len({record["key"] for record in made.finished}) == len(made.finished)
    assert product_of(made.folder) == {"include", "lib"}


def test_two_runs_on_one_folder(tmp_path: Path) -> None:
    first = start(*SMALL, "--trials", "50", "--out", tmp_path / "out", cwd=tmp_path)
    try:
        wait_for(lambda: bool(journal(tmp_path / "out")), first)
        message = refused(*SMALL, "--trials", "4", "--out", tmp_path / "out", cwd=tmp_path, status=1)
        assert f"another run uses {tmp_path / 'out'} (process {first.pid}" in message
        assert "another --out" in message
    finally:
        kill_group(first)
        first.communicate()


@pytest.fixture
def busy() -> Iterator[None]:
    """A loop on every processor, and this process and all it starts behind them."""
    loops = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(os.cpu_count() or 1)]
    before = os.nice(0)
    os.setpriority(os.PRIO_PROCESS, 0, 5)
    yield
    for loop in loops:
        loop.kill()
        loop.wait()
    if os.geteuid() == 0:  # others cannot take a niceness back
        os.setpriority(os.PRIO_PROCESS, 0, before)


@pytest.fixture
def rationed() -> Iterator[bool]:
    """Two thirds of a processor for this process and all it starts, by a control group with a quota, of version 1 or 2:
    whether one can be had."""
    first = Path("/sys/fs/cgroup/cpu")
    root = first if first.is_dir() else Path("/sys/fs/cgroup")
    mine = {line.split(":")[1]: line.split(":")[2] for line in Path("/proc/self/cgroup").read_text().splitlines()}
    before = root / mine.get("cpu" if first.is_dir() else "", "/").lstrip("/") / "cgroup.procs"
    place = root / f"tensorop-{os.getpid()}"
    try:
        place.mkdir()
        if first.is_dir():
            (place / "cpu.cfs_quota_us").write_text("66000")
        else:
            (place / "cpu.max").write_text("66000 100000")
        (place / "cgroup.procs").write_text(str(os.getpid()))
    except OSError:
        with contextlib.suppress(OSError):
            place.rmdir()
        yield False
        return
    yield True
    before.write_text(str(os.getpid()))
    place.rmdir()


@pytest.fixture
def slow(rationed: bool, request: pytest.FixtureRequest) -> None:
    """Much more time passes than a process runs: by a quota, or where none can be had beside other work."""
    if not rationed:
        request.getfixturevalue("busy")


@pytest.mark.extended
@pytest.mark.usefixtures("slow")
def test_a_budget_that_no_trial_fits_into_still_gives_a_product_on_a_slow_machine(tmp_path: Path) -> None:
    """The example's operator, whose jobs take a third of gemm's time."""
    small = ("conv1d", "--plugins", ROOT / "examples" / "operator", "--platform", "generic", "--dtype", "f32,f64")
    words = (*small, "--shapes", "b1c4h33t5", "--jobs", "1", "--budget", "50ms", "--out", "out")
    ended = tensorop(*words, cwd=tmp_path, fresh=True)
    assert ended.status == 0, ended.stderr
    assert product_of(tmp_path / "out") == {"include", "lib"}
    tried = {(record["dtype"], record["stage"]) for record in events(tmp_path / "out", "started")}
    assert tried >= {(dtype, stage) for dtype in ("f32", "f64") for stage in ("micro", "blocking")}


def test_an_out_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    for out in ("file", "file/below", "/proc/nothing"):
        message = refused(*SMALL, "--trials", "4", "--out", out, cwd=tmp_path)
        assert f"cannot write to {out}" in message
        assert "another --out" in message
    assert (tmp_path / "file").read_text() == "mine"


@pytest.mark.skipif(os.geteuid() == 0, reason="root writes everywhere")
def test_an_out_without_permission(tmp_path: Path) -> None:
    tmp_path.chmod(stat.S_IRUSR | stat.S_IXUSR)
    assert "cannot write to" in refused(*SMALL, "--trials", "4", "--out", tmp_path / "out", cwd=tmp_path)


def test_a_foreign_library_in_out_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "out" / "lib").mkdir(parents=True)
    (tmp_path / "out" / "lib" / "libmine.so").write_text("mine")
    message = refused(*SMALL, "--trials", "4", "--out", "out", cwd=tmp_path, status=1)
    assert not (tmp_path / "out" / JOURNAL).exists()
    assert "lib/libmine.so, which tensorop did not write" in message
    assert [p.name for p in (tmp_path / "out" / "lib").iterdir()] == ["libmine.so"]


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    with disks.mounted(tmp_path / "disk") as place:
        yield place


def refused_for_want_of_room(disk: Path, cwd: Path, free: int) -> None:
    """A job on `disk` with so many bytes free, which are given back after it."""
    room = os.statvfs(disk)
    (disk / "ballast").write_bytes(bytes(room.f_bavail * room.f_frsize - free))
    message = refused(*SMALL, "--trials", "4", "--out", disk / "out", cwd=cwd, status=1)
    assert "the disk is full" in message or "No space left on device" in message
    assert "free disk space" in message
    assert str(disk) in message
    assert product_of(disk / "out") == set()
    (disk / "ballast").unlink()


def test_a_full_disk_ends_the_job_in_a_sentence(small_disk: Path, tmp_path: Path) -> None:
    refused_for_want_of_room(small_disk, tmp_path, 400 << 10)
    assert {record["outcome"]["kind"] for record in events(small_disk / "out", "finished")} <= {"ok"}


@pytest.mark.extended
def test_a_full_disk_costs_no_candidate(small_disk: Path, tmp_path: Path) -> None:
    refused_for_want_of_room(small_disk, tmp_path, 100 << 10)
    job = Watched(*SMALL, "--trials", "4", "--out", small_disk / "out", cwd=tmp_path)
    job.until("verification:")  # of a whole library, on a disk with room
    job.press(signal.SIGKILL)
    job.finish()
    assert {record["outcome"]["kind"] for record in events(small_disk / "out", "finished")} == {"ok"}


def test_a_missing_compiler_is_named_with_the_command_that_brings_it(tmp_path: Path) -> None:
    """A torn `ziglang` stands before the real one on the import path."""
    (tmp_path / "ziglang").mkdir()
    (tmp_path / "ziglang" / "__init__.py").write_text("")
    message = refused(
        *SMALL, "--trials", "4", "--out", "out", cwd=tmp_path, status=1, env={"PYTHONPATH": str(tmp_path)}
    )
    assert "ziglang" in message
    assert "pip install ziglang" in message
    assert product_of(tmp_path / "out") == set()


def test_with_json_only_json_is_on_stdout_when_a_job_fails(tmp_path: Path) -> None:
    (tmp_path / "ziglang").mkdir()  # torn, and before the real one on the import path
    (tmp_path / "ziglang" / "__init__.py").write_text("")
    broken = {"PYTHONPATH": str(tmp_path)}
    ended = tensorop(*SMALL, "--trials", "4", "--out", "out", "--format", "json", cwd=tmp_path, env=broken)
    assert (ended.status, ended.stdout) == (1, "")


def test_the_journal_is_the_only_thing_beside_work_during_a_run(tmp_path: Path) -> None:
    child = start(*SMALL, "--trials", "50", "--out", tmp_path / "out", cwd=tmp_path)
    try:
        wait_for(lambda: len(events(tmp_path / "out", "finished")) >= 1, child)
        files = [p.relative_to(tmp_path / "out") for p in (tmp_path / "out").rglob("*") if p.is_file()]
        assert {p for p in files if p.parts[0] != "work"} == {JOURNAL}
    finally:
        kill_group(child)
        child.communicate()
    left = subprocess.run(["pgrep", "-s", str(child.pid)], capture_output=True, text=True, check=False).stdout
    assert left == ""


# --- what `explain` says of the finished library --------------------------------------------------------------------

COUNT, LONGEST = 50, 300
# calls the library at each shape and layout; TENSOROP_VERBOSE has it name its variants on stderr
CALLS = """
import json, sys
import numpy as np
import tensorop
library = tensorop.load(sys.argv[1])
for (m, n, k), layout in json.loads(sys.argv[2]):
    ta, tb = layout.get("ta", 0), layout.get("tb", 0)
    a, b = np.ones((k, m) if ta else (m, k), np.float32), np.ones((n, k) if tb else (k, n), np.float32)
    library.gemm(a, b, transpose_a=bool(ta), transpose_b=bool(tb))
"""


def test_explain_names_the_variant_that_the_library_chooses(made: Made) -> None:
    found, rng = opened.open_product(made.folder), random.Random(7)
    sides = [tuple(round(LONGEST ** rng.random()) for _ in range(3)) for _ in range(COUNT)]
    asked = [(shape, rng.randrange(len(found.operator.layouts))) for shape in sides]
    calls = json.dumps([(shape, dict(found.operator.layouts[layout])) for shape, layout in asked])
    env = environment({"TENSOROP_VERBOSE": "1", "TENSOROP_NUM_THREADS": "1"})
    ended = subprocess.run([sys.executable, "-c", CALLS, made.folder, calls], capture_output=True, text=True, env=env)
    chosen = [int(number) for number in re.findall(r"by variant (\d+):", ended.stderr)]
    answers = [explain.explain(found, problems.of(found.operator, "f32", *one)) for one in asked]
    assert [answer.variant for answer in answers] == chosen, ended.stderr
    assert len(set(chosen)) > 1
    assert {answer.lacking for answer in answers} == {""}
    assert {answer.rule.split()[0] for answer in answers} == {"direct", "the"}


def test_explain_has_costs_of_what_was_measured_and_what_was_not(made: Made) -> None:
    found = opened.open_product(made.folder)
    answer = explain.explain(found, problems.of(found.operator, "f32", (24, 17, 33)))
    assert answer.unit == "ns"
    assert {one.by for one in answer.variants if one.template != "direct"} == {"measured"}
    answer = explain.explain(found, problems.of(found.operator, "f32", (8, 8, 8)))
    assert [one.template for one in answer.variants if one.measured] == ["direct"]  # in trials of its own
    answer = explain.explain(found, problems.of(found.operator, "f32", (25, 17, 33)))
    assert all(one.predicted and one.measured is None for one in answer.variants if one.template != "direct")


def test_explained_costs_are_those_that_the_tree_was_made_with(made: Made) -> None:
    """From the same evidence the same tree is grown, bit by bit."""
    packaged, again = products.trees_again(made.folder)
    assert again == packaged


@pytest.mark.extended
def test_explained_threads_cut_a_call_as_the_library_does(made: Made, tmp_path: Path) -> None:
    found, rng = opened.open_product(made.folder), random.Random(3)
    text = (made.folder / "share/tensorop/src/dispatch_f32.c").read_text()
    pieces = [re.search(pattern, text, re.DOTALL | re.MULTILINE) for pattern in (
        r"^struct grid \{.*?^\};$", r"^static struct grid cut\(.*?^\}$")]  # fmt: skip
    main = """
int main(int count, char **words) {
    size_t v[5];
    for (int i = 1; i + 4 < count; i += 5) {
        for (int j = 0; j < 5; ++j)
            v[j] = strtoul(words[i + j], NULL, 10);
        const struct grid g = cut(v[0], v[1], v[2], v[3], v[4]);
        printf("%zu %zu\\n", g.down, g.across);
    }
    return 0;
}
"""
    heads = "#include <stddef.h>\n#include <stdio.h>\n#include <stdlib.h>\n"
    (tmp_path / "cut.c").write_text(heads + "\n".join(piece[0] for piece in pieces if piece) + main)
    subprocess.run([*tool.cc("cut.c", "-O2", "-o", "cut")], cwd=tmp_path, check=True)
    wanted, words = [], []
    for _ in range(COUNT // 2):
        shape = tuple(round(80 * 40 ** rng.random()) for _ in range(3))
        problem, threads = problems.of(found.operator, "f32", shape), rng.randint(2, 70)
        whole = explain.explain(found, problem)
        variant = found.card["dtypes"]["f32"]["variants"][whole.variant]
        tile = found.operator.reference.tile(
            variant["point"], found.platform.lanes("f32", variant["point"]), variant["reads"]
        )
        m, n, k = (whole.features[name] for name in "mnk")
        most = min(threads, m * n * k >> 20)
        answer = explain.explain(found, problem, threads=threads)
        if most < 2:
            assert answer == whole
            continue
        words += [most, m, n, tile["mr"], tile["nr"]]
        wanted.append((answer, whole))
    ended = subprocess.run([tmp_path / "cut", *map(str, words)], capture_output=True, text=True, check=True)
    grids = [tuple(map(int, line.split())) for line in ended.stdout.splitlines()]
    assert len(grids) == len(wanted) > COUNT // 4
    for (down, across), (answer, whole) in zip(grids, wanted, strict=True):
        assert answer.blocks == down * across
        cut = {"m": whole.features["m"] // down, "n": whole.features["n"] // across}
        assert answer.features == whole.features | cut
        assert answer.path
        assert all(one.measured is None for one in answer.variants) or answer.blocks == 1
