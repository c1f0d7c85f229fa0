"""The parts of an operator that are generated: their refusals, threads, workspace and arithmetic, from C and Python."""

from __future__ import annotations

import random
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import cffi
import numpy as np
import pytest

import tensorop
from tensorop import paths
from tensorop.author import offline
from tensorop.commands import explain, opened
from tensorop.errors import SpecError
from tensorop.model.architecture import host_arch
from tensorop.model.expression import parse
from tensorop.model.kernel import Artifact, KernelText
from tensorop.model.operator import Operator
from tensorop.model.winner import Leaf, Split, Tree, Winners
from tensorop.package import product as making
from tensorop.package import publish
from tensorop.package.sources import OperatorPart
from tensorop.render import adapting, instantiate
from tensorop.render.texts import Texts
from tensorop.space import problems
from tensorop.specs import operators, platforms
from tensorop.toolchain import tool
from tensorop.toolchain.compile import candidate_flags, compile_source
from tests.support.commands import ROOT

pytestmark = [
    pytest.mark.skipif(host_arch() != "x86_64", reason="loads products for x86-64"),
    pytest.mark.filterwarnings("ignore:.*is not verified"),
]
EXAMPLE = ROOT / "examples" / "operator"
LEGAL = {"b": 2, "c": 3, "h": 8, "t": 3, "u": 1, "p": 1, "relu": 0, "alpha": 1.0}
OUTPUTS = 2 * 3 * 8


def made(operator: Operator, folder: Path, tree: Leaf | Split, *points: dict[str, int]) -> Path:
    """A product with these variants of the operator's only template, for any x86-64 processor."""
    (template,) = offline.templates(operator.folder, operator.name)
    platform, texts = platforms.load("generic"), Texts()
    variants = tuple(instantiate.variant(operator, template, "f32", point) for point in points)
    for variant in variants:
        assert isinstance(texts.kernel(operator, platform, variant), KernelText)
    part = OperatorPart(operator, [Winners("f32", variants, (Tree(tree),))], {}, texts=texts)
    return publish.publish(publish.stage(making.product(platform, [part]), folder), folder)


@pytest.fixture(scope="module")
def conv1d(tmp_path_factory: pytest.TempPathFactory) -> Path:
    operator = operators.load("conv1d", (EXAMPLE,))
    folder = tmp_path_factory.mktemp("generated") / "out"
    tree = Split("b", 1, Leaf(0), Leaf(1))
    return made(operator, folder, tree, {"wide": 1, "block": 64}, {"wide": 2, "block": 256})


class Loaded:
    """A library by the declarations of its own header."""

    def __init__(self, folder: Path, name: str) -> None:
        text = (folder / f"include/tensorop/{name}.h").read_text()
        body = text.split("push(default)")[1].split("#pragma")[0]
        self.ffi, self.name = cffi.FFI(), name
        self.ffi.cdef(re.sub(r"(?m)^#.*$", "", body) + "void tensorop_set_num_threads(int);")
        self.lib: Any = self.ffi.dlopen(str(folder / f"lib/libtensorop_{name}.so"))

    def call(self, **members: float) -> Any:
        return self.ffi.new(f"struct tensorop_{self.name} *", members)

    def message(self, status: int) -> str:
        return self.ffi.string(getattr(self.lib, f"tensorop_{self.name}_message")(status)).decode()

    def at(self, array: np.ndarray | None, kind: str = "float *") -> Any:
        return self.ffi.NULL if array is None else self.ffi.cast(kind, array.ctypes.data)


REFUSED = [
    ({"b": 0}, "B", "b must be from 1 to 2147483647"),
    ({"h": -1}, "H", "h must be from 1 to 2147483647"),
    ({"p": -1}, "P", "p must be from 0 to 2147483647"),
    ({"p": 1 << 62}, "P", "p must be from 0 to 2147483647"),
    ({"relu": 2}, "RELU", "relu must be 0 or 1"),
    ({"u": 0}, "RULE_1", "the stride u is 1 or more"),
    ({"h": 2, "t": 9, "p": 1}, "RULE_3", "the t taps are no longer than x with its zeros"),
    ({"p": 3}, "RULE_4", "every output sees some of x"),
]


