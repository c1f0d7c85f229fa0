"""conv2d from its wish to its product on this machine: verified, compared, called from Python and from C."""

from __future__ import annotations

import json
import re
import subprocess
from itertools import product as every
from pathlib import Path

import numpy as np
import pytest

from tensorop import api
from tensorop.model.bench import geomean
from tensorop.toolchain import shared_library
from tests.support import products
from tests.support.commands import ROOT, tensorop

SHAPES = "n1c8h14w14k16r3s3p1,n1c16h9w9k8r1s1,n1c8h12w12k8r3s3p1g8"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("job")
    words = ("conv2d", "--platform", "native", "--shapes", SHAPES, "--dtype", "f32,f64", "--trials", "4")
    ended = tensorop(*words, "--out", "made", cwd=folder)
    assert ended.status == 0, ended.stderr
    assert "calls passed" in ended.stderr
    return folder / "made"


def test_threads_that_nobody_tried_are_not_called_right(made: Path) -> None:
    """A call uses the caller's thread alone, so that the operator has no case for several."""
    for words in ((), ("--format", "json")):
        judged = tensorop("verify", made, "--dtype", "f32", "--no-controls", *words, cwd=ROOT)
        assert judged.status == 0, judged.stderr
        assert " 0 cases" not in judged.stdout
        if words:
            assert [one["threads"] for one in json.loads(judged.stdout)["verdicts"]] == [1]
        else:
            assert "multi-threaded calls were not verified: conv2d has no test case for them" in judged.stdout
    told = json.loads((made / "share/tensorop/manifest.json").read_text())["results"]["verification"]
    assert {one["threads"] for one in told} == {1}


def test_it_is_compared(made: Path) -> None:
    words = ("bench", made, "--shapes", SHAPES, "--fast", "--dtype", "f32", "--format", "json")
    compared = tensorop(*words, "--against", "im2col+openblas,direct", cwd=ROOT)
    assert compared.status == 0, compared.stderr
    rows = compared.json()["results"]
    assert [row["shape"] for row in rows] == SHAPES.split(",")
    assert all(verdict == "ok" for row in rows for verdict in row["verdict"].values())
    assert compared.json()["baselines"].keys() == {"im2col+openblas", "direct"}
    assert all(row["called"]["best"] in ("im2col+openblas", "direct") for row in rows)
    assert all(row["interval"]["best"][0] <= row["ratio"]["best"] <= row["interval"]["best"][1] for row in rows)
    assert compared.json()["geomean"]["best"] == pytest.approx(geomean(row["ratio"]["best"] for row in rows))


