"""Pipes, devices, files larger than memory and other things that are no file of a few bytes, wherever a command reads
one: a sentence of ours, soon and in bounded memory."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tensorop import api
from tensorop.errors import BoardError, JobError, TensoropError
from tensorop.kits import product as kit_products
from tensorop.model.job import Job
from tensorop.runners.ssh import Ssh
from tensorop.specs import files, jsontext
from tensorop.toolchain import disassembly, gate, shared_library
from tensorop.warm import reading
from tests.support import badfiles, products
from tests.support.commands import ROOT

MEMORY = 600 << 20  # bytes of address space beyond what a command takes when it is loaded
MANIFEST, JOURNAL = "share/tensorop/manifest.json", "share/tensorop/journal.jsonl"


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return products.install("generic", tmp_path_factory.mktemp("good") / "gemm", ("f32",))


def commands(kind: str, good: Path, folder: Path) -> Iterator[list[str]]:
    """Each with such a file in the place of one that it reads."""

    def at(name: str) -> str:
        return str(badfiles.place(kind, folder / name))

    def of_product(file: str) -> str:
        own = shutil.copytree(good, folder / file.replace("/", "-"), symlinks=True)
        badfiles.place(kind, own / file)
        return str(own)

    def plugin(file: str) -> list[str]:
        own = folder / f"plug-{file.replace('/', '-')}"
        badfiles.place(kind, own / file)
        return ["--plugins", str(own)]

    yield ["verify", at("a.so")]
    yield ["inspect", at("b.so")]
    yield ["bench", at("c.so"), "--against", "openblas"]
    yield ["bench", of_product("lib/libtensorop_cblas.so"), "--against", "openblas"]
    yield ["bench", str(good), "--compare", at("d.json")]
    yield ["report", of_product(MANIFEST)]
    yield ["verify", of_product("lib/libtensorop_gemm.so")]
    yield ["verify", of_product("lib/libtensorop_gemm.a")]
    yield ["export", of_product("share/tensorop/kits.json"), "--out", str(folder / "kit")]
    yield ["import", str(good), at("g.jsonl")]
    yield ["judge", at("h.c.j2"), "--operator", "gemm", "--platform", "generic"]
    yield ["judge", at("i.c"), "--operator", "gemm", "--platform", "generic"]
    yield ["platforms", "show", "x", *plugin("platforms/x.yaml")]
    yield ["primitives", "show", "x", *plugin("primitives/x.yaml")]
    yield ["operators", "show", "x", *plugin("templates/x/operator.yaml")]
    yield ["tuners", "check", "x", *plugin("tuners/x.py")]
    yield ["tuners", "bench", "--tuner", "random", "--seeds", "2", "--space", at("s.jsonl.gz")]
    own = shutil.copytree(ROOT / "examples/operator", folder / "operator")
    badfiles.place(kind, own / "templates/conv1d/kernels/direct_taps.c.j2")
    yield ["operators", "check", "conv1d", "--plugins", str(own)]


@pytest.mark.one_in(7)
@pytest.mark.parametrize("kind", badfiles.KINDS)
def test_a_command_says_what_is_wrong_with_a_file(kind: str, good: Path, tmp_path: Path) -> None:
    asked = list(commands(kind, good, tmp_path))
    if kind == "link to nothing":  # a product may be without what kits measured
        asked = [words for words in asked if words[0] != "export"]
    argv = [sys.executable, "-m", "tests.support.badfiles", str(MEMORY)]
    done = subprocess.run(argv, input=json.dumps(asked), capture_output=True, text=True, cwd=ROOT)
    ended = json.loads(done.stderr.splitlines()[-1])
    assert ended.pop() == "exit 1"  # of the check, which says all that it finds
    assert f"FAIL {asked.pop()[-1]}/templates/conv1d/kernels/direct_taps.c.j2: " in done.stdout
    wrong = [(words, said) for words, said in zip(asked, ended, strict=True) if not said.startswith("error: ")]
    assert wrong == []
    assert not [said for said in ended if "Errno" in said]


@pytest.mark.parametrize("kind", ["pipe", "device", "20 GB", "folder", "socket"])
def test_what_is_expected_is_said(kind: str, tmp_path: Path) -> None:
    path = badfiles.place(kind, tmp_path / "x")
    with pytest.raises(OSError, match=r"expected a regular file|at most 16777216 are read") as caught:
        files.read(path, files.LINES)
    assert str(caught.value) == caught.value.strerror
    with pytest.raises(TensoropError):
        api.load(path)


@pytest.mark.parametrize("kind", [kind for kind in badfiles.KINDS if kind != "packed zeros"])
def test_what_reads_objects_and_libraries_opens_regular_files_alone(kind: str, tmp_path: Path) -> None:
    path = badfiles.place(kind, tmp_path / "x")
    refused = gate.check_object(path)
    said = [refused.message if refused else ""]
    for read in (shared_library.facts, disassembly.disassembled):
        try:
            read(path)
        except OSError as error:
            said.append(str(error))
        else:
            said.append("nothing")
    expected = "No such file" if kind == "link to nothing" else r"expected a regular file|at most \d+ are read"
    assert [text for text in said if not re.search(expected, text)] == []


@pytest.mark.parametrize("kind", ["pipe", "20 GB"])
def test_what_goes_to_a_board_is_bounded(kind: str, tmp_path: Path) -> None:
    """Said before anything is sent: nobody answers there."""
    board = Ssh("127.0.0.1", ("-p", "9"))
    path = badfiles.place(kind, tmp_path / "folder" / "x.so")
    with pytest.raises(BoardError, match=r"x\.so cannot be copied to 127\.0\.0\.1: it (is a FIFO|has \d+ bytes)"):
        board.place(path)
    if kind == "20 GB":  # of a folder only files are sent
        with pytest.raises(BoardError, match=r"x\.so cannot be copied to 127\.0\.0\.1: it has \d+ bytes"):
            board.place(path.parent)


@pytest.mark.parametrize("kind", badfiles.KINDS)
def test_a_warm_start_is_of_files(kind: str, tmp_path: Path) -> None:
    badfiles.place(kind, tmp_path / "platforms/winners/x.jsonl")
    job = Job("gemm", platform="generic", out=tmp_path / "out", plugins=(tmp_path,))
    _, remarks = reading.read(job)
    assert len([remark for remark in remarks if "winners/x.jsonl" in remark]) == 1
    named = Job("gemm", platform="generic", out=tmp_path / "out", warm_start=str(tmp_path / "platforms/winners"))
    assert reading.read(named)[1]


def test_a_file_of_winners_is_short(tmp_path: Path) -> None:
    (tmp_path / "x.jsonl").write_text("\n" * 5000)
    job = Job("gemm", platform="generic", out=tmp_path / "out", warm_start=str(tmp_path / "x.jsonl"))
    _, remarks = reading.read(job)
    assert remarks[0].endswith("x.jsonl has 5001 lines; a file of configurations has at most 4096")


def test_a_file_that_grows_is_not_read_on(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="more than 10 bytes, at most 10 are read"):
        files.read(Path("/proc/cpuinfo"), 10)  # of no size
    (tmp_path / "x").write_bytes(b"0123456789")
    assert files.read(tmp_path / "x", 10) == b"0123456789"
    with pytest.raises(ValueError, match="unpacks to more than 1000 bytes"):
        files.unpacked(badfiles.place("packed zeros", tmp_path / "y").read_bytes(), 1000)


@pytest.mark.parametrize("text", ["[" + "{}," * 600_000 + "1]", '{"a":[' + "1," * 1_100_000 + "1]}"])
def test_json_of_many_values_is_none(text: str) -> None:
    for given in (text, text.encode()):
        with pytest.raises(ValueError, match="JSON of more than 1000000 values"):
            jsontext.loads(given)


# --- what a product keeps of kits ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("kit", "x", "key 'kit'"),
        ("date", "*/ x", "key 'date'"),
        ("machine", 3, "machine"),
        ("machine", {"arch": "x86_64", "board": 3, "vlen": 0, "emulator": ""}, "key 'board'"),
        ("machine", {"arch": "x86_64", "board": "", "vlen": 1 << 40, "emulator": ""}, "key 'vlen'"),
        ("rows", [{"dtype": "f32", "dims": {"m": 1 << 60}, "options": {}, "ns": [1.0]}], "row 0: key 'dims.m'"),
        ("rows", [{"dtype": "f32", "dims": {"m": 1}, "options": {}, "ns": ["x"]}], "row 0: key 'ns"),
        ("rows", 3, "damaged"),
    ],
)
def test_what_a_product_keeps_of_kits_is_checked(name: str, value: object, said: str, tmp_path: Path) -> None:
    machine = {"arch": "x86_64", "board": "b", "vlen": 0, "emulator": ""}
    kit = {"kit": "0" * 64, "date": "2026-01-01T00:00:00Z", "machine": machine, "rows": []}
    path = tmp_path / kit_products.KEPT
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps({"schema": 1, "kits": [kit]}))
    assert len(kit_products.kept(tmp_path)) == 1
    path.write_text(json.dumps({"schema": 1, "kits": [{**kit, name: value}]}))
    with pytest.raises(JobError, match=said):
        kit_products.kept(tmp_path)
