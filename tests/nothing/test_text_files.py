"""Files that users write with an editor: a byte-order mark changes nothing, UTF-16 is named."""

from __future__ import annotations

import codecs
from collections.abc import Callable
from pathlib import Path

import pytest

from tensorop import paths, pipeline
from tensorop.author.parse import parse
from tensorop.commands import judge
from tensorop.errors import TensoropError
from tensorop.model.job import Job
from tensorop.render import render
from tensorop.specs import benches, operators, yamlfile
from tensorop.store import journal
from tensorop.verify import controls
from tensorop.warm import reading

GEMM = paths.builtin_dir("templates") / "gemm"
PLATFORMS = paths.builtin_dir("platforms")
C_KERNEL = "/*---\nstrategy: s\nreads: {f32: load}\ntunables: {}\n---*/\nvoid f(void) {}\n"
BENCH = '{"platform":"p","threads":1,"unit":"GFLOP/s","model":null,"results":[]}'


def _kernel(path: Path) -> object:
    return parse(judge.template_text(path, operators.load("gemm")), operator="gemm", name="x", author="plug-in")


READERS: dict[str, tuple[Callable[[Path], object], str]] = {
    "platform.yaml": (yamlfile.read, (PLATFORMS / "rvv.yaml").read_text()),
    "kernel.c.j2": (_kernel, (GEMM / "kernels" / "outer.c.j2").read_text()),
    "kernel.c": (lambda path: judge.template_text(path, operators.load("gemm")), C_KERNEL),
    "bench.json": (lambda path: benches.read(path), BENCH),
    "winners.jsonl": (
        lambda path: reading.read_winners(path).known,
        (PLATFORMS / "winners" / "generic.jsonl").read_text(),
    ),
    "control.c": (lambda path: controls._read(path).expected, (GEMM / "controls" / "honest.c").read_text()),
}


@pytest.mark.parametrize("name", READERS)
def test_a_byte_order_mark_changes_nothing(tmp_path: Path, name: str) -> None:
    read, text = READERS[name]
    path = tmp_path / name
    path.write_text(text)
    plain = read(path)
    for written in (codecs.BOM_UTF8 + text.encode(), codecs.BOM_UTF8 + text.replace("\n", "\r\n").encode()):
        path.write_bytes(written)
        assert read(path) == plain
    for wide in ("utf-16", "utf-16-be"):
        path.write_bytes((codecs.BOM_UTF16_BE if wide == "utf-16-be" else b"") + text.encode(wide))
        with pytest.raises(TensoropError, match="it is UTF-16 text; save it as UTF-8"):
            read(path)


def test_a_template_that_another_includes(tmp_path: Path) -> None:
    (tmp_path / "outer.j2").write_bytes(codecs.BOM_UTF8 + b"a{% include 'inner.j2' %}")
    (tmp_path / "inner.j2").write_bytes(codecs.BOM_UTF8 + b"b")
    assert render.environment(tmp_path).get_template("outer.j2").render() == "ab"


def test_a_journal_goes_on_behind_its_mark(tmp_path: Path) -> None:
    def job(trials: int) -> Job:
        return Job("gemm", "generic", ("f32",), ((8, 8, 8),), trials=trials, budget_s=None, runner="null", out=tmp_path)

    list(pipeline.run(job(1)))
    kept = journal.journal_path(tmp_path)
    kept.write_bytes(codecs.BOM_UTF8 + kept.read_bytes())
    list(pipeline.run(job(2)))
    assert journal.read(tmp_path).sessions == 2
    kept.write_bytes(kept.read_bytes().decode("utf-8-sig").encode("utf-16"))
    with pytest.raises(TensoropError, match="it is UTF-16 text; save it as UTF-8"):
        list(pipeline.run(job(3)))
