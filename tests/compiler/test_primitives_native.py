"""Primitive sets of this machine's own architecture, executed here."""

from __future__ import annotations

from pathlib import Path

import pytest

from tensorop.commands import check_primitives
from tensorop.errors import SpecError
from tensorop.model.architecture import host_arch
from tensorop.model.platform import Platform
from tensorop.paths import builtin_dir
from tensorop.specs import native, primitives
from tests.support.primitives import executed, undetected

SETS = ("scalar", "avx2", "avx2-madd", "avx512", "avx512-madd")


def _home(name: str) -> Platform:
    platform = check_primitives.home(name)
    if missing := native.missing_flags(platform):
        pytest.skip(f"this machine lacks {', '.join(missing)}")
    return platform


@pytest.mark.covers("primitives {name}")
@pytest.mark.parametrize("name", SETS)
def test_every_primitive_means_what_it_says(name: str) -> None:
    _home(name)
    results = list(check_primitives.check(name))
    assert results
    assert [str(r) for r in results if not r.ok] == []


@pytest.mark.one_in(5)
@pytest.mark.parametrize(
    ("name", "dtype"),
    [(name, dtype) for name in SETS for dtype in primitives.load(name).types],
)
def test_every_broken_meaning_is_noticed(name: str, dtype: str) -> None:
    platform = _home(name)
    run = executed(platform, dtype, {}, platform.vlens[0])
    assert run.end is None
    assert undetected(run) == []


def _plugin(folder: Path, old: str, new: str) -> Path:
    """A set `mine` that is `scalar` with one text exchanged, and a platform that prefers it."""
    text = (builtin_dir("primitives") / "scalar.yaml").read_text().replace("name: scalar", "name: mine", 1)
    assert old in text
    for kind in ("primitives", "platforms"):
        (folder / kind).mkdir()
    (folder / "primitives/mine.yaml").write_text(text.replace(old, new))
    (folder / "platforms/mine.yaml").write_text(
        f"schema: 1\nname: mine\nparent: generic\ndescription: test\narch: {host_arch()}\nprimitives: [mine]\n"
    )
    return folder


@pytest.mark.one_in(5)
@pytest.mark.skipif(host_arch() != "x86_64", reason="`generic` compiles for x86-64")
@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("do { if ($vl) *($p) = ($v); } while (0)", "*($p) = ($v)", "store_tail stopped by signal"),  # past the end
        ("*($p) = ($v)", "do { ($p)[-1] = 0; *($p) = ($v); } while (0)", "element -1 of p is 0.0"),  # before the start
        ("(($vl) ? *($p) : 0)", "*($p)", "load_tail stopped by signal"),  # reads past the end
        ("(($v) * ($s))", "(($v) * ($s) + 0)", "mul differs from its meaning"),  # differs at minus zero alone
        ("(($v) + ($w))", "(($v) + (undeclared))", "undeclared"),  # does not compile
        ("0x1.fffffcp-2f", "0x1.ffffp-2f", "ulp away; at most 1.25 ulp are stated"),
        ("v < 89 ? v : 89", "v < 88 ? v : 88", "exp differs from its meaning"),  # no infinity
        (": 89 : -104", ": 89 : -100", "exp differs from its meaning"),  # no zero
        ("return v == v ? ", "return v ? ", "exp differs from its meaning"),  # no NaN
        ("n - half + 127", "n - half + 126", "scale2 differs from its meaning"),
        ("($v) + 0 :", "($v) :", "max_across differs from its meaning"),  # -0
        ("($v) > -__builtin_inff()", "1", "max_across differs from its meaning"),  # NaN
        ("(($w) > ($v) ? ($v) : ($w))", "(($v) > ($w) ? ($w) : ($v))", "min differs from its meaning"),  # -0 and NaN
        ('lanes: "1"', 'lanes: "2"', "full differs from its meaning lanes"),
        ("splat:", "splot:", "lacks splat"),
    ],
)
def test_a_wrong_primitive_is_a_failed_result(tmp_path: Path, old: str, new: str, says: str) -> None:
    results = list(check_primitives.check("mine", plugins=(_plugin(tmp_path, old, new),), dtypes=["f32"]))
    assert any(says in str(r) for r in results if not r.ok), [str(r) for r in results]


@pytest.mark.skipif(host_arch() != "x86_64", reason="`generic` compiles for x86-64")
@pytest.mark.parametrize(("meaning", "passes"), [("(v + v)[:vl]", True), ("(v * v)[:vl]", False)])
def test_a_set_of_ones_own_adds_a_primitive_to_a_shipped_one(tmp_path: Path, meaning: str, passes: bool) -> None:
    folder = _plugin(tmp_path, "", "")
    (folder / "primitives/mine.yaml").write_text(
        "schema: 1\nname: mine\ndescription: a test\nextends: scalar\nprimitives:\n"
        f'  double: {{args: [v, vl], returns: vec, c: {{f32: "mine_double($v)"}}, meaning: "{meaning}",\n'
        '    support: {f32: "static inline float mine_double(float v) { return v + v; }"}}\n'
    )
    results = list(check_primitives.check("mine", plugins=(folder,), dtypes=["f32", "f64"]))
    assert {r.primitive for r in results if not r.ok} == (set() if passes else {None, "double"})
    assert [f"of {count} primitives" in str(r) for r, count in zip(results[-2:], (29, 28), strict=True)] == [True, True]


@pytest.mark.skipif(host_arch() != "x86_64", reason="`generic` compiles for x86-64")
def test_a_precondition_that_no_number_satisfies(tmp_path: Path) -> None:
    plugins = (_plugin(tmp_path, "w % 1 == 0", "w % 1 == 2"),)
    with pytest.raises(SpecError, match=r"no number of the format f32 was found that satisfies w % 1 == 2, 2 \*"):
        list(check_primitives.check("mine", plugins=plugins, dtypes=["f32"]))


def test_a_machine_without_the_flags_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native, "cpu_flags", lambda: frozenset({"sse2"}))
    (result,) = check_primitives.check("avx512")
    assert not result.ok
    assert "not run" in result.message
    assert "avx512f" in result.message or "x86_64" in result.message
