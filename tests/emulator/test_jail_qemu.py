"""The jail around QEMU: from a guest's system calls, and from the host's that stores into QEMU's own memory make."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from tensorop import paths
from tensorop.model.architecture import architecture, host_arch
from tensorop.model.kernel import Artifact, Source
from tensorop.provision import qemu
from tensorop.runners import confined, session
from tensorop.runners.base import Launch, Need
from tensorop.toolchain.compile import compile_source, link_program
from tests.support import attacks, commands, kernels

ARCHES = pytest.mark.parametrize("arch", ["riscv64", "aarch64"])
ESCAPES = ("write a new file", "execute a shell", "start a process", "open a socket", "be traced")


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return attacks.place(tmp_path)


@ARCHES
def test_a_guest_gets_nothing_of_the_host(tmp_path: Path, place: Path, arch: str) -> None:
    attacks.refuses(kernels.runner(arch), attacks.candidate(tmp_path, place, arch), place, session.Guest())


@ARCHES
def test_threads_start_only_where_several_are_checked(tmp_path: Path, place: Path, arch: str) -> None:
    attacks.threads_alone(kernels.runner(arch), attacks.candidate(tmp_path, place, arch))


def escape(arch: str, work: Path, place: Path) -> Path:
    """The program that makes system calls of the host through QEMU's own code."""
    text = (Path(attacks.__file__).parent / "escape.c").read_text()
    # the compiler sees no file but those of the source
    source = Source((("escape.c", text), ("region.h", (paths.native_dir() / "region.h").read_text())))
    target = architecture(arch)
    flags = ("-target", target.static_triple, f"-mcpu={target.static_cpu}", "-O1", "-g0", f'-DPLACE="{place}"')
    made = compile_source(source, flags, work=work)
    assert isinstance(made, Artifact), made
    program = link_program(made, arch=arch, name="escape")
    assert isinstance(program, Artifact), program
    return program.path


@pytest.mark.skipif(host_arch() != "x86_64", reason="the host's instructions in it are x86-64's")
@ARCHES
def test_a_store_into_the_emulators_own_code_gets_nothing_of_the_host(tmp_path: Path, place: Path, arch: str) -> None:
    program = escape(arch, tmp_path, place)
    runner = kernels.runner(arch)
    bare = [str(qemu.qemu(arch)), str(program)]
    for number, name in enumerate(ESCAPES):
        # Without the jail the attack works; nothing would be shown by one that never does.
        free = subprocess.run([*bare, str(number)], env={}, capture_output=True, timeout=60)
        assert free.returncode == (7 if number == 1 else 0), (name, free)
        assert (place / "made").exists() is (number < 2), name
        (place / "made").unlink(missing_ok=True)
        for needs in (Need.NOTHING, Need.THREADS | Need.READS):
            closed = confined.run(runner, Launch([str(program), str(number), "close"], needs=needs), timeout_s=20)
            # beside libraries that read, opening a file is refused by an error, as libraries bear it
            assert closed.status == (255 if number == 0 and Need.READS in needs else -signal.SIGSYS), (name, closed)
            assert not (place / "made").exists(), name
        # Before it closes, while libraries are loaded, a call is refused and the process lives on.
        opened = confined.run(runner, Launch([str(program), str(number)]), timeout_s=20)
        assert opened.status == 255, (name, opened)
        assert [p.name for p in place.iterdir()] == ["there"], name


# In a container whose policy forbids filters: what a process lacks, and what becomes of a model's kernels.
UNCONFINED = """
from dataclasses import replace
from tensorop import errors
from tensorop.trial import confinement
from tensorop.model.job import Job
from tensorop.specs import platforms
from tensorop.backends import reach
for platform in ("native", "rvv"):
    job, target = Job("gemm", platform, author="llm"), reach(platforms.load(platform), None)
    print(*confinement.missing(target))
    print(confinement.require(replace(job, unsafe=True), target))
    print(confinement.require(replace(job, author="offline"), target))
    try:
        confinement.require(job, target)
    except errors.UsageError as error:
        print(error.hint)
"""


def unconfined(*words: str, cwd: Path, env: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, "-m", "tests.support.without_seccomp", sys.executable, *words]
    return subprocess.run(argv, cwd=cwd, env=commands.environment(env), capture_output=True, text=True, timeout=300)


def test_what_a_kernel_without_filters_lacks_is_told(tmp_path: Path) -> None:
    done = unconfined("-c", UNCONFINED, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    told = done.stdout.splitlines()
    for lacks, note, offline, hint in (told[:4], told[4:]):
        assert "filters no system calls (seccomp)" in lacks
        assert "with all your rights" in note
        assert offline == ""
        assert "add --unsafe" in hint


def test_a_model_is_not_asked_for_kernels_that_nothing_would_confine(tmp_path: Path) -> None:
    endpoint = {"OPENAI_BASE_URL": "http://127.0.0.1:9/v1", "OPENAI_API_KEY": "k", "TENSOROP_LLM_MODEL": "m"}
    words = ("gemm", "--platform", "rvv", "--author", "llm", "--out", "out")
    done = unconfined("-m", "tensorop", *words, cwd=tmp_path, env=endpoint)
    assert done.returncode == 2, done.stderr
    assert "--author llm runs kernels that a model wrote, and this target cannot sandbox untrusted code" in done.stderr
    assert "the kernel behind qemu filters no system calls" in done.stderr
    assert "Traceback" not in done.stderr
