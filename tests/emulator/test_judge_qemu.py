"""`judge` under QEMU: figures are modelled cycles, at each VLEN."""

from __future__ import annotations

import re
from pathlib import Path

from tests.support.commands import ROOT, tensorop

WORDS = ("--operator", "gemm", "--platform", "rvv", "--shapes", "24x17x33", "--configurations", "1", "--format", "json")

LOOP = "for (size_t p = 0; p < k;"


def test_an_honest_template_passes_at_every_vlen_and_a_wrong_one_does_not(tmp_path: Path) -> None:
    text = re.search(
        r"```jinja\n(.*?)```", (ROOT / "docs" / "how-to" / "write-a-kernel-template.md").read_text(), re.DOTALL
    )
    assert text is not None
    (tmp_path / "plain.c.j2").write_text(text[1])
    (tmp_path / "wrong.c.j2").write_text(
        text[1].replace(LOOP, f"const size_t most = k < 60 ? k : 60;\n    {LOOP.replace('k;', 'most;')}")
    )
    ended = tensorop("judge", "plain.c.j2", *WORDS, cwd=tmp_path)
    assert ended.status == 0, ended.stderr
    found = ended.json()
    (one,) = found["configurations"]
    assert [(f["vlen"], f["unit"]) for f in one["figures"]] == 2 * [(v, "modelled-cycles") for v in (128, 256, 512)]
    assert all(0 < f["of_peak"] < 1.1 and f["cost"] > 0 for f in one["figures"])
    assert found["measured_by"].startswith("the board model ")
    ended = tensorop("judge", "wrong.c.j2", *WORDS, cwd=tmp_path)
    assert ended.status == 1
    assert (ended.json()["outcome"]["stage"], ended.json()["outcome"]["kind"]) == ("verify", "wrong-result")
