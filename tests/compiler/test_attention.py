"""attention from its wish to its product on this machine: verified, compared, called from Python and from C."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from itertools import pairwise
from itertools import product as every
from pathlib import Path

import numpy as np
import pytest

from tensorop import api
from tensorop.backends import reach
from tensorop.errors import MissingTool
from tensorop.model.verdict import Seed
from tensorop.specs import operators, platforms
from tensorop.verify.controls import ControlRun, controls
from tests.support.commands import ROOT, tensorop

SHAPES = "b1h4g2s40t72d24v40,b1h4g1s1t300d64,b2h2g2s130t130d32"
PAGE = ROOT / "docs" / "how-to" / "use-attention.md"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("job")
    words = ("attention", "--platform", "native", "--dtype", "f32,bf16,f16", "--shapes", SHAPES, "--trials", "4")
    ended = tensorop(*words, "--out", "made", cwd=folder)
    assert ended.status == 0, ended.stderr
    assert re.search(r"calls passed, some of them with 2 and 4 threads; largest error \d+% of .*, median", ended.stderr)
    return folder / "made"


@pytest.mark.covers("command attention")
def test_it_is_compared(made: Path) -> None:
    compared = tensorop("bench", made, "--shapes", SHAPES, "--fast", "--format", "json", cwd=ROOT)
    assert compared.status == 0, compared.stderr
    rows = compared.json()["results"]
    assert [row["shape"] for row in rows if row["dtype"] == "f32"] == SHAPES.split(",")
    assert {row["dtype"] for row in rows} == {"f32", "bf16", "f16"}
    assert all(verdict == "ok" for row in rows for verdict in row["verdict"].values())
    assert compared.json()["baselines"].keys() == {"blocks+openblas"}


def plain(q, k, v, scale, left, right, start):
    """bshd, in float64: output and log-sum-exp."""
    q, k, v = (one.astype(np.float64) for one in (q, k, v))
    s, t = q.shape[1], k.shape[1]
    k, v = (np.repeat(one, q.shape[2] // k.shape[2], axis=2) for one in (k, v))
    scores = scale * np.einsum("bshd,bthd->bhst", q, k)
    own, key = np.arange(s)[:, None] + (0 if start else t - s), np.arange(t)[None, :]
    seen = ((key >= own - left) | (left < 0)) & ((key <= own + right) | (right < 0))
    with np.errstate(divide="ignore", invalid="ignore"):
        p = np.where(
            seen, np.exp(scores - np.max(np.where(seen, scores, -1e9), axis=3, keepdims=True, initial=-1e9)), 0
        )
        total = p.sum(axis=3, keepdims=True)
        lse = np.log(total[..., 0]) + np.max(np.where(seen, scores, -1e9), axis=3, initial=-1e9)
        w = np.where(total > 0, p / np.where(total > 0, total, 1), 0)
    return np.einsum("bhst,bthd->bshd", w, v), np.where(total[..., 0] > 0, lse, -np.inf)


@pytest.mark.parametrize(("left", "right"), [(-1, -1), (-1, 0), (3, 0), (2, 5), (0, 0), (1 << 62, 1 << 62)])
@pytest.mark.parametrize("align", ["end", "start"])
@pytest.mark.parametrize("layout", ["bshd", "bhsd"])
def test_python_calls_it(made: Path, left: int, right: int, align: str, layout: str) -> None:
    attention, rng = api.load(made).attention, np.random.default_rng(0)
    for s, t in ((20, 33), (33, 20), (1, 50), (0, 5), (5, 0)):
        q = rng.standard_normal((2, s, 6, 16), np.float32)
        k, v = (rng.standard_normal((2, t, 3, 16), np.float32) for _ in range(2))
        want, sums = plain(q, k, v, 0.3, left, right, align == "start")
        given = [one.swapaxes(1, 2) for one in (q, k, v)] if layout == "bhsd" else [q, k, v]
        o, lse = attention(*given, window=(left, right), align=align, scale=0.3, layout=layout, lse=True)
        np.testing.assert_allclose(o.swapaxes(1, 2) if layout == "bhsd" else o, want, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(lse, sums, rtol=1e-5, atol=1e-5)


def _half(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return values.astype(np.float16), values.astype(np.float16).astype(np.float32)


def _brain(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    bits = values.view(np.uint32) >> 16
    return bits.astype(np.uint16), (bits << 16).view(np.float32)


@pytest.mark.parametrize(("stored", "unit"), [(_half, 2**-11), (_brain, 2**-8)])
@pytest.mark.parametrize(("s", "t"), [(40, 90), (1, 700), (0, 3)])
def test_numbers_of_16_bits(made: Path, stored, unit: float, s: int, t: int) -> None:
    attention, rng = api.load(made).attention, np.random.default_rng(3)
    shapes = (2, s, 4, 24), (2, t, 2, 24), (2, t, 2, 24)
    given, values = zip(*(stored(rng.standard_normal(shape, np.float32)) for shape in shapes), strict=True)
    o, lse = attention(*given, causal=True, lse=True)
    want, sums = plain(*values, 24**-0.5, -1, 0, False)
    assert o.dtype == given[0].dtype
    found = (o.astype(np.uint32) << 16).view(np.float32) if o.dtype == np.uint16 else o
    np.testing.assert_allclose(found, want, rtol=unit, atol=1e-5)
    assert lse.dtype == np.float32
    np.testing.assert_allclose(lse, sums, rtol=1e-5, atol=1e-5)


def test_views_and_ragged_batches_are_read_where_they_lie(made: Path) -> None:
    attention, rng = api.load(made).attention, np.random.default_rng(1)
    together = rng.standard_normal((2, 40, 3, 4, 16), np.float32)  # q, k, v side by side, as a projection leaves them
    q, k, v = (together[:, :, i] for i in range(3))
    out = np.zeros((2, 40, 4, 32), np.float32)
    assert attention(q, k, v, causal=True, out=out[..., :16]) is not None
    usual = 16**-0.5
    np.testing.assert_allclose(out[..., :16], plain(q, k, v, usual, -1, 0, False)[0], rtol=1e-4, atol=1e-5)
    assert not out[..., 16:].any()
    starts_q, starts_k = [0, 7, 7, 40], [0, 0, 11, 40]
    o, lse = attention(q[0], k[0], v[0], causal=True, starts=(starts_q, starts_k), lse=True)
    for one in range(3):
        of_q, of_k = slice(*starts_q[one : one + 2]), slice(*starts_k[one : one + 2])
        want, sums = plain(q[:1, of_q], k[:1, of_k], v[:1, of_k], usual, -1, 0, False)
        np.testing.assert_allclose(o[of_q], want[0], rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(lse[:, of_q], sums[0], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("dtype", ["float32", "float16", "uint16"])
@pytest.mark.parametrize("layout", ["bshd", "bhsd"])
def test_rows_outside_every_sequence_are_zero_in_new_arrays_alone(made: Path, layout: str, dtype: str) -> None:
    attention, rng = api.load(made).attention, np.random.default_rng(5)
    drawn = (rng.uniform(0, 1, (rows, 4, 16)).astype(np.float32) for rows in (40, 30))
    q, k = (_brain(one)[0] if dtype == "uint16" else one.astype(dtype) for one in drawn)
    by_layout = (lambda one: one) if layout == "bshd" else (lambda one: one.swapaxes(0, 1))
    of_q, of_k = ([3, 9, 33], [40, 40], [0, 40], [7], [0]), ([1, 11, 20], [0, 30], [5, 5], [0], [0])
    for starts_q, starts_k in zip(of_q, of_k, strict=True):
        within = slice(starts_q[0], starts_q[-1])
        outside = np.ones(40, bool)
        outside[within] = False
        given = {"starts": (starts_q, starts_k), "layout": layout, "lse": True}
        hogs = [np.full(q.shape, 77, dtype) for _ in range(8)], [np.full((4, 40), 77, np.float32) for _ in range(8)]
        del hogs  # what the allocator gives next has other numbers in it
        o, lse = attention(*map(by_layout, (q, k, k)), **given)
        assert not by_layout(o)[outside].any()
        assert (lse[:, outside] == -np.inf).all()
        out = np.full(o.shape, 77, dtype)
        kept, again = attention(*map(by_layout, (q, k, k)), **given, out=out)
        assert (by_layout(kept)[outside] == 77).all()
        assert np.array_equal(by_layout(kept)[within], by_layout(o)[within])
        assert np.array_equal(again, lse)


def test_an_output_lies_between_its_operands(made: Path) -> None:
    """As a projection leaves them: elements count, not the memory from first to last."""
    attention, rng = api.load(made).attention, np.random.default_rng(6)
    beside = rng.standard_normal((2, 40, 4, 4, 16), np.float32)
    packed = rng.standard_normal((2, 40, 4 * 64), np.float32)
    rows = rng.standard_normal((2, 40, 4, 64), np.float32)
    for q, k, v, out in (
        tuple(beside[:, :, i] for i in range(4)),
        tuple(packed[..., 64 * i : 64 * (i + 1)].reshape(2, 40, 4, 16) for i in range(4)),
        tuple(rows[..., 16 * i : 16 * (i + 1)] for i in range(4)),
    ):
        before = [one.copy() for one in (q, k, v)]
        want = attention(*before, causal=True)
        for layout, turned in (("bshd", lambda one: one), ("bhsd", lambda one: one.swapaxes(1, 2))):
            attention(*map(turned, (q, k, v)), causal=True, layout=layout, out=turned(out))
            assert np.array_equal(out, want)
        assert all(np.array_equal(one, other) for one, other in zip((q, k, v), before, strict=True))
        for name, operand in zip("qkv", (q, k, v), strict=True):
            with pytest.raises(ValueError, match=f"out overlaps {name}"):
                attention(q, k, v, out=operand)


@pytest.mark.parametrize(("d", "dv"), [(24, 40), (192, 128), (17, 1)])
def test_heads_of_v_have_a_length_of_their_own(made: Path, d: int, dv: int) -> None:
    """Few rows, many rows, keys divided among threads, and a ragged batch."""
    library, rng = api.load(made), np.random.default_rng(dv)
    library.threads = 2
    for b, h, g, s, t in ((2, 4, 2, 70, 90), (1, 4, 4, 3, 40), (1, 8, 2, 1, 3000)):
        q, k, v = (rng.standard_normal(n, np.float32) for n in ((b, s, h, d), (b, t, g, d), (b, t, g, dv)))
        want, sums = plain(q, k, v, d**-0.5, -1, 0, False)
        for turned in (lambda one: one, lambda one: one.swapaxes(1, 2)):
            layout = "bshd" if turned(q).shape == q.shape else "bhsd"
            o, lse = library.attention(*map(turned, (q, k, v)), causal=True, layout=layout, lse=True)
            np.testing.assert_allclose(turned(o), want, rtol=1e-4, atol=1e-5)
            np.testing.assert_allclose(lse, sums, rtol=1e-5, atol=1e-5)
    starts = [0, 20, 70], [0, 50, 90]
    q, k, v = (rng.standard_normal(n, np.float32) for n in ((70, 4, d), (90, 2, d), (90, 2, dv)))
    o = library.attention(q, k, v, starts=starts)
    for (q0, q1), (k0, k1) in zip(*map(pairwise, starts), strict=True):
        want = plain(q[None, q0:q1], k[None, k0:k1], v[None, k0:k1], d**-0.5, -1, -1, False)[0][0]
        np.testing.assert_allclose(o[q0:q1], want, rtol=1e-4, atol=1e-5)
    with pytest.raises(ValueError, match=re.escape("k and v alike but for d; got")):
        library.attention(q, k, v[:-1], starts=starts)


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_threads_give_the_same(made: Path, threads: int) -> None:
    library, rng = api.load(made), np.random.default_rng(2)
    rows_divided = (1, 2, 1, 300, 400), (2, 4, 2, 200, 400), (1, 1, 1, 900, 400)
    keys_divided = (1, 1, 1, 1, 9000), (1, 8, 2, 4, 3000)
    for b, h, g, s, t in (*rows_divided, *keys_divided):
        q = rng.standard_normal((b, s, h, 64), np.float32)
        k, v = (rng.standard_normal((b, t, g, 64), np.float32) for _ in range(2))
        k[:, t // 3] *= 20  # the largest score is in the first of several parts
        library.threads = threads
        for start in (False, True):
            want, sums = plain(q, k, v, 1 / 8, -1, 0, start)
            o, lse = library.attention(q, k, v, causal=True, align="start" if start else "end", lse=True)
            np.testing.assert_allclose(o, want, rtol=1e-4, atol=1e-5)
            np.testing.assert_allclose(lse, sums, rtol=1e-5, atol=1e-5)


def test_without_pytorch_its_package_is_named(made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    attention = api.load(made).attention
    monkeypatch.setattr("sys.path", [])
    with pytest.raises(MissingTool, match="torch is not installed in the Python that runs tensorop"):
        attention.torch()


def test_memory_that_cannot_be_had_costs_time_only(made: Path, tmp_path: Path) -> None:
    """Eight queries of each of 32 heads need more than the 64 KB that are left."""
    script = """
