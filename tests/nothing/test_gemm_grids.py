"""gemm's grids cover what they claim."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tensorop.model.call import Placement
from tensorop.model.case import Case, cover
from tensorop.model.trial import Kind
from tensorop.model.verdict import Seed
from tensorop.specs import primitives
from tensorop.specs.operators import load as load_operator
from tensorop.specs.platforms import load as load_platform
from tensorop.verify import grid
from tensorop.verify.controls import controls
from tests.support.operators import gemm

operator = gemm()
reference = operator.reference
TILES = [{"mr": 8, "nr": 4, "ku": 4}, {"mr": 48, "nr": 8, "ku": 2}, {"mr": 128, "nr": 7}, {"mr": 1, "nr": 1, "ku": 1}]
DEFAULTS = {"layout": "col", "alpha": "1", "beta": "0", "variant": -1}
NO_NUMBERS = {"nan", "inf", "-inf"}
BLOCKING = {"mc": 96, "kc": 128, "nc": 256, "variants": 3}


@settings(deadline=None, max_examples=40)
@given(st.lists(st.integers(1, 6), min_size=1, max_size=7), st.integers(0, 99))
def test_cover_holds_every_pair(lengths: list[int], seed: int) -> None:
    factors = {f"f{i}": tuple(range(length)) for i, length in enumerate(lengths)}
    points = cover(factors, np.random.default_rng(seed))
    for a, b in combinations(factors, 2):
        assert {(p[a], p[b]) for p in points} == set(product(factors[a], factors[b]))
    assert points
    assert all(set(p) == set(factors) for p in points)
    longest = sorted(lengths)[-2:]
    assert len(points) <= 3 * np.prod(longest) + 4


def option(case: Case, name: str) -> int | str:
    return case.problem.options.get(name, DEFAULTS.get(name, 0))


def coefficient(case: Case, name: str) -> str:
    value = str(option(case, name))
    return value if value in ("0", "1", "-1", "nan", "inf", "-inf") else "other"


def as_column_major(case: Case) -> tuple[int, int, int]:
    """The product a column-major library computes for it."""
    m, n, k = (int(x) for x in case.problem.dims.values())
    return (m, n, k) if option(case, "layout") == "col" else (n, m, k)


def multiplied(cases: tuple[Case, ...]) -> list[Case]:
    """Those that multiply numbers."""
    none = {"0": "alpha", "nan": "alpha beta", "inf": "beta", "-inf": "beta"}
    return [
        c
        for c in cases
        if reference.work(c.problem) > 0
        and not any(coefficient(c, name) == value for value, names in none.items() for name in names.split())
    ]


@pytest.mark.parametrize("tile", TILES)
@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_the_quick_grid(dtype: str, tile: dict[str, int]) -> None:
    cases = reference.quick_grid(dtype, tile, Seed(1, 2).stream(0))
    assert 45 <= len(cases) <= 90
    assert sum(reference.work(c.problem) for c in cases) < 60e6
    full = multiplied(cases)
    names = ("layout", "ta", "tb", "lda_pad", "ldb_pad", "ldc_pad")
    for a, b in combinations(names, 2):
        assert len({(bool(option(c, a) in (0, "col")), bool(option(c, b) in (0, "col"))) for c in full}) == 4
    assert {(coefficient(c, "alpha"), coefficient(c, "beta")) for c in full} == set(
        product(("1", "-1", "other"), ("0", "1", "-1", "other"))
    )
    assert {(c.placement, c.distribution) for c in full} == set(product(Placement, reference.DISTRIBUTIONS))
    for dim, edge in (("m", tile["mr"]), ("n", tile["nr"])):
        sizes = {int(c.problem.dims[dim]) for c in full}
        assert {1, edge, edge + 2, 2 * edge + 3} <= sizes
        assert {size % 4 for size in sizes} >= {1, 3} or edge == 1
        assert any(size % 4 >= 2 for size in sizes)
    empty = [c.problem.dims for c in cases if reference.work(c.problem) == 0]
    assert {dim for dims in empty for dim in dims if dims[dim] == 0} == {"m", "n", "k"}
    assert {coefficient(c, "beta") for c in cases if coefficient(c, "alpha") == "0"} == {"0", "1", "-1", "other"}
    assert any(c.problem.dims["k"] == 0 and coefficient(c, "beta") == "other" for c in cases)
    assert len(set(cases)) <= len(cases) - 2  # the same problem with other numbers
    sides = [tuple(int(c.problem.dims[dim]) for dim in ("m", "n")) for c in cases]
    assert any(m == 1 and n >= 2 * tile["nr"] for m, n in sides)  # a matrix by a vector, from either side
    assert any(n == 1 and m >= 2 * tile["nr"] for m, n in sides)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("dtype", ["f32", "f64", "i8", "bf16", "f16"])
def test_every_quick_grid_draws_from_the_whole_range(dtype: str) -> None:
    """Of coefficients, magnitudes, sizes and strides; none of them leads to a value that is no normal number."""
    for public in range(12):
        cases = reference.quick_grid(dtype, TILES[0], Seed(public, 2).stream(0))
        read = [reference.product(case.problem) for case in multiplied(cases)]
        whole = reference.product(cases[0].problem).accumulator.whole
        far = [(float(p.alpha), float(p.beta)) for p in read]
        if not whole:
            assert any(alpha > 3 for alpha, _ in far)
            assert any(alpha < -1 for alpha, _ in far)
            assert any(0 < alpha < 0.69 for alpha, _ in far)
        assert any(beta > 1 for _, beta in far)
        for name in ("m", "n", "k"):
            assert max(getattr(p, name) for p in read) > 2400
        for name in ("a", "b", "c"):
            assert any((getattr(p, name).outer - 1) * getattr(p, name).leading > 1 << 32 for p in read)
        exponents = [int(c.problem.options.get("exp_B", 0)) for c in cases]
        assert whole or max(exponents) >= (50 if dtype != "f16" else 6)
        for i, case in enumerate(multiplied(cases)):
            if "exp_A" in case.problem.options:
                call = reference.call(case.problem, Seed(public, 2).stream(1, i), case.distribution)
                (want, bound) = reference.expected(case.problem, call)["C"]
                size = np.abs(want[want != 0]).astype(np.longdouble)
                number = reference.product(case.problem).accumulator
                assert np.isfinite(want).all()
                assert size.max() < np.ldexp(np.longdouble(1), number.overflow - 1)
                assert size.min() >= np.ldexp(np.longdouble(1), number.smallest + number.precision - 1)
                assert case.problem.dims["k"] > 1000 or (bound <= 0.1 * size.max()).all()


def test_a_dealt_grid_is_one_quick_grid_over_all_vlens() -> None:
    """Each case of the quick grid is tried at one VLEN or other, its sizes by what they are to the tile there."""
    tiles = {vlen: {"mr": vlen // 8, "nr": 4, "ku": 4} for vlen in (128, 256, 512)}
    cases = grid.dealt(operator, "f32", tiles)
    dealt = {vlen: cases(vlen, Seed(1, 2)) for vlen in tiles}
    whole = reference.quick_grid("f32", tiles[128], Seed(1, 2).stream(0))
    assert sum(map(len, dealt.values())) == len(whole)
    assert min(map(len, dealt.values())) >= len(whole) // 3
    assert dealt[128] == whole[::3]
    sizes = {vlen: {int(case.problem.dims["m"]) for case in dealt[vlen]} for vlen in tiles}
    assert any({vlen // 8 - 1, vlen // 8, vlen // 8 + 2} & sizes[vlen] for vlen in tiles)
    every = {(option(case, "layout"), option(case, "ta"), option(case, "tb")) for one in dealt.values() for case in one}
    assert len(every) == 8


@pytest.mark.parametrize("reads", ["columns", "rows", "stream"])
def test_the_grid_of_a_kernel_has_each_tile_once(reads: str) -> None:
    """All VLENs together; every tile that may have a tail is there with one and without."""
    point, vlens = {"mr_vectors": 3, "nr": 4, "ku": 2}, (128, 256, 512)

    def whole(vlen: int, seed: Seed) -> tuple[Case, ...]:
        return reference.kernel_grid("f32", point, vlen // 32, {"a": reads}, True, seed.stream(0))

    cases = {vlen: grid.in_turn(whole, vlens)(vlen, Seed(3, 4)) for vlen in vlens}
    tiles, finite = [], set()
    for vlen, of_vlen in cases.items():
        along = 1 if reads == "rows" else vlen // 32
        for case in of_vlen:
            m, n, k = (int(x) for x in case.problem.dims.values())
            assert m >= 1
            assert k >= 1
            assert n <= 4
            assert int(option(case, "lda_pad")) == -m % along
            tiles.append((-(-m // along), n, m % along > 0))
            if case.distribution != "special":
                finite.add(tiles[-1][:2])
    heights = (1, 2, 3, 3) if reads == "stream" else (1, 2, 3)
    tails = (False,) if reads == "rows" else (False, True)
    assert sorted(tiles) == sorted([*product(heights, (1, 2, 3, 4), tails), *[(3, 4, False)] * 4])
    assert finite == set(product(heights, (1, 2, 3, 4)))  # a fault hides behind NaN
    assert {coefficient(case, "beta") for of in cases.values() for case in of} == {"0", "1", "-1", "other"}
    assert not reference.kernel_grid("i8", point, 4, {"a": reads}, True, Seed(3, 4).stream(0))


def test_a_kernels_grid_draws_depths_within_little_work() -> None:
    """Its largest tile is deeper than any list has, its smallest one as deep as any; ours alone are judged so."""
    point, deep, smallest = {"mr_vectors": 3, "nr": 8, "ku": 4}, set(), set()
    for public in range(20):
        cases = reference.kernel_grid("f32", point, 8, {"a": "columns"}, True, Seed(public, 4).stream(0))
        assert sum(reference.work(case.problem) for case in cases) < 0.7e6
        sizes = [tuple(int(size) for size in case.problem.dims.values()) for case in cases]
        deep |= {k for m, n, k in sizes if (m, n) == (24, 8)}
        smallest |= {k for m, n, k in sizes if (m, n) == (8, 1)}
    assert len(deep) > 30
    assert max(deep) > 150
    assert max(smallest) > 2400


def test_the_grid_of_several_threads_is_drawn() -> None:
    tile = {"mr": 16, "nr": 6, "ku": 4}
    grids = [reference.thread_grid("f32", tile, Seed(public, 4).stream(8)) for public in range(20)]
    for cases in grids:
        full = multiplied(cases)
        assert {option(case, "layout") for case in full} == {"row", "col"}
        assert all(1e6 < reference.work(case.problem) < 2e7 for case in full)
    whole = [case for cases in grids for case in multiplied(cases)]
    for dim in ("m", "n", "k"):
        assert len({case.problem.dims[dim] for case in whole}) > len(whole) / 3
    assert {coefficient(case, "alpha") for case in whole} == {"1", "-1", "other"}
    assert {coefficient(case, "beta") for case in whole} == {"0", "1", "-1", "other"}
    assert sum(sum(reference.work(case.problem) for case in cases) for cases in grids) / len(grids) < 25e6


def test_a_panel_that_is_read_whole_has_zeros_behind_its_rows() -> None:
    point, rng = {"mr_vectors": 2, "nr": 1, "ku": 1}, Seed(1, 2).stream(0)
    cases = reference.kernel_grid("f32", point, 4, {"a": "columns"}, False, rng)
    padded = [case for case in cases if int(option(case, "lda_pad"))]
    assert padded
    for case in padded:
        call = reference.call(case.problem, rng, case.distribution, case.placement, start=case.start)
        panel = call.buffers[0].data.reshape(-1, call.lds[0])
        assert panel.shape[0] == case.problem.dims["k"]
        assert not panel[:, int(case.problem.dims["m"]) :].any()
        assert panel[:, : int(case.problem.dims["m"])].any()


@pytest.mark.parametrize("tile", TILES)
def test_the_full_grid(tile: dict[str, int]) -> None:
    cases = reference.full_grid("f32", tile, BLOCKING, Seed(1, 2).stream(0))
    assert len(cases) < 1350
    assert sum(reference.work(c.problem) for c in cases) < 600e6
    seen = {
        (option(c, "layout"), option(c, "ta"), option(c, "tb"), coefficient(c, "alpha"), coefficient(c, "beta"))
        for c in cases
        if reference.work(c.problem) > 0 and not {coefficient(c, "alpha"), coefficient(c, "beta")} & NO_NUMBERS
    }
    assert len(seen) == 2 * 2 * 2 * 4 * 4
    full = multiplied(cases)
    for dim in ("m", "n"):
        assert {int(c.problem.dims[dim]) % 4 for c in full} == {0, 1, 2, 3}
    mc, kc, nc = BLOCKING["mc"], BLOCKING["kc"], BLOCKING["nc"]
    for variant in (-1, 0, 1, 2):
        mine = [c for c in full if option(c, "variant") == variant]
        inside = [as_column_major(c) for c in mine]
        assert any(k > 2 * kc for m, n, k in inside)
        assert any(m > mc and k > kc for m, n, k in inside)
        assert any(n > nc and k > kc for m, n, k in inside)
        assert any(m > mc and n > nc for m, n, k in inside)
    for layout in ("row", "col"):
        those = [c.problem.dims for c in full if option(c, "layout") == layout and option(c, "variant") == -1]
        assert any(d["m"] > nc and d["k"] > kc for d in those)
        assert any(d["n"] > nc and d["k"] > kc for d in those)
    assert any(c.problem.dims["m"] == 0 for c in cases)


def test_the_full_grid_has_each_small_size_and_longer_ones_than_a_candidates() -> None:
    """The ranges of docs/explanation/security.md; the longest is in the last of fifteen equal parts."""
    cases = reference.full_grid("f32", TILES[0], BLOCKING, Seed.draw().stream(0))
    for dim, most in (("k", 192), ("m", 48), ("n", 48)):
        sizes = {int(case.problem.dims[dim]) for case in multiplied(cases)}
        assert set(range(1, most + 1)) <= sizes
        assert 131072 * (256 / 131072) ** (1 / 15) * 0.99 < max(sizes) <= 131072
    assert {coefficient(case, "beta") for case in cases} >= NO_NUMBERS
    assert "nan" in {coefficient(case, "alpha") for case in cases}


def test_convolutions_have_each_dimension_long() -> None:
    """The ranges of docs/explanation/security.md; the longest is in the last of three equal parts."""
    for seed in (Seed.draw(), Seed.draw()):
        cases = load_operator("conv2d").reference.quick_grid("f32", TILES[0], seed.stream(0))
        for dim in "nchwk":
            assert (
                64 * (16384 / 64) ** (2 / 3) * 0.99 < max(int(case.problem.dims[dim]) for case in cases) <= 16384 + 64
            )
        for taps in "rs":
            assert 8 <= max(int(case.problem.dims[taps]) for case in cases) <= 64


def test_a_tile_of_thousands_of_rows_asks_for_no_huge_product() -> None:
    """Memory and an emulator's time: C alone would be hundreds of megabytes."""
    tile = {"mr": 2048, "nr": 4}
    rng = np.random.default_rng(1)
    blocking = {**BLOCKING, "mc": 2048}
    cases = (*reference.quick_grid("f64", tile, rng), *reference.full_grid("f64", tile, blocking, rng))
    sizes = [int(case.problem.dims["m"]) * int(case.problem.dims["n"]) for case in cases]
    assert max(sizes) <= 1 << 21
    assert any(max(case.problem.dims["m"], case.problem.dims["n"]) >= 4 * 2048 for case in cases)