@pytest.mark.parametrize(("wrong", "name", "sentence"), REFUSED)
def test_a_call_that_breaks_a_rule_writes_nothing(
    conv1d: Path, wrong: dict[str, int], name: str, sentence: str
) -> None:
    library = Loaded(conv1d, "conv1d")
    x, w, y = np.ones(99, np.float32), np.ones(99, np.float32), np.full(99, 7, np.float32)
    given = (library.call(**{**LEGAL, **wrong}), library.at(x), library.at(w), library.at(y))
    status = library.lib.tensorop_conv1d_f32(*given, library.ffi.NULL, 0)
    assert status == getattr(library.lib, f"TENSOROP_CONV1D_{name}")
    assert library.lib.tensorop_conv1d_check(given[0]) == status
    assert library.lib.tensorop_conv1d_f32_variant(*given, 0) == status
    assert library.message(status) == sentence
    assert (y == 7).all()
    sizes = {**LEGAL, **wrong}
    if min(sizes["b"], sizes["h"]) < 1:
        return  # no array has these sides
    x, w = np.ones((sizes["b"], sizes["c"], sizes["h"]), np.float32), np.ones((sizes["c"], sizes["t"]), np.float32)
    with pytest.raises(ValueError, match=re.escape(sentence)):
        tensorop.load(conv1d, EXAMPLE).conv1d(x, w, u=sizes["u"], p=sizes["p"], relu=sizes["relu"])


def test_null_and_sizes_beyond_memory(conv1d: Path) -> None:
    library = Loaded(conv1d, "conv1d")
    arrays = [np.ones(99, np.float32) for _ in range(3)]
    null, too_large = -3, -4
    for absent in range(3):
        at = [library.at(None if number == absent else one) for number, one in enumerate(arrays)]
        assert library.lib.tensorop_conv1d_f32(library.call(**LEGAL), *at, library.ffi.NULL, 0) == null
    at = [library.at(one) for one in arrays]
    assert library.lib.tensorop_conv1d_f32(library.ffi.NULL, *at, library.ffi.NULL, 0) == null
    assert "NULL" in library.message(null)
    assert (arrays[2] == 1).all()
    huge = library.call(**{**LEGAL, **dict.fromkeys("bch", (1 << 31) - 1)})
    assert library.lib.tensorop_conv1d_check(huge) == too_large
    assert library.message(too_large) == "an operand would be larger than memory can be"


def test_a_workspace_is_used_within_its_bounds(conv1d: Path) -> None:
    library = Loaded(conv1d, "conv1d")
    rng = np.random.default_rng(0)
    call, bytes_ = library.call(**LEGAL), library.ffi.new("size_t *")
    x, w = rng.standard_normal(2 * 3 * 8).astype(np.float32), rng.standard_normal(9).astype(np.float32)
    want, y = np.zeros(OUTPUTS, np.float32), np.full(OUTPUTS, 7, np.float32)
    given = call, library.at(x), library.at(w)
    assert library.lib.tensorop_conv1d_f32(*given, library.at(want), library.ffi.NULL, 0) == 0
    assert library.lib.tensorop_conv1d_f32_workspace(call, bytes_) == 0
    size = bytes_[0]
    for start in (0, 1, 64, 255):
        room = np.full(size + 512, 9, np.uint8)
        at = library.ffi.cast("char *", room.ctypes.data) + start
        assert library.lib.tensorop_conv1d_f32(*given, library.at(y), at, size) == 0
        assert np.array_equal(y, want)
        assert (room[:start] == 9).all()
        assert (room[start + size :] == 9).all()
        y[:] = 7
        status = library.lib.tensorop_conv1d_f32(*given, library.at(y), at, 8)
        assert status == library.lib.TENSOROP_CONV1D_WORKSPACE
        assert (y == 7).all()
    for variant in (-2, 2):
        status = library.lib.tensorop_conv1d_f32_variant(*given, library.at(y), variant)
        assert status == library.lib.TENSOROP_CONV1D_VARIANT
    assert (y == 7).all()


@pytest.mark.parametrize("batch", [1, 2, 5, 8])
def test_threads_divide_a_call(conv1d: Path, batch: int) -> None:
    library = tensorop.load(conv1d, EXAMPLE)
    rng = np.random.default_rng(batch)
    x, w = rng.standard_normal((batch, 16, 9001)).astype("f4"), rng.standard_normal((16, 9)).astype("f4")
    windows = np.lib.stride_tricks.sliding_window_view(np.pad(x, ((0, 0), (0, 0), (4, 4))), 9, axis=2)
    want = np.maximum(np.einsum("bcit,ct->bci", windows, w), 0)
    for threads in (1, 2, 3, 16):
        library.threads = threads
        np.testing.assert_allclose(library.conv1d(x, w, p=4, relu=True), want, rtol=1e-4, atol=1e-4)


