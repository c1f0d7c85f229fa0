"""Primitive files: what ships speaks one primitives, settings and lanes, and every way a file can be wrong."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tensorop.errors import SpecError, UsageError
from tensorop.specs import catalog, operators, platforms, primitives

SHIPPED = ("avx2", "avx512", "neon", "rvv", "scalar")

WHOLE = """\
schema: 1
name: mine
description: a test
types:
  f32: {element: float, vector: float, predicate: int64_t, lanes: "1"}
primitives:
  full: {args: [], returns: pred, c: "1", meaning: "lanes"}
"""


def write(folder: Path, text: str) -> tuple[Path, ...]:
    (folder / "primitives").mkdir(exist_ok=True)
    (folder / "primitives/mine.yaml").write_text(text)
    return (folder,)


def test_the_shipped_ones_load() -> None:
    assert set(SHIPPED) <= set(catalog.names("primitives"))
    for name in SHIPPED:
        assert {"f32", "f64"} <= set(primitives.load(name).types)
    assert set(primitives.load("scalar").types) == set(operators.load("gemm").dtypes)


def _of(primitive: primitives.PrimitiveSpec, dtype: str) -> bool:
    return isinstance(primitive.c, str) or dtype in primitive.c


def test_sets_agree_on_what_a_primitive_is() -> None:
    """A primitive has the same arguments, result and meaning in every set that has it; each set has scalar's
    primitives, but for those of operands that packing widens where it has no such dtype."""
    scalar = {
        name: primitive for name, primitive in primitives.load("scalar").primitives.items() if _of(primitive, "f32")
    }
    seen = dict(scalar)
    for name in SHIPPED:
        resolved = primitives.load(name).primitives
        assert set(scalar) <= set(resolved), name
        for primitive, entry in resolved.items():
            first = seen.setdefault(primitive, entry)
            assert (entry.args, entry.returns, entry.meaning) == (first.args, first.returns, first.meaning), primitive


def test_a_primitive_promises_no_less_than_the_reference() -> None:
    """Preconditions: a set may drop one of scalar's, not add one."""
    scalar = primitives.load("scalar").primitives
    for name in SHIPPED:
        for primitive, entry in primitives.load(name).primitives.items():
            if primitive in scalar:
                assert set(entry.preconditions) <= set(scalar[primitive].preconditions), (name, primitive)


@pytest.mark.parametrize(
    ("platform", "dtype", "lmul", "vlen", "lanes"),
    [
        ("rvv", "f32", 1, 128, 4),
        ("rvv", "f32", 4, 1024, 128),
        ("rvv", "f64", 2, 256, 8),
        ("spacemit-k1", "f64", 1, 256, 4),
        ("avx512", "f32", 1, 512, 16),
        ("avx2", "f64", 1, 256, 4),
        ("neon", "f32", 1, 128, 4),
        ("generic", "f32", 1, 64, 1),
    ],
)
def test_lanes(platform: str, dtype: str, lmul: int, vlen: int, lanes: int) -> None:
    spec = platforms.load(platform)
    chosen = {"lmul": lmul} if spec.settings else {}
    assert spec.lanes(dtype, chosen, vlen) == lanes


def test_settings_reach_the_c_texts() -> None:
    resolved = platforms.load("rvv").primitives_of("f64", {"lmul": 4})
    assert resolved.vector == "vfloat64m4_t"
    assert resolved.lanes == "__riscv_vsetvlmax_e64m4()"
    assert "f64m4" in resolved.by_name["fma"].c
    assert "${" not in resolved.support + "".join(w.c for w in resolved.by_name.values())
    assert platforms.load("spacemit-k1").primitives_of("f32").lanes == "(256 / 32 * 1)"


def test_a_setting_the_set_does_not_have_is_refused() -> None:
    for chosen in ({"lmul": 3}, {"lmul": 8}):
        with pytest.raises(SpecError, match=r"rvv.*lmul"):
            platforms.load("rvv").primitives_of("f32", chosen)