def test_a_contiguous_row_is_chosen_for_as_a_column() -> None:
    def seen(m: int, n: int, k: int, **options: str | int) -> dict[str, int]:
        (problem,) = reference.problems([(m, n, k)], "f32", {"layout": "row", **options})
        return dict(reference.features(problem))

    assert seen(900, 1, 70, ta=1) == seen(1, 900, 70)
    assert seen(900, 1, 70, ta=1, ldc_pad=1)["m"] == seen(900, 1, 70)["m"] == 1


def test_equal_seeds_give_equal_calls_and_a_secret_others() -> None:
    def calls(seed: Seed) -> bytes:
        cases = reference.quick_grid("f32", TILES[0], seed.stream(0))
        made = [reference.call(c.problem, seed.stream(1, i), c.distribution) for i, c in enumerate(cases)]
        return b"".join(b.data.tobytes() for call in made for b in call.buffers)

    seed = Seed.draw(3)
    assert calls(seed) == calls(Seed.parse(str(seed)))
    assert calls(seed) != calls(Seed.draw(3))


def test_the_controls_hold_the_faults_that_are_relied_on() -> None:
    found = {c.name: c for c in controls(operator)}
    wanted = (
        "last_k_lost corner_off beta_ignored c_read_at_beta_0 odd_ld writes_past_end reads_past_end one_vlen m_mod_4 "
        "stale zero b_transpose_swapped nan_swallowed narrow_accumulator modifies_a"
    )
    assert set(wanted.split()) <= set(found)
    assert [c.name for c in found.values() if c.expected == (Kind.OK,)] == ["honest"]
    assert next(iter(found)) == "honest"
    assert found["writes_past_end"].expected == (Kind.GUARD,)
    rvv = load_platform("rvv")
    assert found["one_vlen"].applies(rvv, "f32")
    assert not found["one_vlen"].applies(replace(rvv, verify_vlens=(256,)), "f32")
    assert not found["one_vlen"].applies(replace(rvv, primitives=(primitives.resolved("scalar"),)), "f32")
    assert found["honest"].applies(replace(rvv, verify_vlens=(256,), primitives=()), "f32")