def test_the_choice_for_a_thread_is_explained(conv1d: Path) -> None:
    found = opened.open_product(conv1d, (EXAMPLE,))
    sizes = {"b": 5, "c": 16, "h": 9001, "t": 9, "u": 1, "p": 4}
    problem = found.operator.reference.problem("f32", sizes, found.operator.layouts[0])
    for threads, blocks, batch in ((1, 1, 5), (2, 2, 3), (4, 3, 2), (16, 5, 1)):
        answer = explain.explain(found, problem, threads=threads)
        assert (answer.blocks, answer.features["b"], answer.variant) == (blocks, batch, int(batch > 1))
    small = problems.of(found.operator, "f32", (5, 1, 9, 3, 1, 0))
    assert explain.explain(found, small, threads=4).blocks == 1


ROWS = {
    "operator.yaml": """\
schema: 1
name: rows
description: y = scale * x + y of m rows
dims: [m, n]
operands:
  x: {role: in, shape: [m, n], leading: true}
  y: {role: inout, shape: [m, n], leading: true}
  bias: {role: in, shape: [n * bias]}
parameters: {scale: 1 / sqrt(n)}
flags: {mode: {plain: 3, negated: 5}, bias: 0}
threads: {dim: m, work: m * n * 4096}
dtypes: [f32]
rules:
  - {must: "n % 2 == 0 and (n < 4096 or n in (5000, 6000))", reason: "n is even, below 4096 or one of two"}
layouts: [{mode: plain}]
micro: {m: 1, n: 64}
micro_layout: {mode: plain}
defaults: {}
blocking: {tunables: {}}
suites: {usual: [[4, 64]]}
""",
    "reference.py": """\
import numpy as np
from tensorop.model.contract import Contract


class Rows(Contract):
    CONTROL_TILE = {"n": 1}
    CONTROL_SHAPE = (2, 4)

    def work(self, problem):
        return 2.0 * problem.sizes["m"] * problem.sizes["n"]

    def expected(self, problem, given):
        raise NotImplementedError

    def tile(self, point, lanes, reads):
        return {"n": 1}

    def quick_grid(self, dtype, tile, rng):
        return []
""",
    "kernel.c.j2": """\
{% if not is_edge %}
static void {{ ident }}_kernel(size_t n, {{ element }} scale, const {{ element }} *restrict x,
                               {{ element }} *restrict y)
{
    /*@ reads(x, n, 1); writes(y, n, 1); */
{% include "template" %}
}
{% endif %}
""",
    "kernels/plain.c.j2": """\
---
strategy: a loop
needs: []
tunables: {unroll: [1]}
---
    for (size_t i = 0; i < n; ++i)
        y[i] = scale * x[i] + y[i];
""",
    "driver.c.j2": """\
typedef void {{ prefix }}_kernel(size_t n, {{ element }} scale, const {{ element }} *x, {{ element }} *y);

static void {{ prefix }}_run({{ prefix }}_kernel *kernel, const struct tensorop_rows *s, const float *x, float *y,
                             const float *bias)
{
    for (int64_t i = 0; i < s->m; ++i) {
        kernel((size_t)s->n, (float)(s->mode == 5 ? -s->scale : s->scale), x + i * s->ld_x, y + i * s->ld_y);
        for (int64_t j = 0; s->bias && j < s->n; ++j)
            y[i * s->ld_y + j] += bias[j];
    }
}
""",
}


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("rows")
    for name, text in ROWS.items():
        path = folder / "own/templates/rows" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    made(operators.load("rows", (folder / "own",)), folder / "out", Leaf(0), {"unroll": 1})
    return folder


def test_leading_dimensions_words_and_optional_operands_from_c(rows: Path) -> None:
    library = Loaded(rows / "out", "rows")
    legal = {"m": 3, "n": 4, "ld_x": 6, "ld_y": 5, "mode": library.lib.TENSOROP_ROWS_MODE_NEGATED, "scale": 2}
    x, y = np.arange(16, dtype=np.float32), np.ones(14, np.float32)
    given = library.at(x), library.at(y), library.ffi.NULL
    for wrong, status in (
        ({"scale": 1e39}, "SCALE"), ({"scale": -1e300}, "SCALE"),
        ({"ld_x": 3}, "LD_X"), ({"ld_y": 0}, "LD_Y"), ({"ld_y": 1 << 31}, "LD_Y"), ({"mode": 0}, "MODE"),
        ({"n": 3}, "RULE_1"), ({"n": 4098, "ld_x": 9000, "ld_y": 9000}, "RULE_1"),
    ):  # fmt: skip
        found = library.lib.tensorop_rows_f32(library.call(**{**legal, **wrong}), *given)
        assert found == getattr(library.lib, f"TENSOROP_ROWS_{status}")
    sentences = [library.message(getattr(library.lib, f"TENSOROP_ROWS_{name}")) for name in ("LD_X", "MODE")]
    assert sentences[0] == "ld_x must be at least the length of a line of x, and below 2147483648"
    assert sentences[1] == "mode must be 3 (plain) or 5 (negated)"
    assert library.lib.tensorop_rows_check(library.call(**{**legal, "n": 5000, "ld_x": 5000, "ld_y": 5000})) == 0
    assert library.lib.tensorop_rows_f32(library.call(**{**legal, "bias": 1}), *given) == -3
    assert (y == 1).all()
    assert library.lib.tensorop_rows_f32(library.call(**legal), *given) == 0
    want = np.ones(14, np.float32)
    for i in range(3):
        want[5 * i : 5 * i + 4] -= 2 * x[6 * i : 6 * i + 4]
    assert np.array_equal(y, want)