def test_a_dtype_nobody_knows() -> None:
    with pytest.raises(SpecError, match="platform 'rvv' has no primitives for dtype 'f8'"):
        platforms.load("rvv").primitives_of("f8")


def test_an_unknown_set() -> None:
    with pytest.raises(UsageError, match=r"unknown primitive set 'avx51'\ndid you mean avx512"):
        primitives.load("avx51")


def test_the_smallest_set_loads(tmp_path: Path) -> None:
    assert list(primitives.load("mine", write(tmp_path, WHOLE)).primitives) == ["full"]


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("name: mine", "name: yours", "key 'name': expected 'mine' as the file is called, got 'yours'"),
        ("schema: 1", "schema: 2", "key 'schema': expected 1, got 2"),
        ("description: a test\n", "", "missing key 'description'"),
        ("description: a test", "descripton: a test", "unknown key 'descripton'; did you mean 'description'"),
        ("description: a test", "description: [1]", "key 'description': expected text"),
        ("description: a test", "description: a test\ndescription: b", "line 4: key .description. appears twice"),
        ('lanes: "1"', "lanes: 1", "key 'types.f32.lanes'"),
        (', lanes: "1"', "", "missing key 'types.f32.lanes'"),
        ('lanes: "1"', "lanes: {fixed: a}", "missing key 'types.f32.lanes.*agnostic'"),
        ("element: float", "elemnt: float", "unknown key 'types.f32.elemnt'; did you mean 'element'"),
        ("args: []", "args: [z]", "primitives.full.args has 'z'; expected one of acc, v, w"),
        ("args: []", "args: p", "key 'primitives.full.args'.*got 'p'"),
        (
            "returns: pred",
            "returns: predicate",
            "key 'primitives.full.returns': expected 'vec', 'compute', 'storage'",
        ),
        (', meaning: "lanes"', "", "missing key 'primitives.full.meaning'"),
        (
            'meaning: "lanes"',
            'meaning: "lanes", cost: {latency: 1}',
            "primitives.full has a cost, so it needs cost_source",
        ),
        ('meaning: "lanes"', 'meaning: "lanes", exact: maybe', "key 'primitives.full.exact': expected true or false"),
        ('meaning: "lanes"', 'meaning: "lanes", ulp: 0.2', "key 'primitives.full.ulp': expected at least 0.5"),
        ('meaning: "lanes"', 'meaning: "lanes", ulp: 2, exact: false', "primitives.full has `ulp` and `exact: false`"),
        ('c: "1"', 'c: "1", support: {f32: "$p"}', r"primitives.full.support uses \$p; expected one of vlen"),
        ('c: "1"', 'c: "1", support: {f64: x}', "primitives.full.support has a text for f64, which types has not"),
        (
            "description: a test",
            "description: a test\nextends: 3",
            "key 'extends': expected the name of a primitive set",
        ),
        ("description: a test", "extends: scalr", "key 'extends': unknown primitive set 'scalr'"),
        ("description: a test", "extends: mine", "key 'extends': expected no cycle, got mine -> mine"),
        ('c: "1"', 'c: "$lmul"', r"primitives.full.c uses \$lmul; expected one of vlen"),
        ('c: "1"', 'c: {f16: "1", f32: "1"}', "primitives.full.c has a text for f16, which types has not"),
        ("  full:", "  f-u:", "the name of a primitive must be a C identifier, got 'f-u'"),
        ("primitives:", "settings: {lmul: []}\nprimitives:", "key 'settings.lmul'.*at least 1"),
        ("primitives:", "settings: {lmul: 1}\nprimitives:", "key 'settings.lmul'.*got 1"),
        ("primitives:", "support: {f64: x}\nprimitives:", "support has a text for f64, which types has not"),
        ("primitives:", "headers: ['../x.h']\nprimitives:", "headers has '../x.h'"),
    ],
)
def test_a_broken_file_says_file_key_and_what_was_expected(tmp_path: Path, old: str, new: str, says: str) -> None:
    assert old in WHOLE
    with pytest.raises(SpecError, match=rf"(?s)mine\.yaml.*{says}") as caught:
        primitives.load("mine", write(tmp_path, WHOLE.replace(old, new, 1)))
    assert caught.value.exit_status == 2