def plain(x, w, bias, stride, zeros, dilation, groups, relu):
    """nchw, in float64."""
    (top, bottom, left, right), (u, v), (d, e) = zeros, stride, dilation
    wide = np.pad(x.astype(np.float64), ((0, 0), (0, 0), (top, bottom), (left, right)))
    (k, of, r, s), n = w.shape, x.shape[0]
    high = (wide.shape[2] - d * (r - 1) - 1) // u + 1
    across = (wide.shape[3] - e * (s - 1) - 1) // v + 1
    y = np.zeros((n, k, high, across))
    for i, j in every(range(r), range(s)):
        seen = wide[:, :, i * d : i * d + (high - 1) * u + 1 : u, j * e : j * e + (across - 1) * v + 1 : v]
        seen = seen.reshape(n, groups, of, high, across)
        taps = w[:, :, i, j].reshape(groups, k // groups, of)
        y += np.einsum("ngchw,gkc->ngkhw", seen, taps).reshape(y.shape)
    y = y if bias is None else y + bias[:, None, None]
    return np.maximum(y, 0) if relu else y


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("layout", ["nchw", "nhwc"])
@pytest.mark.parametrize(
    ("stride", "zeros", "dilation", "groups"),
    [
        ((1, 1), (0, 0, 0, 0), (1, 1), 1),
        ((2, 1), (1, 0, 2, 1), (1, 1), 2),
        ((1, 3), (1, 1, 1, 1), (2, 2), 1),
        ((1, 1), (1, 1, 1, 1), (1, 1), 6),
    ],
)
def test_python_calls_it(made: Path, dtype: str, layout: str, stride, zeros, dilation, groups: int) -> None:
    library, rng = api.load(made), np.random.default_rng(0)
    x = rng.standard_normal((2, 6, 11, 13)).astype(dtype)
    w = rng.standard_normal((12, 6 // groups, 3, 3)).astype(dtype)
    bias = rng.standard_normal(12).astype(dtype)
    if groups == 6:
        w, bias = w[:6], bias[:6]
    more = {"stride": stride, "padding": zeros, "dilation": dilation, "groups": groups, "layout": layout}
    for given, relu in ((None, False), (bias, True)):
        want = plain(x, w, given, stride, zeros, dilation, groups, relu)
        if layout == "nhwc":
            got = library.conv2d(x.transpose(0, 2, 3, 1), w.transpose(0, 2, 3, 1), given, relu=relu, **more)
            got = got.transpose(0, 3, 1, 2)
        else:
            got = library.conv2d(x, w, given, relu=relu, **more)
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=2e-5)


def test_python_refuses_what_cannot_be(made: Path) -> None:
    conv2d = api.load(made).conv2d
    x, w = np.zeros((1, 4, 5, 5), np.float32), np.zeros((4, 4, 3, 3), np.float32)
    with pytest.raises(ValueError, match="the filter is larger than the input"):
        conv2d(x[:, :, :2], w)
    with pytest.raises(ValueError, match="strides must be 1 or more"):
        conv2d(x, w, stride=0)
    with pytest.raises(ValueError, match="groups must be 1 or more and divide"):
        conv2d(x, w[:3, :2], groups=2)
    with pytest.raises(ValueError, match="n, c, h, w, k, r and s must be 1 or more"):
        conv2d(x[:0], w)
    with pytest.raises(ValueError, match="paddings must be 0 or more"):
        conv2d(x, w, padding=-1)
    with pytest.raises(TypeError, match="x is float16"):
        conv2d(x.astype(np.float16), w)
    with pytest.raises(ValueError, match="4 channels, w 3 in each of 1 groups"):
        conv2d(x, w[:, :3])
    with pytest.raises(TypeError, match="w float32, bias float64"):
        conv2d(x, w, np.zeros(4))
    for wish in (
        {"stride": 1.5}, {"stride": 2.0}, {"stride": (1.5, 2)}, {"stride": True}, {"stride": "2"}, {"stride": {1, 2}},
        {"stride": np.float64(2)}, {"stride": ((1, 2), 1)}, {"padding": (0.5, 1)}, {"padding": None}, {"padding": b"1"},
        {"dilation": None}, {"dilation": 1j}, {"groups": 1.0}, {"groups": np.array([1, 1])},
    ):  # fmt: skip
        with pytest.raises(ValueError, match=f"{next(iter(wish))} is .*: it must be an integer of 64 bits"):
            conv2d(x, w, **wish)
    for wish in ({"stride": 2**63}, {"groups": 2**64}, {"groups": "2"}):
        with pytest.raises(ValueError, match=f"{next(iter(wish))} is .*: it must be an integer of 64 bits"):
            conv2d(x, w, **wish)
    for wish in ((1, 2, 3), (), "SAME", "1", "reflect"):
        with pytest.raises(ValueError, match=f"padding is a number, .*'same' or 'valid'; got {re.escape(repr(wish))}"):
            conv2d(x, w, padding=wish)
    for layout in ("NCHW", None, 0, np.zeros(2)):
        with pytest.raises(ValueError, match="layout is 'nchw' or 'nhwc', not"):
            conv2d(x, w, layout=layout)
    for relu in ("relu", None, 2, np.zeros(2)):
        with pytest.raises(ValueError, match=r"relu is .*: it must be True or False"):
            conv2d(x, w, relu=relu)
    with pytest.raises(ValueError, match=r"padding is 'same', which needs stride 1; got \(2, 2\)"):
        conv2d(x, w, padding="same", stride=2)


def test_padding_by_its_name(made: Path) -> None:
    """As in PyTorch: `same` keeps the size, of an odd number of zeros the one more is below and on the right."""
    conv2d, rng = api.load(made).conv2d, np.random.default_rng(0)
    x = rng.standard_normal((1, 4, 9, 8)).astype(np.float32)
    for rows, columns, dilation, zeros in (
        (3, 3, 1, (1, 1, 1, 1)), (2, 4, 1, (0, 1, 1, 2)), (1, 1, 1, (0, 0, 0, 0)), (3, 2, (2, 3), (2, 2, 1, 2))
    ):  # fmt: skip
        w = rng.standard_normal((4, 4, rows, columns)).astype(np.float32)
        same = conv2d(x, w, padding="same", dilation=dilation)
        assert same.shape == x.shape
        assert np.array_equal(same, conv2d(x, w, padding=zeros, dilation=dilation))
    assert np.array_equal(conv2d(x, w, padding="valid"), conv2d(x, w))
    several = {"stride": np.array([1, 2]), "padding": [np.int64(1), np.array(1)], "groups": np.uint8(1)}
    assert np.array_equal(conv2d(x, w, **several), conv2d(x, w, stride=(1, 2), padding=1))


def test_an_array_for_the_result_must_be_one_that_can_take_it(made: Path) -> None:
    conv2d = api.load(made).conv2d
    x, w = np.ones((1, 4, 5, 5), np.float32), np.ones((4, 4, 3, 3), np.float32)
    fixed = bytes(4 * 9 * 4)
    for said, out in (
        ("out is read-only", np.frombuffer(fixed, np.float32).reshape(1, 4, 3, 3)),
        ("out must be an aligned", np.zeros(4 * 9 * 4 + 1, np.uint8)[1:].view(np.float32).reshape(1, 4, 3, 3)),
        ("out must be an aligned", np.zeros((1, 4, 3, 3), ">f4")),
        ("out must be an aligned", np.zeros((1, 4, 3, 6), np.float32)[..., ::2]),
    ):
        with pytest.raises(ValueError, match=said):
            conv2d(x, w, out=out)
        assert not out.any()
    with pytest.raises(TypeError, match="out is list"):
        conv2d(x, w, out=[])
    buffer = np.ones(400, np.float32)
    x, w, y = buffer[:100].reshape(1, 4, 5, 5), buffer[100:244].reshape(w.shape), buffer[244:280].reshape(1, 4, 3, 3)
    assert (conv2d(x, w, out=y) == 36).all()
    for name, start in (("x", 99), ("w", 100), ("w", 243)):
        with pytest.raises(ValueError, match=f"out overlaps {name}: give an array with memory of its own"):
            conv2d(x, w, out=buffer[start : start + 36].reshape(1, 4, 3, 3))


def test_numbers_of_another_byte_order_are_the_same_numbers(made: Path) -> None:
    conv2d = api.load(made).conv2d
    rng = np.random.default_rng(3)
    x, w, bias = (rng.standard_normal(s).astype(np.float32) for s in ((1, 4, 5, 5), (4, 4, 3, 3), (4,)))
    swapped = (array.astype(array.dtype.newbyteorder()) for array in (x, w, bias))
    assert np.array_equal(conv2d(*swapped), conv2d(x, w, bias))


def test_only_public_names_are_visible(made: Path) -> None:
    of_dtype = {f"tensorop_{letter}conv2d{part}" for letter in "sd" for part in ("", "_workspace")}
    of_dtype |= {f"tensorop_conv2d_{name}" for name in ("f32_variant", "f64_variant", "message", "output")}
    of_all = {"tensorop_set_num_threads", "tensorop_get_num_threads", "tensorop_card"}
    assert shared_library.facts(made / "lib/libtensorop_conv2d.so").exports == of_dtype | of_all


CALLER = r"""
#include <assert.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tensorop/conv2d.h>

static const struct tensorop_conv2d good = {
    .n = 1, .c = 4, .h = 9, .w = 9, .k = 6, .r = 3, .s = 3, .stride_h = 1, .stride_w = 1, .pad_top = 1, .pad_bottom = 1,
    .pad_left = 1, .pad_right = 1, .dilation_h = 1, .dilation_w = 1, .groups = 2, .layout = TENSOROP_NCHW };
static float x[4 * 81], w[6 * 2 * 9], y[6 * 81], again[6 * 81];

static void refused(struct tensorop_conv2d bad, int status)
{
    for (int i = 0; i < 6 * 81; i++)
        y[i] = 7;
    int got = tensorop_sconv2d(&bad, x, w, NULL, y, NULL, 0);
    if (got != status)
        printf("%d instead of %d: %s\n", got, status, tensorop_conv2d_message(got)), exit(1);
    assert(strlen(tensorop_conv2d_message(status)) > 9);
    for (int i = 0; i < 6 * 81; i++)
        assert(y[i] == 7);
    assert(tensorop_sconv2d(&bad, NULL, NULL, NULL, NULL, NULL, 0) == status);
}
#define BAD(member, value, status) \
    do { struct tensorop_conv2d z = good; z.member = value; refused(z, status); } while (0)

int main(void)
{
    for (int i = 0; i < 4 * 81; i++) x[i] = (float)(i % 7) - 3;
    for (int i = 0; i < 108; i++) w[i] = (float)(i % 5) - 2;
    BAD(n, 0, TENSOROP_CONV2D_SIZE);
    BAD(c, -4, TENSOROP_CONV2D_SIZE);
    BAD(k, 0, TENSOROP_CONV2D_SIZE);
    BAD(s, INT64_MIN, TENSOROP_CONV2D_SIZE);
    BAD(stride_w, 0, TENSOROP_CONV2D_STRIDE);
    BAD(pad_left, -1, TENSOROP_CONV2D_PADDING);
    BAD(dilation_h, 0, TENSOROP_CONV2D_DILATION);
    BAD(groups, 0, TENSOROP_CONV2D_GROUPS);
    BAD(groups, 4, TENSOROP_CONV2D_GROUPS);
    BAD(r, 12, TENSOROP_CONV2D_FILTER);
    BAD(dilation_w, 6, TENSOROP_CONV2D_FILTER);
    BAD(layout, 2, TENSOROP_CONV2D_LAYOUT);
    BAD(h, INT64_MAX, TENSOROP_TOO_LARGE);
    BAD(pad_top, INT64_MAX, TENSOROP_TOO_LARGE);
    struct tensorop_conv2d large = good;
    large.n = large.h = large.w = 1 << 30;
    refused(large, TENSOROP_TOO_LARGE);
    large = good;
    large.pad_top = large.pad_left = large.pad_bottom = large.pad_right = 1 << 30;
    large.n = 1 << 10;
    refused(large, TENSOROP_TOO_LARGE);
    assert(tensorop_sconv2d(NULL, x, w, NULL, y, NULL, 0) == TENSOROP_NULL);
    assert(tensorop_sconv2d(&good, x, NULL, NULL, y, NULL, 0) == TENSOROP_NULL);
    assert(tensorop_conv2d_f32_variant(&good, x, w, NULL, y, 999) == TENSOROP_CONV2D_VARIANT);
    int64_t high, wide;
    size_t bytes;
    assert(tensorop_conv2d_output(&good, &high, &wide) == 0 && high == 9 && wide == 9);
    assert(tensorop_sconv2d_workspace(&good, NULL) == TENSOROP_NULL);
    assert(tensorop_sconv2d_workspace(&good, &bytes) == 0 && bytes > 0);
    char *room = malloc(bytes + 1);
    assert(tensorop_sconv2d(&good, x, w, NULL, y, room, bytes - 1) == TENSOROP_CONV2D_WORKSPACE);
    assert(tensorop_sconv2d(&good, x, w, NULL, y, NULL, 0) == 0);
    assert(tensorop_sconv2d(&good, x, w, NULL, again, room, bytes) == 0 && !memcmp(y, again, sizeof y));
    assert(y[0] == y[0] && y[0] != 7);
    puts(tensorop_conv2d_message(-77));
    free(room);
    return 0;
}
"""


def test_c_calls_it(made: Path, tmp_path: Path) -> None:
    (tmp_path / "caller.c").write_text(CALLER)
    words = ["cc", "-Wall", "-Werror", "-I", made / "include", tmp_path / "caller.c", "-o", tmp_path / "caller"]
    subprocess.run([*words, f"-L{made / 'lib'}", "-ltensorop_conv2d", f"-Wl,-rpath,{made / 'lib'}"], check=True)
    ended = subprocess.run([tmp_path / "caller"], capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert ended.stdout == "no status of this library\n"


STACK = r"""
#include "stack.h"

#include <tensorop/conv2d.h>

#define BY_ALL_VARIANTS(dtype, real)                                                                         \
    for (int variant = -1, status = 0; status != TENSOROP_CONV2D_VARIANT; ++variant) {                       \
        const real *x = numbers[0], *w = numbers[1];                                                         \
        status = tensorop_conv2d_##dtype##_variant(&conv, x, w, at & 1 ? w : NULL, numbers[2], variant);     \
        if (status != TENSOROP_OK && status != TENSOROP_CONV2D_VARIANT)                                      \
            exit(5);                                                                                         \
        snprintf(what, sizeof what, "%s case %d: c%d k%d h%d r%d, variant %d", #dtype, at, channels, filters, \
                 high, side, variant);                                                                       \
        reached(what);                                                                                       \
    }

static void calls(void)
{
    static char what[200];
    static const int cases[][6] = { /* channels, filters, groups, side of the input, of the filter, stride */
        { 1, 1, 1, 7, 1, 1 }, { 8, 16, 1, 14, 3, 1 }, { 16, 40, 1, 9, 1, 1 }, { 3, 20, 1, 33, 7, 2 },
        { 12, 12, 12, 12, 3, 1 }, { 9, 9, 9, 30, 3, 2 }, { 6, 6, 6, 31, 5, 5 }, { 4, 8, 2, 5, 5, 1 },
        { 32, 24, 1, 6, 3, 3 }, { 2, 3, 1, 40, 9, 1 },
    };
    for (int at = 0; at < 80; ++at) {
        const int *given = cases[at / 8], channels = given[0], filters = given[1], high = given[3], side = given[4];
        const struct tensorop_conv2d conv = {
            .n = 2, .c = channels, .h = high, .w = high + 2, .k = filters, .r = side, .s = side, .stride_h = given[5],
            .stride_w = given[5], .pad_top = at & 2 ? side / 2 : 0, .pad_left = at & 2 ? side / 2 : 0, .dilation_h = 1,
            .dilation_w = 1, .groups = given[2], .layout = at & 4 ? TENSOROP_NHWC : TENSOROP_NCHW, .relu = at & 1,
        };
        BY_ALL_VARIANTS(f32, float)
        BY_ALL_VARIANTS(f64, double)
    }
}
"""


def test_calls_fit_into_the_least_stack_of_a_thread(made: Path, tmp_path: Path) -> None:
    (tmp_path / "stack.c").write_text(STACK)
    lib = made / "lib"
    words = ["cc", "-Wall", "-Werror", "-O1", "-I", products.STACK.parent, "-I", made / "include", tmp_path / "stack.c"]
    words += [f"-L{lib}", "-ltensorop_conv2d", f"-Wl,-rpath,{lib}", "-lpthread", "-o", tmp_path / "stack"]
    subprocess.run([*map(str, words)], check=True)
    ended = subprocess.run([tmp_path / "stack"], capture_output=True, text=True, timeout=60)
    assert ended.returncode == 0, (ended.stdout, ended.stderr)
    assert int(ended.stdout.split()[0]) <= products.MOST_STACK, ended.stdout


@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    ("shape", "told"),
    [
        ("n1c3h2w9k1r3s3", "no higher than the input"),
        ("n1c3h9w9k4r3s3g2", "groups divide channels and filters"),
        ("n1c3h9w9k4r3s3u0", "strides are 1 or more"),
        ("n0c3h9w9k4r3s3", "n is 0"),
        ("9x9", "not a shape of conv2d"),
    ],
)
def test_what_is_no_shape_of_it(shape: str, told: str) -> None:
    ended = tensorop("conv2d", "--shapes", shape, cwd=ROOT)
    assert ended.status == 2
    assert told in ended.stderr
