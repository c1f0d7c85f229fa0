"""Cases of gemm, of which the contract makes its grids: sizes around tiles and blocks, coefficients, paddings."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

import numpy as np

from tensorop.model import drawing
from tensorop.model.call import Placement
from tensorop.model.case import Case
from tensorop.model.contract import STARTS
from tensorop.model.matrix import Matrix
from tensorop.model.number import NUMBERS
from tensorop.model.point import Value
from tensorop.model.problem import Problem

from .inputs import DISTRIBUTIONS
from .oracle import LAYOUTS, accumulator

GROUPS = 4  # steps of k: a multiple of every group that packing makes
TURNED = 2048  # elements of C that few_rows.c.j2 computes at a time
SHALLOW = 1 << 21  # elements of C of little depth: tiles of thousands of rows are multiplied by a narrow B
LARGEST_SQUARE = 215  # 20 Mflop: a tile may be thousands of rows high, and an emulator is slow

# A coefficient's classes; the fourth is any other number, drawn for each case, whole where results must be exact.
COEFFICIENTS = ("0", "1", "-1", "other")


def _large(dtype: str, tile: Mapping[str, int], rng: np.random.Generator, count: int, most: float) -> list[Case]:
    """Products of about `most` flops that are large in all three dimensions, of random sizes: every other one
    of whole tiles, every other one exact; then one that is long in k."""
    mr, nr, _ = _tile(tile)
    cases = []
    for number in range(count):
        m, n = (int(x) for x in rng.integers(100, 110 + (most > 1e7) * 110, 2))
        if number % 2 == 0:
            m, n = -(-m // mr) * mr, -(-n // nr) * nr
        k = max(100, int(most / (2 * m * n)))
        if number == count - 1:
            m, n, k = min(mr, 40) + 1, nr + 2, int(rng.integers(2048, 2300))
        values = _picked(rng)
        values |= {"m": m, "n": n, "k": k, "alpha": "1", "beta": "0", "variant": -1}
        values |= {"distribution": ("normal", "exact")[number % 2]}
        cases.append(_case(dtype, values, rng))
    return cases


def _few_rows(
    dtype: str, tile: Mapping[str, int], rng: np.random.Generator, count: int, variants: Sequence[Value] = (-1,)
) -> list[Case]:
    """Column-major products of fewer rows than a tile has, or row-major ones of as few columns, many times as long
    across: a library may compute them as their transpose, a piece at a time."""
    mr, nr, ku = _tile(tile)
    cases = []
    for number in range(count):
        few = int(rng.integers(1, max(min(mr, 65), 3)))
        long = TURNED // few if number % 2 == 0 else 2 * max(few, nr)
        values = _picked(rng)
        row = values["layout"] == "row"
        values["ta" if row else "tb"] = int(number % 3 != 2)  # the long one contiguous, mostly
        values |= {"alpha": COEFFICIENTS[1 + number % 3], "beta": COEFFICIENTS[(number + 1) % 4]}
        values |= {"n" if row else "m": few, "m" if row else "n": long + int(rng.integers(1, 80))}
        values |= {"k": ku + int(rng.integers(1, 40)), "variant": variants[number % len(variants)]}
        cases.append(_case(dtype, values, rng))
    return cases


def _vectors(
    dtype: str, tile: Mapping[str, int], rng: np.random.Generator, count: int, variants: Sequence[Value] = (-1,)
) -> list[Case]:
    """A matrix by a vector, from either side: many tiles long, of a depth that blocks may cut; C contiguous, mostly."""
    mr, nr, ku = _tile(tile)
    cases = []
    for number in range(count):
        values = _picked(rng)
        long = int(rng.integers(2, 12)) * max(min(mr, 64), nr) + int(rng.integers(1, 9))
        values |= {"m": long, "n": 1} if number % 2 else {"m": 1, "n": long}
        values |= {
            "k": int(rng.integers(1, 700 if number % 3 else 8 * ku)),
            "variant": variants[number % len(variants)],
        }
        values |= {"ta": number // 2 % 2, "tb": number // 4 % 2, "ldc_pad": int(number % 5 == 4)}
        values |= {"alpha": COEFFICIENTS[1 + number % 3], "beta": COEFFICIENTS[int(rng.integers(4))]}
        cases.append(_case(dtype, values, rng))
    return cases


def _shallow(
    dtype: str, tile: Mapping[str, int], rng: np.random.Generator, count: int, variants: Sequence[Value] = (-1,)
) -> list[Case]:
    """Products of little depth, one side of C many tiles long: a library may keep the elements of the shorter operand
    in registers, or a whole short side."""
    mr, nr, _ = _tile(tile)
    cases = []
    for number in range(count):
        values = _picked(rng)
        row = values["layout"] == "row"
        long, short = int(rng.integers(4 * mr, 18 * mr)), int(rng.integers(1, max(mr, nr + 6)))
        short = min(short, max(nr + 6, SHALLOW // long))
        values |= {"m" if row else "n": short, "n" if row else "m": long}
        if number % 4 == 3:
            values |= {"m": values["n"], "n": values["m"]}
        values |= {
            "k": (1, 2, 3, 4, 5, 6, 7, 9, 16, 17)[int(rng.integers(10))],
            "variant": variants[number % len(variants)],
        }
        values |= {"ta" if not row else "tb": int(number % 5 == 4)}  # its columns contiguous, mostly
        values |= {"alpha": COEFFICIENTS[1 + number % 3], "beta": COEFFICIENTS[int(rng.integers(4))]}
        cases.append(_case(dtype, values, rng))
    return cases


def _nearly_done(dtype: str, tile: Mapping[str, int], rng: np.random.Generator, count: int) -> list[Case]:
    """Products whose C holds the result but for one element, of numbers that every order of sums is exact on: one that
    recomputes an element and looks no further is found out."""
    mr, nr, ku = _tile(tile)
    cases = []
    for number in range(count):
        values = _picked(rng)
        values |= {"layout": ("col", "row")[number % 2], "m": mr + 4, "n": nr + 3, "k": ku + 1}
        values |= {"alpha": "1", "beta": "0", "start": "result", "distribution": "integer"}
        cases.append(_case(dtype, values, rng))
    return cases


def smallest_grid(dtype: str, rng: np.random.Generator, count: int) -> tuple[Case, ...]:
    """`count` products of little work, the library's own choice for each: sides up to 20, and long and narrow ones; all
    layouts, transposes and gaps in turn."""
    long = ((2, 2, 150), (2, 2, 1100), (4, 3, 300), (1, 17, 40), (20, 1, 33), (3, 64, 5), (900, 2, 3), (1, 3, 700))
    long += ((1, 1, 300), (5, 3, 90), (1, 300, 1))
    cases = []
    for number in range(count):
        values = _picked(rng)
        m, n, k = long[number // 16 % len(long)] if number // 8 % 2 else (int(x) for x in rng.integers(1, 21, 3))
        values |= {"m": m, "n": n, "k": k, "variant": -1}
        values |= {"layout": ("col", "row")[number % 2], "ta": number // 2 % 2, "tb": number // 4 % 2}
        values |= {"alpha": COEFFICIENTS[1 + number % 3], "beta": COEFFICIENTS[int(rng.integers(4))]}
        cases.append(_case(dtype, values, rng))
    return tuple(cases)


def _flops(problem: Problem) -> float:
    m, n, k = (int(problem.dims[name]) for name in ("m", "n", "k"))
    return 2.0 * m * n * k


def _plainness(case: Case) -> tuple[int, float]:
    return DISTRIBUTIONS.index(case.distribution), _flops(case.problem)


def _tile(tile: Mapping[str, int]) -> tuple[int, int, int]:
    return tile["mr"], tile["nr"], max(2, tile.get("ku", 4))


def _layouts() -> dict[str, tuple[Value, ...]]:
    return {
        "layout": ("col", "row"),
        "ta": (0, 1),
        "tb": (0, 1),
        "lda_pad": (0, 3),
        "ldb_pad": (0, 5),
        "ldc_pad": (0, 1),
        "placement": tuple(p.value for p in Placement),
        "distribution": DISTRIBUTIONS,
        "start": STARTS,
    }


def _picked(rng: np.random.Generator) -> dict[str, Value]:
    """One of each of `_layouts`."""
    return {name: options[int(rng.integers(len(options)))] for name, options in _layouts().items()}


def _beyond_blocks(
    tile: Mapping[str, int], blocking: Mapping[str, int], *, thorough: bool
) -> list[tuple[int, int, int, str]]:
    """m, n, k, layout that reach a second panel of each loop, and of each two; none above 12 Mflop.

    thorough: both layouts and both orientations of each. Otherwise each once, taking turns between column-major and
    its transpose in row-major, which is the same product to a library that computes in column-major.
    """
    mr, nr, _ = _tile(tile)
    mc, kc, nc = blocking["mc"], blocking["kc"], blocking["nc"]
    shapes = [
        (mc + 1, nr + 1, 5),
        (mr + 1, nc + 1, 5),
        (mr + 1, nr + 1, kc - 1),
        (mr + 1, nr + 1, kc),
        (mr + 1, nr + 1, kc + 1),
        (mr + 1, nr + 1, 2 * kc + 1),
        (mc + 1, 2, kc + 1),
        (2, nc + 1, kc + 1),
        (mc + mr + 1, nc + nr + 1, 2),
    ]
    shapes = [(m, n, k) for m, n, k in shapes if 2 * m * n * k <= 12_000_000 and k > 0]
    if thorough:
        both = dict.fromkeys(shape for m, n, k in shapes for shape in ((m, n, k), (n, m, k)))
        return [(*shape, layout) for shape in both for layout in ("col", "row")]
    return [(n, m, k, "row") if i % 2 else (m, n, k, "col") for i, (m, n, k) in enumerate(shapes)]


def _anywhere(dtype: str, m: int, n: int, k: int, rng: np.random.Generator) -> Case:
    """A random problem up to these sizes: a kernel cannot be specialised for it."""
    values = _picked(rng)
    values |= {"m": int(rng.integers(1, m + 1)), "n": int(rng.integers(1, n + 1)), "k": int(rng.integers(1, k + 1))}
    values |= {name: COEFFICIENTS[1 + int(rng.integers(3))] for name in ("alpha", "beta")}
    return _case(dtype, values, rng)


def _deep(dtype: str, tile: Mapping[str, int], rng: np.random.Generator) -> list[Case]:
    """Of a tile with `deep`: in each layout, products with k up to `deep` and past it, of one tile."""
    most = tile.get("deep", 0)
    cases = []
    for layout, ta, tb, part in itertools.product(LAYOUTS, (0, 1), (0, 1), range(3) if most else ()):
        k = drawing.between(most >> (2 - part), most << (part == 2), rng.random()) + (part == 2) * tile["ku"]
        sizes: dict[str, Value] = {"m": int(rng.integers(1, 9)), "n": int(rng.integers(1, 9)), "k": k}
        # long sums have a wide bound: there it is 0
        values = _picked(rng) | sizes | {"layout": layout, "ta": ta, "tb": tb, "distribution": "integer"}
        values |= {"alpha": "1", "beta": COEFFICIENTS[int(rng.integers(4))]}
        cases.append(_case(dtype, values, rng))
    return cases


def _squares(dtype: str, size: int, layouts: Sequence[str], rng: np.random.Generator) -> list[Case]:
    """m = n = k, at most LARGEST_SQUARE, all transposes: a transpose taken for the other stays inside its buffers here.

    Whole numbers, then once all special values, for which `size` must leave room (4 rows, 4 columns).
    """
    side = min(max(size, 5), LARGEST_SQUARE)
    fixed: dict[str, Value] = {"m": side, "n": side, "k": side, "alpha": "1", "beta": "0"}
    kinds = [(ta, tb, "integer") for ta in (0, 1) for tb in (0, 1)]
    kinds.append((int(rng.integers(2)), int(rng.integers(2)), "special"))
    cases = []
    for layout in layouts:
        for ta, tb, distribution in kinds:
            values = _picked(rng) | fixed | {"layout": layout, "ta": ta, "tb": tb, "distribution": distribution}
            cases.append(_case(dtype, values, rng))
    return cases


def _empty(dtype: str, cases: Sequence[Mapping[str, Value]], rng: np.random.Generator) -> list[Case]:
    """Cases in which nothing is multiplied; layouts and gaps vary, inputs are normal."""
    return [_case(dtype, {**_picked(rng), "distribution": "normal", **values}, rng) for values in cases]


def _case(
    dtype: str, values: Mapping[str, Value], rng: np.random.Generator, first: str = "", part: float = 0.0
) -> Case:
    """A case, with coefficients and magnitudes drawn where `values` leave them open. first: `alpha`, `A` or `B`, which
    is drawn before the others bind it, at `part` of its range; or USUAL: all are of magnitudes that people use."""
    distribution = str(values["distribution"])
    options = {
        name: value
        for name, value in values.items()
        if name not in ("m", "n", "k", "placement", "distribution", "start")
    }
    options |= _numbers(dtype, distribution, options, rng, first, part)
    problem = Problem.of("gemm", dtype, {name: values[name] for name in ("m", "n", "k")}, options)
    start = str(values["start"]) if float(str(options.get("beta", 0))) == 0 else STARTS[0]
    return Case(problem, distribution, Placement(str(values["placement"])), start)


OPEN = ("other", "above", "below")  # coefficients that are drawn; the last two beyond 1 and -1
NARROW = 4  # binary exponents of the coefficients that are usual
USUAL = "usual"


def _numbers(
    dtype: str, distribution: str, options: Mapping[str, Value], rng: np.random.Generator, first: str, part: float
) -> dict[str, Value]:
    """Coefficients that are `other`, and what `normal` inputs are multiplied by: half of the time of the magnitudes
    that people use, else from the whole range in which no product or sum leaves the normal numbers."""
    number, operands = accumulator(dtype), NUMBERS[dtype]
    of_alpha, of_beta = (options.get(name) for name in ("alpha", "beta"))
    sign = _sign(rng)
    if number.whole or distribution in ("integer", "exact"):
        most = (2**31 - 1, 2**31 - 1) if number.whole else (7, 1000)
        drawn = (drawing.between(2, limit, rng.random()) for limit in most)
        both = {"alpha": sign * next(drawn), "beta": _sign(rng) * next(drawn)}
        return {name: str(value) for name, value in both.items() if options.get(name) in OPEN}
    most = drawing.spare(number)
    everywhere = first != USUAL and (bool(first) or rng.random() < 0.5)
    if distribution == "wide":
        most -= 4 * (min(operands.overflow, 1024) // 7)
    own = {"alpha": (most if everywhere else NARROW) if of_alpha == "other" else 0, "A": 0, "B": 0}
    scales = everywhere and distribution == "normal" and of_alpha != "0"
    if scales:
        own |= dict.fromkeys("AB", min(most, drawing.normal(operands)))
    if not own.get(first or "alpha"):
        first = ""
    if first == "alpha":  # both signs, each at as many places
        sign, part = (1 if part >= 0.5 else -1), 2 * part % 1
    chosen = drawing.exponents(most, own, first or ("alpha", "A", "B")[rng.integers(3)], part or rng.random(), rng)
    found: dict[str, Value] = {}
    if of_alpha == "other":
        # what makes a denormal 0 makes an infinity that it meets NaN
        exponent = abs(chosen["alpha"]) if distribution == "special" else chosen["alpha"]
        found["alpha"] = _text(sign, exponent, rng)
    total, of_c = sum(chosen.values()), 0
    if of_beta in OPEN:
        limit = most if scales and rng.random() < 0.5 else NARROW
        low, high = max(-limit, total - most), min(limit, total + most)
        low = low if of_beta == "other" else 1
        of_c = int(rng.integers(low, high + 1)) if low <= high else low
        found["beta"] = _text({"above": 1, "below": -1}.get(str(of_beta)) or _sign(rng), of_c, rng)
    if scales:  # what beta adds is about as large as the product
        found |= {"exp_A": chosen["A"], "exp_B": chosen["B"]}
        found |= {"exp_C": max(-most, min(most, total - of_c))} if of_beta != "0" else {}
    return found


def _sign(rng: np.random.Generator) -> int:
    return int(1 - 2 * rng.integers(2))


def _text(sign: int, exponent: int, rng: np.random.Generator) -> str:
    return f"{sign * float(np.ldexp(1.05 + 0.9 * rng.random(), exponent)):.4g}"


LONGEST = 1 << 13  # of a dimension in grids that every candidate takes
FURTHEST = 35.9  # binary exponent of the bytes from an operand's first line to its last


def _drawn(
    dtype: str,
    tile: Mapping[str, int],
    rng: np.random.Generator,
    count: int,
    longest: int = LONGEST,
    variants: Sequence[Value] = (-1,),
) -> list[Case]:
    """Random sizes: of each dimension `count` products in which it is long, and a few small ones with
    large leading dimensions. Sizes, strides, coefficients and magnitudes are log-uniform, one in each of as many equal
    parts of a range as there are cases: a fault that shows in a whole part is found in every run. count: 3 or more."""
    shares = (("alpha", 6), ("A", 2), ("B", 4))
    pool = [(name, part) for name, many in shares for part in drawing.strata(many * (count // 3), rng)]
    pools = itertools.cycle([pool[i] for i in rng.permutation(len(pool))])
    dims = ("m", "n", "k")
    long = {dim: drawing.strata(count, rng) for dim in dims}
    cases = []

    def case(number: int, values: dict[str, Value]) -> Case:
        usual = _picked(rng)
        usual |= {"variant": variants[number % len(variants)]}
        usual |= {"alpha": COEFFICIENTS[1 + int(rng.integers(3))], "beta": COEFFICIENTS[int(rng.integers(4))]}
        usual |= values
        drawn = ("", 0.0)
        if usual["distribution"] == "normal":
            drawn = next(pools)
            usual["beta"] = ("above", "other", "below", usual["beta"])[len(cases) % 4]
        if drawn[0] == "alpha":
            usual["alpha"] = "other"
        return _case(dtype, usual, rng, *drawn)

    for number in range(count):
        for dim in dims:
            size = drawing.between(256, longest, long[dim][number])
            sizes: dict[str, Value] = {dim: size}
            least, left = (2, 2 * DRAWN_WORK / size) if dim == "k" else (1, DRAWN_WORK / 2 / size)
            for name in (dims[i] for i in rng.permutation(3)):
                if name not in sizes:
                    sizes[name] = drawing.between(least, max(least, min(16, int(left))), rng.random())
                    left /= int(sizes[name])
            # long sums have a wide bound: there it is 0
            kind = "integer" if dim == "k" and size > 1000 else "normal"
            cases.append(case(number, {**sizes, "distribution": kind}))
    far = {name: rng.permutation([*drawing.strata(count + 1, rng), 1.0]) for name in "ABC"}
    for number in range(count + 2):
        values: dict[str, Value] = {dim: drawing.between(2, 24, rng.random()) for dim in dims}
        values |= {"layout": str(rng.choice(LAYOUTS)), "ta": int(rng.integers(2)), "tb": int(rng.integers(2))}
        sides = (("A", "mk", values["ta"]), ("B", "kn", values["tb"]), ("C", "mn", 0))
        for name, (rows, columns), turned in sides:
            size = (accumulator(dtype) if name == "C" else NUMBERS[dtype]).size
            matrix = Matrix.of(int(values[rows]), int(values[columns]), str(values["layout"]), bool(turned))
            values[f"ld{name.lower()}_pad"] = _pad(matrix, size, float(far[name][number]), rng)
        cases.append(case(number, {**values, "distribution": "normal"}))
    return cases


DRAWN_WORK = 4e5  # flops of a drawn case
KERNEL_WORK = 1e5  # of a drawn one of a kernel alone


def _pad(matrix: Matrix, size: int, part: float, rng: np.random.Generator) -> int:
    """A gap with which a last line begins at `part` of the way from the first line to as far as addresses go, by
    logarithms; at 1 beyond 2^32 elements."""
    most = FURTHEST - float(np.log2(size))
    bits = 5 + (most - 5) * part if part < 1 else float(rng.uniform(32.01, min(most, 34)))
    return max(0, int(2**bits) // max(matrix.outer - 1, 1) - matrix.inner)


def _no_numbers(dtype: str, tile: Mapping[str, int], rng: np.random.Generator, count: int) -> list[Case]:
    """Coefficients that are no numbers: NaN, and infinite beta."""
    if accumulator(dtype).whole:
        return []
    mr, nr, ku = _tile(tile)
    kinds = (("nan", "0"), ("1", "nan"), ("nan", "1"), ("1", "inf"), ("-1", "-inf"))
    cases = []
    for number in range(count):
        values = _picked(rng)
        alpha, beta = kinds[number % len(kinds)]
        values |= {"m": mr + 1, "n": nr + 1, "k": ku + 1, "alpha": alpha, "beta": beta, "distribution": "normal"}
        cases.append(_case(dtype, values, rng))
    return cases


def _each_size(dtype: str, rng: np.random.Generator, dim: str, most: int, variants: Sequence[Value]) -> list[Case]:
    """Every size of a dimension up to `most` once, the others small: a fault at one size alone is found."""
    cases = []
    for number, size in enumerate(rng.permutation(most)):
        values = _picked(rng)
        values |= {"alpha": COEFFICIENTS[1 + int(rng.integers(3))], "beta": COEFFICIENTS[int(rng.integers(4))]}
        values |= {name: drawing.between(1, 20, rng.random()) for name in ("m", "n", "k")} | {dim: int(size) + 1}
        values |= {"variant": variants[number % len(variants)]}
        values |= {"distribution": "integer" if number % 2 else "normal"}
        cases.append(_case(dtype, values, rng))
    return cases
