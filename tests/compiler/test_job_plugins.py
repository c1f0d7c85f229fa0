"""A whole job with a platform, primitive set and tuner of a folder of one's own; and its product later, without them:
its platform travels."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

import tensorop as package
from tests.support import plugins
from tests.support.commands import ROOT, refused, tensorop

SHAPE = "24x17x33"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A product for a platform and with words of a folder that is gone; the user's cache is this test's own."""
    place = tmp_path_factory.mktemp("carried")
    own = plugins.write(place / "own", ROOT)
    words = ("gemm", "--plugins", own, "--platform", "my-board", "--tuner", "backwards", "--dtype", "f32")
    ended = tensorop(*words, "--shapes", SHAPE, "--jobs", "1", "--trials", "4", "--out", "out", cwd=place)
    assert ended.status == 0, ended.stderr
    shutil.rmtree(own)
    return place / "out"


def test_a_whole_job_with_plugins_of_ones_own(made: Path) -> None:
    manifest = json.loads((made / "share/tensorop/manifest.json").read_text())
    assert manifest["platform"]["name"] == "my-board"
    assert manifest["operators"]["gemm"]["facts"]["tuner"] == "backwards"
    a, b = np.ones((5, 7), np.float32), np.full((7, 3), 2, np.float32)
    assert np.array_equal(package.load(made).gemm(a, b), np.full((5, 3), 14, np.float32))


def test_the_manifest_holds_the_platform_and_its_primitives(made: Path) -> None:
    files = json.loads((made / "share/tensorop/manifest.json").read_text())["plugins"]
    assert sorted(files) == ["platforms/my-board.yaml", f"primitives/{plugins.PRIMITIVES}.yaml"]
    assert "parent" not in files["platforms/my-board.yaml"]


def test_the_manifest_names_the_folder_of_each_plugin(made: Path) -> None:
    named = json.loads((made / "share/tensorop/manifest.json").read_text())["plugin_folders"]
    own = str(made.parent / "own")
    assert named == dict.fromkeys(("platforms/my-board", f"primitives/{plugins.PRIMITIVES}", "tuners/backwards"), own)


@pytest.mark.extended
def test_it_is_verified_compared_and_reported_without_the_plugins(made: Path) -> None:
    for words in (("verify", made), ("bench", made, "--shapes", SHAPE, "--format", "json"), ("report", made)):
        ended = tensorop(*words, cwd=made.parent)
        assert ended.status == 0, ended.stderr
        if words[0] == "bench":
            found = ended.json()
            assert found["platform"] == "my-board"
            assert found["results"]
    page = (made / "share/tensorop/report.html").read_text()
    assert "a board of the user" in page or "my-board" in page


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        (
            "tuners/evil.py",
            "print('here')",
            "expected platforms/NAME.yaml and primitives/NAME.yaml, got 'tuners/evil.py'",
        ),
        ("platforms/../../evil.yaml", "x", "expected platforms/NAME.yaml and primitives/NAME.yaml"),
        ("platforms/my-board.yaml", "schema: 1\nname: my-board\nregsters: 3\n", "unknown key 'regsters'"),
        (f"primitives/{plugins.PRIMITIVES}.yaml", "schema: 1\n", "missing key"),
    ],
)
def test_a_manifest_brings_no_python_and_is_checked(
    made: Path, tmp_path: Path, name: str, text: str, says: str
) -> None:
    copy = tmp_path / "out"
    shutil.copytree(made, copy, symlinks=True)
    manifest = copy / "share/tensorop/manifest.json"
    told = json.loads(manifest.read_text())
    told["plugins"][name] = text
    manifest.write_text(json.dumps(told))
    message = refused("verify", copy, cwd=tmp_path)
    assert says in message
    assert "manifest.json" in message
    assert "here" not in message.replace(text, "")


def test_primitives_of_ones_own_are_checked_on_the_target(tmp_path: Path) -> None:
    own = plugins.write(tmp_path / "own", ROOT)
    ended = tensorop("primitives", "check", plugins.PRIMITIVES, "--plugins", own, cwd=tmp_path)
    assert ended.status == 0, ended.stdout + ended.stderr
