"""Platforms held against what they claim: under the model, and on a board."""

import dataclasses

import numpy as np
import pytest

from tensorop.backends import start
from tensorop.calibration import fit as fitting
from tensorop.commands import check_platform, microbench, probe_platform
from tensorop.errors import BoardError
from tensorop.specs import board, platforms
from tensorop.specs import microbench as specs
from tests.support import board as boards_here

K1 = platforms.load("spacemit-k1")
FEW = ("fma_f32_m1", "chase_l2", "load_used_at_once", "load_behind_reader", "vector_dram", "chase_64_pages")


@pytest.fixture
def k1_board(tmp_path, monkeypatch):
    with boards_here.board(tmp_path / "board") as running:
        monkeypatch.setenv("PATH", running.path)
        yield running


@pytest.mark.covers("command platforms check")
@pytest.mark.parametrize("name", ["rvv", "spacemit-k1", "cortex-a53"])
def test_shipped_platforms_do_what_they_say(name):
    platform = platforms.load(name)
    lines = list(check_platform.check(platform, only=("fma_f32_m1", "load_m1")))
    assert [str(line) for line in lines if not line.ok] == []
    assert {f"VLEN {vlen}" for vlen in platform.verify_vlens} <= {line.about for line in lines}


def test_published_figures_stand_beside_the_model():
    lines = {
        line.about: line.message for line in check_platform.check(K1, only=("fma_f32_m2", "scheduled_m1", "wide_m2"))
    }
    assert "published 2.00, inside" in lines["fma_f32_m2"]
    assert "choices of constants" in lines["order"]


def test_flags_the_compiler_does_not_take():
    broken = dataclasses.replace(K1.compiler, arch_flags=("-mcpu=no_such_core",))
    *_, last = check_platform.check(dataclasses.replace(K1, compiler=broken))
    assert not last.ok
    assert last.about == "compiler"


def test_a_length_the_core_has_not():
    fixed = dataclasses.replace(K1, qemu_cpu=K1.qemu_cpu.replace("{vlen}", "512"))
    lines = [line for line in check_platform.check(fixed, only=("add_m1",)) if line.about == "VLEN 256"]
    assert "the core has VLEN 512" in lines[0].message


def test_every_benchmark_names_what_exists():
    names = [b.name for b in specs.benchmarks("riscv64")]
    assert len(names) == len(set(names))
    assert {p.benchmark for p in specs.published("spacemit-x60")} <= set(names)
    assert specs.benchmarks("x86_64") == ()


@pytest.mark.extended
def test_hidden_constants_are_found_again():
    model = board.load(K1.board, "test")
    runner = start(K1)
    benches = microbench.prepare(K1, 256, FEW)
    rng = np.random.default_rng(3)
    hidden = {}
    for keys in model.unknowns().values():
        x = rng.random()
        for key in keys:
            item = model.assumed()[key]
            switch = key.endswith((".present", ".chained", ".shared_ports"))
            hidden[key] = float(x > 0.5) if switch else item.low + x * (item.high - item.low)
    found = {b.benchmark.name: c[0] for b, c in microbench.model(benches, runner, model, 256, [hidden, hidden])}
    fit = fitting.fit(benches, found, runner, model, 256)
    assert fit.residual_after < 0.02 < fit.residual_before
    assert fit.explains
    assert fit.residual_known < 1e-2


@pytest.mark.extended
def test_a_board_gets_its_file(k1_board, tmp_path):
    lines = list(check_platform.check(K1, k1_board.word, folder=tmp_path, only=FEW))
    assert "Spacemit(R) X60" in next(line.message for line in lines if line.about == "board")
    text = (tmp_path / "calibration-spacemit-k1.yaml").read_text()
    assert "kernel: 6.6.63-board" in text
    assert all(name in text for name in FEW)
    # An emulator is no X60, and the file says so.
    assert not lines[-1].ok
    assert "no platform can use it" in lines[-1].message


def test_another_board_gets_none(k1_board, tmp_path):
    k1_board.is_a(vlen=128)
    with pytest.raises(BoardError, match="VLEN 128"):
        list(check_platform.check(K1, k1_board.word, folder=tmp_path))
    assert not list(tmp_path.glob("calibration*"))


@pytest.mark.covers("command platforms probe")
def test_a_probed_boards_file_loads(k1_board, tmp_path):
    (tmp_path / "platforms").mkdir()
    (tmp_path / "platforms" / "mine.yaml").write_text(probe_platform.probe(k1_board.word, "mine"))
    platform = platforms.load("mine", (tmp_path,))
    assert (platform.vlens, platform.caches["l2"].shared_by) == ((256,), 4)


def test_this_machines_file_loads(tmp_path):
    (tmp_path / "platforms").mkdir()
    (tmp_path / "platforms" / "mine.yaml").write_text(probe_platform.probe("native", "mine"))
    assert platforms.load("mine", (tmp_path,)).runner == "native"
