"""Generated C, as it is read by people: each shipped template on each kind of vector, kept whole in tests/golden.

A difference that is meant is accepted with `pytest tests/nothing/test_golden.py --update-golden` and reviewed as diff.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from benchmarks.render import marked
from tensorop.author import offline, parse
from tensorop.model.point import Point
from tensorop.render import render
from tensorop.specs import platforms
from tests.support.operators import gemm
from tests.support.templates import candidate

ROOT = Path(__file__).parents[2]
GOLDEN = ROOT / "tests" / "golden" / "gemm"
README, PAGE = ROOT / "README.md", ROOT / "docs" / "how-to" / "write-a-kernel-template.md"
OUTER = {"mr_vectors": 1, "nr": 2, "ku": 2, "ahead": 1, "late": 0, "lead": 2, "fetch": 6, "c_ahead": 0}
OUTER |= {"pack_a": 1, "pack_b": 1}
DOT = {"mr_vectors": 2, "nr": 1, "ku": 2, "ahead": 0, "late": 0, "lead": 0, "fetch": 4}
LANES = {"mr_vectors": 1, "nr": 4, "ku": 2, "halves": 1, "fetch": 16, "pack_a": 1, "pack_b": 1}
STREAM = {"mr_vectors": 64, "nr": 1, "ku": 2, "wide": 2, "fetch": 4, "pack_a": 0, "pack_b": 0}
DIRECT = {"mr_vectors": 1, "nr": 1, "partial_sums": 4, "ahead": 1, "narrow": 0}
CASES = [
    ("generic", "outer", "f64", OUTER),
    ("avx512", "outer", "f32", {**OUTER, "ahead": 0, "lead": 0, "fetch": 0, "pack_a": 0, "pack_b": 0}),
    ("avx2", "dot", "f64", DOT),
    ("neon", "outer", "f32", OUTER),
    ("neon", "lanes", "f32", LANES),
    ("rvv", "outer", "f64", {**OUTER, "lmul": 2, "c_ahead": 1}),
    ("rvv", "outer", "i8", {**OUTER, "lmul": 2}),
    ("rvv", "stream", "f32", {**STREAM, "lmul": 2}),
    ("avx2", "stream", "f32", STREAM),
    ("spacemit-k1", "dot", "f32", {**DOT, "lmul": 1, "ku": 1, "ahead": 1, "late": 4}),
    ("avx2", "direct", "f32", {**DIRECT, "ahead": 0, "narrow": 1}),
    ("rvv", "direct", "f64", {**DIRECT, "lmul": 2}),
]
operator = gemm()
shipped = offline.templates(operator.folder, operator.name)
templates = {
    template.name: template for template in (*shipped, *filter(None, [offline.direct(operator.folder, operator.name)]))
}


def test_every_shipped_template_has_a_golden_file() -> None:
    assert {template for _, template, _, _ in CASES} == set(templates)


@pytest.mark.parametrize(
    ("platform", "template", "dtype", "point"), CASES, ids=lambda v: v if isinstance(v, str) else ""
)
def test_the_source_is_the_golden_one(
    platform: str, template: str, dtype: str, point: dict[str, int], request: pytest.FixtureRequest
) -> None:
    made = candidate(platforms.load(platform), templates[template], Point.of(point), dtype)
    text = render.formatted(kernel_alone(made.files[0][1]))
    path = GOLDEN / f"{platform}-{template}-{dtype}.c"
    if request.config.getoption("--update-golden"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    assert text == path.read_text(), (
        f"{path.name} changed; if that is meant: pytest {Path(__file__).name} --update-golden"
    )


def test_the_readme_shows_a_template_and_its_c(request: pytest.FixtureRequest) -> None:
    """The loop of the template in docs/how-to/write-a-kernel-template.md, and that of its kernel for whole tiles."""
    loop = re.compile(r"^    for \(size_t p.*?^    }\n", re.MULTILINE | re.DOTALL)
    text = re.search(r"```jinja\n(.*?)```", PAGE.read_text(), re.DOTALL)[1]
    template = parse.parse(text, operator="gemm", name="plain", author="plugin")
    made = candidate(platforms.load("rvv"), template, Point.of(mr_vectors=1, nr=2, lmul=1, pack_a=1, pack_b=1), "f32")
    whole_tile = render.formatted(made.files[0][1]).partition("_tile_1x2(")[2]
    blocks = {
        "template": f"```jinja\n{loop.search(text)[0]}```",
        "kernel": f"```c\n{loop.search(whole_tile)[0]}```",
    }
    shown = README.read_text()
    if request.config.getoption("--update-golden"):
        README.write_text(marked(shown, blocks, README.name))
    assert marked(README.read_text(), blocks, README.name) == README.read_text()


def kernel_alone(source: str) -> str:
    """The micro-kernel without support code and driver, which every file would repeat."""
    kernel = re.search(r"/\* \w+: micro-kernel.*?(?=/\* A micro-kernel's tables|\Z)", source, re.DOTALL)
    assert kernel is not None
    return kernel.group()