PLAIN = """\
#include "dispatch.h"

void tensorop_rows_plain_f32(const struct tensorop_rows *s, const float *x, float *y, const float *bias)
{
    (void)bias;
    for (int64_t i = 0; i < s->m * s->n; ++i)
        y[i] += (float)s->scale * x[i];
}
"""


@pytest.mark.parametrize("plain", [False, True])
def test_plain_c_serves_a_cpu_without_the_instructions(rows: Path, tmp_path: Path, plain: bool) -> None:
    """The entries say that they need an instruction set that no CPU has."""
    shutil.copytree(rows / "own", tmp_path / "own")
    folder = tmp_path / "own/templates/rows/product"
    folder.mkdir()
    text = (paths.native_dir() / "product/kernel_text.c.j2").read_text()
    (folder / "kernel_text.c.j2").write_text(text.replace('"TENSOROP_ISA_HERE"', '"{ 1ull << 63, 0 }"'))
    if plain:
        (folder / "product.yaml").write_text("schema: 1\ndtype: [dispatch.c, plain.c]\n")
        (folder / "plain.c.j2").write_text(PLAIN)
    library = Loaded(
        made(operators.load("rows", (tmp_path / "own",)), tmp_path / "out", Leaf(0), {"unroll": 1}), "rows"
    )
    call = library.call(m=3, n=4, ld_x=4, ld_y=4, mode=3, scale=2)
    x, y, unsupported = np.arange(12, dtype=np.float32), np.ones(12, np.float32), -1
    given = call, library.at(x), library.at(y), library.ffi.NULL
    assert library.lib.tensorop_rows_f32(*given) == (0 if plain else unsupported)
    assert library.lib.tensorop_rows_f32_variant(*given, 0) == unsupported
    assert np.array_equal(y, 1 + 2 * x if plain else np.ones(12))


def test_leading_dimensions_words_and_optional_operands_from_python(rows: Path) -> None:
    library = tensorop.load(rows / "out", rows / "own")
    rng = np.random.default_rng(0)
    x, bias = rng.standard_normal((300, 16)).astype("f4"), rng.standard_normal(16).astype("f4")
    for threads in (1, 3):
        library.threads = threads
        y = np.zeros_like(x)
        assert library.rows(x, y) is y
        np.testing.assert_allclose(y, x / 4, rtol=1e-6)
        library.rows(x, y, bias=bias, mode="negated", scale=0.25)
        np.testing.assert_allclose(y, np.broadcast_to(bias, y.shape), atol=1e-6)
    beside = np.stack([x, x])
    assert np.array_equal(library.rows(*beside, scale=np.inf), x + np.inf * x, equal_nan=True)
    before = y.copy()
    for given, error, told in (
        ({"mode": "other"}, ValueError, "mode is 'other': it must be 'plain' or 'negated'"),
        ({"mode": 4}, ValueError, "mode must be 3 (plain) or 5 (negated) (m = 300, n = 16, mode = 4, bias = 0)"),
        ({"bias": bias[1:]}, ValueError, "bias has the shape (16,); got (15,)"),
        ({"bias": 1}, TypeError, "no dtype of this library (f32) has these number formats"),
        ({"scale": "2"}, ValueError, "scale is '2': it must be a real number"),
        ({"scale": True}, ValueError, "scale is True: it must be a real number"),
        ({"scale": 1e39}, ValueError, "scale must be at most FLT_MAX in size, since it is computed with in float ("),
        ({"y": y.astype("f8")}, TypeError, "y float64"),
        ({"y": y[:, ::-1]}, ValueError, "y must be an aligned, C-contiguous array of float32 and shape (300, 16); got"),
        ({"y": y[1:]}, ValueError, "x and y differ in m: 300 and 299"),
        ({"y": x}, ValueError, "y overlaps x: give an array with memory of its own"),
        ({"x": x[0]}, ValueError, "x has the sides m, n; got an array of shape (16,)"),
        ({"x": None}, ValueError, "x has the sides m, n; got None"),
        ({"x": x[:, 1:], "y": y[:, 1:].copy()}, ValueError, "n is even, below 4096 or one of two"),
    ):
        with pytest.raises(error, match=re.escape(told)):
            library.rows(**{"x": x, "y": y, **given})
    assert np.array_equal(y, before)
    assert "Returns y." in library.rows.__doc__


