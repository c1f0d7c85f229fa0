"""What a plug-in folder holds and nothing reads is named, by jobs, the doctor and `operators check`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tensorop.author import offline
from tensorop.errors import SpecError
from tensorop.specs import leftovers, operators
from tests.support import plugins
from tests.support.commands import ROOT, tensorop

TEMPLATE = (ROOT / "templates" / "gemm" / "kernels" / "outer.c.j2").read_text()


def put(root: Path, *names: str) -> Path:
    for name in names:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(TEMPLATE if "copy" in name else TEMPLATE.replace("ku: [1, 4]", "ku: [1, 2, 4]"))
    return root


def said(*roots: Path) -> list[str]:
    return [remark.replace(str(roots[-1]), "DIR") for remark in leftovers.remarks(roots)]


def test_a_folder_of_plugins_leaves_nothing_over(tmp_path: Path) -> None:
    own = plugins.write(tmp_path, ROOT)
    put(own, "templates/gemm/kernels/mine.c.j2", "platforms/calibration-x.yaml", "platforms/published/x.yaml")
    put(own, "README.md", "LICENSE", ".git/x", "platforms/_old.yaml", "notes/x.yaml")
    assert leftovers.remarks((own,)) == ()


@pytest.mark.parametrize(
    ("name", "remark"),
    [
        ("platforms/board.yml", "DIR/platforms/board.yml: not used; expected NAME.yaml"),
        ("tuners/mine.txt.bak", "DIR/tuners/mine.txt.bak: not used; expected NAME.py"),
        ("board.yaml", "DIR/board.yaml: not used; plug-ins lie in the folders platforms, primitives"),
        ("platform/board.yaml", "DIR/platform: not used; did you mean platforms/?"),
        (
            "templates/gem/kernels/x.c.j2",
            "DIR/templates/gem: not used; it has no operator.yaml, and there is no operator",
        ),
        ("templates/gemm/controls/x.c", "DIR/templates/gemm/controls: not used; beside an operator that is elsewhere"),
        ("templates/gemm/x.c.j2", "DIR/templates/gemm/x.c.j2: not used; beside an operator that is elsewhere"),
        ("templates/gemm/kernels/x.j2", "DIR/templates/gemm/kernels/x.j2: not used; expected NAME.c.j2"),
        (
            "templates/gemm/kernels/outer.c.j2",
            "DIR/templates/gemm/kernels/outer.c.j2: stands before the shipped template",
        ),
    ],
)
def test_what_nothing_reads_is_named(tmp_path: Path, name: str, remark: str) -> None:
    (tmp_path / "primitives").mkdir()
    assert [line[: len(remark)] for line in said(put(tmp_path, name))] == [remark]


def test_the_first_folder_counts_and_an_empty_one_is_told(tmp_path: Path) -> None:
    first, second = (put(tmp_path / name, "templates/gemm/kernels/mine.c.j2", "tuners/x.py") for name in ("1", "2"))
    assert [line.partition("; ")[2] for line in said(first, second)] == [
        "a folder named before it has one of this name",
        "a folder named before it has a template of this name",
    ]
    (tmp_path / "3").mkdir()
    assert "no plug-in is read from here" in leftovers.remarks((tmp_path / "3",))[0]
    many = put(tmp_path / "4", "tuners/x.py", *(f"tuners/x{number}.txt.bak" for number in range(20)))
    assert leftovers.remarks((many,))[-1] == "8 more of the kind"


def test_a_template_of_a_plugin_folder_joins_the_shipped_ones(tmp_path: Path) -> None:
    put(tmp_path, "templates/gemm/kernels/mine.c.j2")
    operator = operators.load("gemm", (tmp_path,))
    names = [template.name for template in offline.templates(operator.folder, operator.name, operator.added)]
    assert names == sorted(names)
    assert set(names) == {*offline.files(operator.folder), "mine"}


def test_jobs_and_checks_name_them(tmp_path: Path) -> None:
    own = put(tmp_path / "own", "templates/gemm/kernels/mine.c.j2", "platforms/board.yml")
    words = ("gemm", "--plugins", own, "--platform", "generic", "--runner", "null", "--shapes", "16x16x16")
    ended = tensorop(*words, "--dtype", "f32", "--trials", "12", "--out", "out", cwd=tmp_path)
    assert ended.status == 0, ended.stderr
    assert "board.yml: not used; expected NAME.yaml" in " ".join(ended.stderr.split())
    told = tensorop("operators", "check", "axpy", "--plugins", plugins.write(own, ROOT), cwd=tmp_path)
    assert told.stdout.startswith("note: ")
    assert "board.yml: not used" in told.stdout
    health = tensorop("doctor", "--plugins", own, "--format", "json", cwd=tmp_path).json()
    assert [line.partition(": ")[2] for line in health["plugins"]] == ["not used; expected NAME.yaml"]


def test_a_copy_under_another_name_is_left_out(tmp_path: Path) -> None:
    """Its trials could not be told from the other's; the operator's own stays."""
    put(tmp_path, "templates/gemm/kernels/copy.c.j2")
    operator = operators.load("gemm", (tmp_path,))
    names = [template.name for template in offline.templates(operator.folder, operator.name, operator.added)]
    assert "copy" not in names
    assert "outer" in names


@pytest.mark.parametrize(
    ("name", "says"),
    [("My-KernelTemplate", "lower-case letters"), ("direct", "is reserved for the small-problem kernel")],
)
def test_a_name_that_cannot_be_a_templates_is_said(tmp_path: Path, name: str, says: str) -> None:
    put(tmp_path, f"templates/gemm/kernels/{name}.c.j2")
    operator = operators.load("gemm", (tmp_path,))
    with pytest.raises(SpecError, match=f"(?s){name}.c.j2: .*{says}"):
        offline.templates(operator.folder, operator.name, operator.added)
