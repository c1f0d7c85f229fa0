"""A backend of a user's own folder: examples/backend, through a whole job; and what is refused of one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tensorop.model.architecture import host_arch
from tests.support import products
from tests.support.commands import ROOT, refused, tensorop

pytestmark = pytest.mark.skipif(host_arch() != "x86_64", reason="its platform is for x86-64")
EXAMPLE = ROOT / "examples" / "backend"


def without_a_jail(folder: Path) -> Path:
    text = (EXAMPLE / "backends" / "nice.py").read_text()
    assert "    confined = True" in text
    (folder / "backends").mkdir(parents=True)
    (folder / "backends" / "bare.py").write_text(
        text.replace("    confined = True", "").replace('"nice"  #', '"bare"  #')
    )
    return folder


@pytest.mark.covers("example backend")
def test_a_whole_job_on_a_backend_of_ones_own(tmp_path: Path) -> None:
    own = ("--plugins", EXAMPLE)
    words = ("gemm", *own, "--platform", "nice-generic", "--dtype", "f32", "--shapes", "24x17x33")
    ended = tensorop(*words, "--jobs", "1", "--trials", "4", "--out", "out", cwd=tmp_path)
    assert ended.status == 0, ended.stderr
    manifest = json.loads((tmp_path / "out/share/tensorop/manifest.json").read_text())
    assert manifest["platform"]["name"] == "nice-generic"
    assert manifest["operators"]["gemm"]["facts"]["unit"] == "ns"
    journal = (tmp_path / "out/share/tensorop/journal.jsonl").read_text()
    assert '"runner":"nice"' in journal
    verified = tensorop("verify", "out", *own, cwd=tmp_path)
    assert verified.status == 0, verified.stdout + verified.stderr
    compared = tensorop("bench", "out", *own, "--shapes", "24x17x33", "--fast", "--format", "json", cwd=tmp_path)
    assert compared.status == 0, compared.stderr
    assert compared.json()["unit"] == "GFLOP/s"
    assert manifest["plugin_folders"] == dict.fromkeys(("platforms/nice-generic", "backends/nice"), str(EXAMPLE))
    told = f"unknown backend 'nice': this product was made with backends/nice of the plug-in folder '{EXAMPLE}'"
    for command in ("verify", "export", "report"):
        assert told in refused(command, "out", cwd=tmp_path)


def test_a_runner_of_ones_own_is_asked_for_without_its_folder(tmp_path: Path) -> None:
    path = products.install("generic", tmp_path / "out", ("f32",)) / "share/tensorop/manifest.json"
    named = {"backends/nice": "own", "tuners/mine": "other"}
    path.write_text(json.dumps({**json.loads(path.read_text()), "plugin_folders": named}))
    for command in (("verify", "out", "--no-controls"), ("bench", "out", "--shapes", "8x8x8")):
        message = refused(*command, "--runner", "nice", cwd=tmp_path)
        assert "unknown runner 'nice': this product was made with backends/nice of the plug-in folder 'own'" in message
        assert "give --plugins own, from Python" in message
        assert "give its folder: --plugins DIR" in refused(*command, "--runner", "nasty", cwd=tmp_path)


def test_a_backend_without_a_jail_runs_no_strangers_kernel(tmp_path: Path) -> None:
    own = ("--plugins", without_a_jail(tmp_path / "own"), "--platform", "generic", "--runner", "bare")
    said = "the backend 'bare' declares no jail"
    env = {"TENSOROP_LLM_MODEL": "m", "OPENAI_BASE_URL": "http://localhost:1/v1", "OPENAI_API_KEY": "k"}
    ended = tensorop("gemm", *own, "--author", "llm", "--trials", "4", "--out", "out", cwd=tmp_path, env=env)
    assert ended.status == 2
    assert said in ended.stderr
    assert "--unsafe" in ended.stderr
    assert not (tmp_path / "out").exists()
    template = ROOT / "templates/gemm/kernels/outer.c.j2"
    judged = (
        "judge",
        template,
        "--operator",
        "gemm",
        *own,
        "--dtype",
        "f32",
        "--shapes",
        "8x8x8",
        "--configurations",
        "1",
    )
    assert said in refused(*judged, cwd=tmp_path)
    unsafe = tensorop(*judged, "--unsafe", cwd=tmp_path)
    assert unsafe.status == 0, unsafe.stdout + unsafe.stderr
    assert said in " ".join((unsafe.stdout + unsafe.stderr).split())
    assert f"tensorop gemm --plugins DIR --plugins {tmp_path / 'own'} --platform" in " ".join(unsafe.stdout.split())