def test_its_candidate_and_adapter_compile(rows: Path) -> None:
    operator, platform = operators.load("rows", (rows / "own",)), platforms.load("generic")
    adapting.program(platform, operator)
    (template,) = offline.templates(operator.folder, operator.name)
    variant, texts = instantiate.variant(operator, template, "f32", {"unroll": 1}), Texts()
    text = texts.kernel(operator, platform, variant)
    assert isinstance(text, KernelText)
    source = instantiate.candidate(operator, platform, variant, text)
    assert isinstance(compile_source(source, (*candidate_flags(platform), "-Wall", "-Wextra", "-Werror")), Artifact)


def drawn(rng: random.Random, depth: int) -> str:
    """An expression over a, b and c."""
    if depth == 0 or rng.random() < 0.1:
        return rng.choice(["a", "b", "c", "0", "1", "7", "4611686018427387904"])
    one, two, three = (drawn(rng, depth - 1) for _ in range(3))
    sign = rng.choice(["+", "-", "*", "//", "%", "<", "<=", "==", "!=", ">", ">=", "and", "or"])
    return rng.choice(
        [
            f"({one} {sign} {two})",
            f"({one} {sign} {two})",
            f"({one} {sign} {two})",
            f"min({one}, {two}, {three})",
            f"max({one}, {two})",
            f"(not {one})",
            f"-({one})",
            f"({one} < {two} <= {three})",
            f"({one} in ({two}, 3))",
            f"({one} not in (1, {two}))",
        ]
    )


VALUES = [-9, -2, -1, 0, 1, 2, 3, 8, 2147483647, -(1 << 62), (1 << 63) - 1]


PROGRAM = r"""
#include <stdint.h>
#include <stdio.h>

FUNCTIONS
static const struct values {
    int64_t a, b, c;
} cases[] = {TABLE};

static void shown(int lost, int64_t value) {
    printf("%d %lld\n", lost, (long long)value);
}

static void of(const struct values *v) {
    int lost;
    int64_t value;
LINES}

int main(void) {
    for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++)
        of(cases + i);
    return 0;
}
"""


def test_expressions_in_c_have_the_values_of_python(tmp_path: Path) -> None:
    rng = random.Random(0)
    texts = [text for text in (drawn(rng, 3) for _ in range(250)) if len(text) < 400]
    parsed = [parse(text, dict.fromkeys("abc", int)) for text in texts]
    cases = [[rng.choice(VALUES) for _ in "abc"] for _ in range(40)]
    check = (paths.generated_dir() / "product/check.c.j2").read_text()
    functions = check[check.index("enum { UNDEFINED") : check.index("/* An operand's elements")]
    lines = "".join(f"    lost = 0, value = {one.checked_c('v->')}, shown(lost, value);\n" for one in parsed)
    table = ", ".join("{" + ", ".join(f"{value}ll" for value in case) + "}" for case in cases)
    text = PROGRAM.replace("FUNCTIONS", functions).replace("TABLE", table).replace("LINES", lines)
    (tmp_path / "check.c").write_text(text)
    argv = tool.cc("-O1", "-w", "-fsanitize=undefined", "-fsanitize-trap=undefined", "check.c", "-o", "check")
    subprocess.run(argv, cwd=tmp_path, check=True, timeout=300)
    printed = iter(subprocess.check_output([tmp_path / "check"], text=True).splitlines())
    counted = {0: 0, 1: 0, 2: 0, 3: 0}
    for case in cases:
        for one in parsed:
            lost, value = map(int, next(printed).split())
            try:
                right: int | None = int(one.value(dict(zip("abc", case, strict=True))))
            except ZeroDivisionError:
                right = None
            if not lost:
                assert value == right, (one.text, case)
            elif right is not None:  # an intermediate value has more than 64 bits
                assert lost & 2, (one.text, case)
            counted[lost] += 1
    assert min(counted[0], counted[1], counted[2]) > 50, counted


def test_a_string_has_no_equivalent_in_c() -> None:
    with pytest.raises(SpecError, match="cannot be translated to C"):
        parse("a + ('x' == 'y')", {"a": int}).checked_c("")
