"""The paths of a tile: found by running its text on numbers, and each called by a kernel's verification."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import pytest
import tree_sitter
import tree_sitter_c

from tensorop.author import offline, path_reader, paths
from tensorop.author.grammar import Broken
from tensorop.author.paths import Call, Tile
from tensorop.model.kernel import Variant
from tensorop.model.point import Point
from tensorop.model.verdict import Seed
from tensorop.render import instantiate, prior
from tensorop.render.texts import Texts
from tensorop.specs import operators, platforms
from tensorop.trial.called import PathCalls

LANES = 8


def tile(body: str) -> Tile:
    """Of a tile of two vectors by four columns."""
    source = f"""
static void t_tile_2x4_tail(size_t m, size_t k, const float *a, size_t lda, const float *b, size_t rsb, size_t csb,
    float alpha, float beta, float *c, size_t ldc)
{{
    /*@ holds(k >= 1); holds(lda >= 1); holds(ldc >= 1); holds(m > lanes); holds(m <= 2 * lanes);
        reads(a, k, lda, m, 1); reads(b, k, rsb, 4, csb); writes(c, 4, ldc, m, 1); */
    const size_t lanes = lanes();
{body}
}}
"""
    root = tree_sitter.Parser(tree_sitter.Language(tree_sitter_c.language())).parse(source.encode()).root_node
    (function,) = (node for node in root.named_children if node.type == "function_definition")
    return path_reader.read(function)[1]


def calls(body: str) -> list[Call]:
    """The first call of each path."""
    return [first for first, *_ in tile(body).paths(LANES).values()]


# The text, how many paths it has, and a call that must be among theirs.
TEXTS: dict[str, tuple[str, int, dict[str, int]]] = {
    "no condition": ("c[0] = a[0];", 1, {}),
    "a loop": ("for (; k; --k) c[0] += a[0];", 2, {"k": 2}),
    "two loops": ("for (; k >= 4; k -= 4) a += lda; for (; k; --k) a += lda;", 8, {"k": 10}),
    "a condition": ("if (k > 40) c[0] = 0;", 2, {"k": 41}),
    "four numbers": ("if (k == 53 && m == 14 && beta == 0 && alpha == 1) c[0] = 0;", 5, {"k": 53, "m": 14, "alpha": 1}),
    "two numbers": ("if (k == 53) if (m == 14) c[0] = 0;", 3, {"k": 53, "m": 14}),
    "a number and both scales": ("if (k == 53) if (beta == 0) if (alpha == 1) c[0] = 0;", 4, {"k": 53, "beta": 0}),
    "by a local": ("size_t x = 0; if (k == 53) x = 1; if (x == 1) if (m == 14) c[0] = 0;", 3, {"k": 53, "m": 14}),
    "by two comparisons": ("if (k > 52) if (k < 54) if (m == 14) c[0] = 0;", 4, {"k": 53, "m": 14}),
    "by a remainder": ("if (k % 16 == 3) if (m > 13) c[0] = 0;", 3, {"k": 3, "m": 14}),
    "by a sum of remainders": ("if (k % 53 + m % 14 == 65) c[0] = 0;", 2, {"k": 52, "m": 13}),
    "by a bool": ("const bool p = k == 53; if (p) if (m == 14) c[0] = 0;", 3, {"k": 53, "m": 14}),
    "by a turn": ("for (size_t p = 0; p < k; ++p) if (p == 52) if (m == 14) c[0] = 0;", 4, {"k": 53, "m": 14}),
    "by rests of loops": (
        "size_t x = k, y = m; for (; x >= 53; x -= 53) a += lda; for (; y >= 14; y -= 14) a += lda; "
        "if (x + y == 65) c[0] = 0;", 9, {"k": 52, "m": 13},
    ),
    "by a shift and a sum": ("const size_t x = (k << 1) + 5; if (x == 77 && m == 11) c[0] = 0;", 3, {"k": 36, "m": 11}),
    "by the smaller": ("const size_t x = k < 53 ? k : 53; if (x == 53 && m == 9) c[0] = 0;", 3, {"k": 53, "m": 9}),
    "a choice in an index": ("c[0] = a[(k < 53 ? 0 : m - 1)];", 2, {"k": 53}),
    "a stride of 1": ("if (rsb == 1) c[0] = 0;", 2, {"rsb": 1}),
    "strides of 1": ("if (rsb == 1) if (csb == 1) c[0] = 0;", 3, {"rsb": 1, "csb": 1, "k": 1}),
    "another loop inside": (
        "for (; k >= 2; k -= 2) { size_t i = 0; for (; i + lanes <= m; i += lanes) c[i] = 0; }", 5, {"k": 4, "m": 16},
    ),
    "every eighth turn": ("for (size_t p = 0; p < k; ++p) if (p % 8 == 7) c[0] = 0;", 3, {"k": 8}),
    "by vectors": (
        "size_t p = 0; for (; p + 4 * lanes <= k; p += 4 * lanes) c[0] = 0; if (p < k) c[0] = 0;", 5, {"k": 65},
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", TEXTS)
def test_each_path_is_found_by_a_call(what: str) -> None:
    body, count, among = TEXTS[what]
    found = tile(body).paths(LANES)
    assert len(found) == count, found
    assert any(among.items() <= call.items() for of in found.values() for call in of), found


@pytest.mark.parametrize("what", TEXTS)
def test_no_call_takes_a_path_that_is_not_found(what: str) -> None:
    """All sizes, strides and coefficients together, each loop turn by turn."""
    one = tile(TEXTS[what][0])
    search = paths._Search(one, LANES)
    found = one.paths(LANES)
    every = (search.take(*point) for point in itertools.product(*search.values))
    assert {taken[0] for taken in every if taken is not None} == found.keys()


def test_a_loop_whose_turns_are_alike_counts_as_one_that_is_run() -> None:
    """The same loop, once with a condition inside that is always true, which makes it run turn by turn."""
    head = (
        "size_t p = 0, q = 3; for (; p + 3 <= k; p += 3) {{ q += 5; {} }} if (q == 38) c[0] = 0; if (p == k) c[0] = 0;"
    )
    (short, long) = ([*calls(head.format(inside))] for inside in ("", "if (p < 1000) c[0] = 0;"))
    assert short == long


def test_too_many_paths_are_refused_by_a_rule() -> None:
    many = "".join(f"if (k == {number}) c[0] = 0; " for number in range(1, 41))
    most = f"{many} if (m == 9) c[0] = 0; if (m == 10) c[0] = 0; if (m == 11) c[0] = 0; if (beta == 0) c[0] = 0;"
    assert len(calls(most)) == 41 * 4 * 2
    with pytest.raises(Broken, match=f"rule 'path': .* more than {paths.MOST_PATHS} paths"):
        calls(f"{most} if (alpha == 1) c[0] = 0;")


@pytest.mark.parametrize(
    ("body", "complaint"),
    [
        ("for (size_t p = 0; p < k * 100000; ++p) if (p % 2 == 0) c[0] = 0;", "turns until their paths are found"),
        ("size_t x = a[0]; if (x == 2) c[0] = 0;", "depends on 'x'"),
        ("{" * 120 + "if (k == 1) c[0] = 0;" + "}" * 120, None),
        ("if (k > 1) " * 120 + "c[0] = 0;", "nested too deeply"),
    ],
)
def test_what_cannot_be_run_is_refused_in_no_time(body: str, complaint: str | None) -> None:
    if complaint is None:
        assert len(calls(body)) == 2
        return
    with pytest.raises(Broken, match=f"rule 'path': .*{complaint}"):
        calls(body)


def test_a_size_without_a_bound_is_tried_beyond_many_vectors() -> None:
    assert calls("if (k >= 17 * lanes) c[0] = 0;") == [{"k": 1}, {"k": 17 * LANES}]


def variant_of(name: str, platform_name: str, dtype: str = "f32", **more: int) -> Variant:
    operator, platform = operators.load("gemm"), platforms.load(platform_name)
    known = [*offline.templates(operator.folder, "gemm"), offline.direct(operator.folder, "gemm")]
    template = next(one for one in known if one is not None and one.name == name)
    point = prior.first(platform, template, dtype, instantiate.micro_space(platform, template, dtype))[0]
    full = instantiate.defaults(operator, platform, dtype, Point.of({**point, **more}))
    return instantiate.variant(operator, template, dtype, full)


def called(variant: Variant, platform_name: str, vlens: Sequence[int] = ()) -> tuple[int, int]:
    """How many paths a kernel and its edge kernel have at some VLENs, and how many calls these get."""
    operator, platform, texts = operators.load("gemm"), platforms.load(platform_name), Texts()
    texts.kernel(operator, platform, variant)
    vlens = vlens or platform.verify_vlens
    made = PathCalls(operator, platform, texts, vlens, Seed(1, 2)).every(variant)
    known = texts.paths(operator, platform, variant)
    found = {(i, function, path) for i, one in enumerate(known) for vlen in vlens for function, path, _ in one.at(vlen)}
    return len(found), sum(len(cases) for of in made for cases in of.values())


@pytest.mark.parametrize(
    ("name", "platform", "dtype", "more"),
    [
        ("outer", "rvv", "f32", {}),
        ("outer", "avx2", "i8", {}),
        ("outer", "avx512", "f32", {"pack_a": 0, "pack_b": 0}),
        ("dot", "cortex-a53", "f64", {}),
        ("lanes", "neon", "f32", {"pack_b": 0, "nr": 4}),
        ("stream", "generic", "f32", {}),
        ("direct", "avx2", "f32", {}),
    ],
)
def test_each_path_of_a_shipped_template_is_called(name: str, platform: str, dtype: str, more: dict[str, int]) -> None:
    paths_found, calls_made = called(variant_of(name, platform, dtype, **more), platform)
    assert 10 < calls_made == paths_found


def test_a_path_at_several_vector_lengths_is_called_at_one() -> None:
    variant = variant_of("outer", "rvv")
    each = [called(variant, "rvv", (vlen,)) for vlen in (128, 256, 512)]
    of_all = called(variant, "rvv", (128, 256, 512))
    assert max(each) <= of_all < tuple(map(sum, zip(*each, strict=True)))
    assert all(found == made for found, made in (*each, of_all))