EXTENDED = """\
schema: 1
name: mine
description: one more primitive
extends: avx512
requires: [avx512vnni, fma]
primitives:
  double:
    args: [v, vl]
    returns: vec
    c: {f32: "tensorop_double($v)"}
    meaning: "(v + v)[:vl]"
    support: {f32: "static inline __m512 tensorop_double(__m512 v) { return _mm512_add_ps(v, v); }"}
  add: {args: [v, w, vl], returns: vec, c: "($v + $w)", meaning: "(v + w)[:vl]"}
"""


def test_a_set_extends_a_shipped_one(tmp_path: Path) -> None:
    plugins, below = write(tmp_path, EXTENDED), primitives.load("avx512")
    spec = primitives.load("mine", plugins)
    assert spec.description == "one more primitive"
    assert spec.requires == (*below.requires, "avx512vnni")
    assert (spec.types, spec.headers, spec.arch, spec.broadcast) == (below.types, below.headers, below.arch, 0)
    assert spec.primitives.keys() == below.primitives.keys() | {"double"}
    others = {name for name in below.primitives if spec.primitives[name] != below.primitives[name]}
    assert others == {"add"}
    resolved = primitives.resolved("mine", plugins)
    assert resolved.types["f32"].primitives["double"].support.startswith("static")
    assert "double" not in resolved.types["f64"].primitives
    assert resolved.types["f64"].support == primitives.resolved("avx512").types["f64"].support


def test_what_a_product_keeps_of_a_set_that_extends_another_stands_alone(tmp_path: Path) -> None:
    plugins = write(tmp_path, EXTENDED)
    whole = primitives.resolved("mine", plugins).whole
    (tmp_path / "kept").mkdir()
    kept = write(tmp_path / "kept", whole)
    assert "extends" not in whole
    assert primitives.load("mine", kept).primitives == primitives.load("mine", plugins).primitives
    assert primitives.resolved("avx512").whole == ""


def test_a_changed_file_is_read_again_and_so_is_one_that_it_extends(tmp_path: Path) -> None:
    write(tmp_path, WHOLE)
    below = tmp_path / "primitives/mine.yaml"
    (tmp_path / "primitives/above.yaml").write_text("schema: 1\nname: above\nextends: mine\n")
    assert primitives.load("above", (tmp_path,)).description == "a test"
    below.write_text(WHOLE.replace("a test", "another test"))
    os.utime(below, ns=(1, 1))
    assert primitives.load("above", (tmp_path,)).description == "another test"


def test_sets_that_extend_each_other_are_refused(tmp_path: Path) -> None:
    plugins = write(tmp_path, WHOLE.replace("description: a test", "extends: yours"))
    (tmp_path / "primitives/yours.yaml").write_text("schema: 1\nname: yours\nextends: mine\n")
    with pytest.raises(SpecError, match=r"yours\.yaml: key 'extends': expected no cycle, got mine -> yours -> mine"):
        primitives.load("mine", plugins)


def test_no_words_or_types(tmp_path: Path) -> None:
    head = WHOLE[: WHOLE.index("primitives:")]
    with pytest.raises(SpecError, match=r"expected primitives or collectives"):
        primitives.load("mine", write(tmp_path, head + "primitives: {}\n"))
    with pytest.raises(SpecError, match=r"mine\.yaml: .*expected primitives or collectives"):
        primitives.load("mine", write(tmp_path, head))