import resource, sys
import numpy as np
import tensorop
library = tensorop.load(sys.argv[1])
library.threads = 1
rng = np.random.default_rng(0)
q, k = rng.standard_normal((1, 8, 32, 64), np.float32), rng.standard_normal((1, 8192, 32, 64), np.float32)
want, got = np.empty_like(q), np.empty_like(q)
library.attention(q[:, :, :1], k[:, :9, :1], k[:, :9, :1])  # all of Python's own memory
used = int(open("/proc/self/statm").read().split()[0]) * 4096
resource.setrlimit(resource.RLIMIT_AS, (used, -1))
hog = []
try:
    while True:
        hog.append(bytearray(1 << 16))
except MemoryError:
    pass
library.attention(q, k, k, out=got)
del hog
resource.setrlimit(resource.RLIMIT_AS, (-1, -1))
library.attention(q, k, k, out=want)
np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-6)
print(not np.array_equal(got, want))  # plain C served
"""
    words = [sys.executable, "-c", script, str(made)]
    done = subprocess.run(
        words, capture_output=True, text=True, timeout=120, env={**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    )
    assert (done.returncode, done.stdout) == (0, "True\n"), done.stderr


def test_python_refuses_what_cannot_be(made: Path) -> None:
    attention = api.load(made).attention
    q, k = np.zeros((1, 4, 6, 8), np.float32), np.zeros((1, 5, 3, 8), np.float32)
    for more, sentence in (
        ({"layout": "sbhd"}, "layout is 'bshd' or 'bhsd'"),
        ({"align": "middle"}, "align is 'end' or 'start'"),
        ({"causal": 2}, "causal is 2: it must be True or False"),
        ({"window": 3}, "window is two integers"),
        ({"window": (-2, 0)}, "left and right must be -1 or more"),
        ({"scale": np.inf}, "scale must be finite"),
        ({"scale": 1e300}, "scale is 1e+300: it must be at most 3.40282e+38"),
        ({"scale": "0.5"}, "scale is '0.5': it must be a real number"),
        ({"scale": True}, "scale is True: it must be a real number"),
        ({"lse": "no"}, "lse is 'no': it must be True or False"),
        ({"window": (True, 0)}, "window is two integers"),
        (
            {"out": np.zeros((1, 4, 6, 9), np.float32)},
            "out must be an aligned array, its last axis contiguous, of float32 and shape",
        ),
        ({"out": np.broadcast_to(np.zeros((1, 1, 1, 8), np.float32), q.shape)}, "out is read-only"),
        ({"out": q}, "out overlaps q: give an array with memory of its own"),
        ({"starts": ([0, 4], [0, 5])}, "q, k and v have 3 dimensions each"),
    ):
        with pytest.raises(ValueError, match=re.escape(sentence)):
            attention(q, k, k, **more)
    for given, sentence in (
        (
            (q, k[:, :, :2][:, :, [0, 1, 0, 1]], k[:, :, :2][:, :, [0, 1, 0, 1]]),
            "key_heads must be 1 or more and divide",
        ),
        ((q, k[..., :4], k[..., :4]), "q and k differ in batch or d"),
        (
            (np.zeros((1, 4, 6, 600), np.float32),) + (np.zeros((1, 5, 3, 600), np.float32),) * 2,
            "dim and v_dim 1 to 512",
        ),
    ):
        with pytest.raises(ValueError, match=sentence):
            attention(*given)
    narrowed = (([0, 4], [-(1 << 32), 5]), ([0, 4], [1 << 32, 5]), ([0.0, 4.0], [0, 5]), ([False, True], [0, 5]))
    for starts in (([0, 3, 2], [0, 1, 2]), ([0, 9], [0, 5]), ([0, 4], [-1, 5]), *narrowed):
        with pytest.raises(ValueError, match=r"starts must ascend|starts are of|starts are one-dimensional integers"):
            attention(q[0], k[0], k[0], starts=starts)
    with pytest.raises(TypeError, match="q is float64"):
        attention(q.astype(np.float64), k, k)
    shared = np.lib.stride_tricks.as_strided(np.zeros(100, np.float32), q.shape, (0, 16, 32, 4))
    with pytest.raises(ValueError, match=r"rows of O must not overlap"):
        attention(q, k, k, out=shared)


FAULTS = {  # fields of the description -> status
    ".batch = -1": 1,
    ".dim = 0": 1,
    ".key_heads = 3": 2,
    ".key_heads = 0": 2,
    ".q_row = -1": 3,
    ".o_row = 1": 3,
    ".o_head = 0": 3,
    ".align = 4": 4,
    ".align = 3, .v_dim = 0": 1,
    ".align = 3, .v_dim = 513": 1,
    ".v_dim = -1, .queries = 0": 0,  # as a caller leaves it that knows a shorter record
    ".left = -2": 5,
    ".starts_q = good": 6,
    ".starts_q = bad, .starts_k = good": 6,
    ".queries = 1ll << 40": -4,
    ".q_row = 1ll << 61": -4,
    ".scale = 1.0 / 0.0": 9,
    ".scale = -1e300": 9,
    ".batch = 1ll << 60, .queries = 0": 0,  # nothing to do, at once
    ".batch = 1ll << 60, .heads = 0": 0,
    ".left = INT64_MAX, .right = INT64_MAX, .queries = 0": 0,  # windows of any width
}
PROGRAM = """
#include <stdio.h>
#include <string.h>
#include <tensorop/attention.h>
static const int32_t good[] = {0, 2}, bad[] = {2, 0};
static float q[64], k[64], v[64], o[64];
int main(void) {
    (void)good, (void)bad;
    struct tensorop_attention z = {.batch = 1, .heads = 2, .key_heads = 2, .queries = 2, .keys = 3, .dim = 4,
        .q_row = 8, .q_head = 4, .k_row = 8, .k_head = 4, .v_row = 8, .v_head = 4, .o_row = 8, .o_head = 4,
        .scale = 1, .left = -1, .right = -1};
    size_t bytes;
    char room[64];
    memset(o, 7, sizeof o);
    const struct tensorop_attention whole = z;
    printf("%d", tensorop_sattention(&whole, NULL, k, v, o, NULL, NULL, 0));
    printf(" %d", tensorop_sattention(&whole, q, k, NULL, o, NULL, NULL, 0));
    printf(" %d", tensorop_sattention(NULL, q, k, v, o, NULL, NULL, 0));
    printf(" %d", tensorop_sattention_workspace(&whole, NULL));
    printf(" %d", tensorop_sattention_workspace(&whole, &bytes));
    printf(" %d\\n", tensorop_sattention(&whole, q, k, v, o, NULL, room, bytes - 1));
    CASES
    for (size_t i = 0; i < sizeof o; ++i)
        if (((const char *)o)[i] != 7)
            return 1;
    return 0;
}
"""


def compiled(source: str, made: Path, folder: Path) -> str:
    (folder / "example.c").write_text(source)
    lib = made / "lib"
    words = ["cc", "-Werror", "example.c", "-o", "example", f"-I{made / 'include'}", f"-L{lib}", "-ltensorop_attention"]
    subprocess.run(words, cwd=folder, check=True, timeout=120)
    done = subprocess.run(
        ["./example"],
        cwd=folder,
        env={"LD_LIBRARY_PATH": str(lib)},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    return done.stdout


def test_c_gives_a_status_and_writes_nothing(made: Path, tmp_path: Path) -> None:
    fields = [one.split(", ") for one in FAULTS]
    cases = "".join(
        f"{{ z = whole; {' '.join(f'z{field};' for field in one)} "
        'printf("%d\\n", tensorop_sattention(&z, q, k, v, o, NULL, NULL, 0)); }\n'
        for one in fields
    )
    first, *others = compiled(PROGRAM.replace("CASES", cases), made, tmp_path).splitlines()
    assert first.split() == ["-3", "-3", "-3", "-3", "0", "7"]
    assert dict(zip(FAULTS, map(int, others), strict=True)) == FAULTS


def test_the_page_s_examples_run(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = PAGE.read_text()
    source, python = (re.search(rf"```{kind}\n(.*?)```", text, re.DOTALL)[1] for kind in ("c", "python"))
    assert compiled(source, made, tmp_path) == "done: 2 3 5\n"
    assert "done: 2 3 5" in text
    (tmp_path / "build").mkdir()
    (tmp_path / "build" / "attention-native").symlink_to(made)
    monkeypatch.chdir(tmp_path)
    exec(compile(python, str(PAGE), "exec"), {})


def test_the_oracle_is_that_of_the_definition() -> None:
    """On small integers, against sums over keys in plain Python."""
    contract = operators.load("attention").reference
    masks = ({}, {"right": 0}, {"left": 1, "right": 0, "align": "start"}, {"left": 0, "right": 2})
    for mask, (s, t) in every(masks, ((3, 5), (5, 3), (0, 2), (2, 0))):
        sizes = {"b": 2, "h": 4, "g": 2, "s": s, "t": t, "d": 3}
        problem = contract.problem("f32", sizes, {"layout": "bshd", "lse": 1, **mask})
        call = contract.call(problem, np.random.default_rng(0))
        q, k, v = (buffer.data.reshape(2, -1, heads, 3) for buffer, heads in zip(call.buffers, (4, 2, 2), strict=False))
        found = contract.expected(problem, call)
        left, right = mask.get("left", -1), mask.get("right", -1)
        want = plain(q, k, v, call.scalars[0], left, right, "align" in mask)
        for name, of in zip(("o", "lse"), want, strict=True):
            np.testing.assert_allclose(found[name][0].ravel(), of.ravel(), rtol=1e-12, atol=1e-12)


@pytest.mark.covers("control attention/*", "dtype attention/*")
def test_the_controls_fail_on_every_seed() -> None:
    operator, platform = operators.load("attention"), platforms.load("native")
    for seed, dtype in enumerate(("f32", "f32", "f32", "bf16", "f16")):
        run = ControlRun(operator, platform, reach(platform).runner, Seed.draw(seed))
        for control in controls(operator):
            run.require_expected(control, run.judge(control, dtype))
