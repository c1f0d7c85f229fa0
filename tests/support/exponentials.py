"""A set's `exp` over many floats: against double-precision exp in C for f32, against exact powers of e for f64."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tensorop import backends
from tensorop.commands.exact_number import Exact
from tensorop.model.kernel import Artifact, Source
from tensorop.model.platform import Platform
from tensorop.render import render
from tensorop.runners import confined
from tensorop.runners.base import Launch
from tensorop.runners.process import Talk
from tensorop.toolchain import compile

# Every STEP-th f32. Where STEP is 1, a block has one sign and one exponent, and those far beyond the finite results are
# left out. Prints the worst distance in ulp, and where.
EVERY = r"""
double exp(double);
enum { BLOCK = 4096 };
static float in[BLOCK], out[BLOCK];

static double power(int e) /* 2^e */
{
    const union { uint64_t bits; double value; } made = { (uint64_t)(e + 1023) << 52 };
    return made.value;
}

/* distance in ulp of the exact value, which a double has to 2^-53 */
static double distance(float got, double want)
{
    const union { double value; uint64_t bits; } of = { want };
    const int top = (int)(of.bits >> 52) - 1023, unit = top > 127 ? 104 : top < -126 ? -149 : top - 23;
    double apart = (got > 3.4028234663852886e38f ? power(128) : got) - (want > power(128) ? power(128) : want);
    return (apart < 0 ? -apart : apart) * power(-unit);
}

/* where a block's largest distance is; it is of one kind where all its floats are */
static double of_block(size_t *at)
{
    const float first = in[0], last = in[BLOCK - 1];
    double off = 0;
    *at = 0;
    /* 1 + x, and less than 2^-53 more */
    if (STEP == 1 && first > -0x1p-26f && first < 0x1p-26f && last > -0x1p-26f && last < 0x1p-26f) {
        for (size_t i = 0; i < BLOCK; ++i) {
            const double want = 1.0 + in[i], apart = (out[i] - want) * (want < 1 ? 0x1p24 : 0x1p23);
            off = (apart < 0 ? -apart : apart) > off ? apart < 0 ? -apart : apart : off;
        }
        return off;
    }
    for (size_t i = 0; i < BLOCK; ++i) {
        const float x = in[i], got = out[i];
        double now;
        if (x <= -104)
            now = got == 0 && 1 / got > 0 ? 0 : 1e9;
        else if (x >= 89) /* e^89 > 2^128 */
            now = got > 3.4028234663852886e38f ? 0 : 1e9;
        else
            now = x == x ? distance(got, exp(x)) : got == got ? 1e9 : 0;
        if (!(now <= off)) {
            off = now;
            *at = i;
        }
    }
    return off;
}

int main(void)
{
    double worst = 0;
    float where = 0;
    for (uint64_t begin = 0; begin < (uint64_t)1 << 32; begin += (uint64_t)BLOCK * STEP) {
        for (uint32_t i = 0; i < BLOCK; ++i) {
            const uint32_t bits = (uint32_t)begin + i * STEP;
            memcpy(&in[i], &bits, sizeof bits);
        }
        const float size = in[0] < 0 ? -in[0] : in[0];
        if (STEP == 1 && size > 1024 && size < 0x1p127f) /* 0 or infinity, far from where that begins */
            continue;
        run(in, out, BLOCK);
        size_t at;
        const double off = of_block(&at);
        if (!(off <= worst)) {
            worst = off;
            where = in[at];
        }
    }
    printf("%.4f %a\n", worst, where);
    return 0;
}
"""
STREAM = r"""
static element in[1 << 16], out[1 << 16];
int main(void)
{
    const size_t n = fread(in, sizeof(element), sizeof in / sizeof(element), stdin);
    run(in, out, n);
    return fwrite(out, sizeof(element), n, stdout) == n ? 0 : 1;
}
"""


def _run(
    platform: Platform, dtype: str, chosen: Mapping[str, int], main: str, flags: tuple[str, ...], given: bytes = b""
) -> bytes:
    """The output of a program with this main, which may call `run(in, out, n)`."""
    primitives = platform.primitives_of(dtype, chosen)
    call = render.functions(primitives)
    value = call["exp"](call["load_tail"]("in + i", "vl"), "vl")
    lines = [
        *(f"#include <{header}>" for header in ("stddef.h", "stdint.h", "stdio.h", "string.h", *primitives.headers)),
        f"typedef {primitives.element} element;",
        primitives.support,
        call["exp"].support,
        "static void run(const element *in, element *out, size_t n)",
        "{",
        f"    const size_t lanes = {primitives.lanes};",
        "    for (size_t i = 0; i < n; i += lanes) {",
        f"        const {primitives.predicate} vl = {call['tail']('(n - i < lanes ? n - i : lanes)')};",
        f"        {call['store_tail']('out + i', value, 'vl')};",
        "    }",
        "}",
        main,
    ]
    source = Source((("exp.c", "\n".join(lines)),), flags=flags)
    made = compile.compile_source(source, compile.candidate_flags(platform))
    assert isinstance(made, Artifact), made
    program = compile.link_program(made, arch=platform.arch, name="exp")
    assert isinstance(program, Artifact), program
    runner = backends.start(platform, None, ())
    launch = Launch([runner.place(program.path)], platform.vlens[0])
    ended = confined.run(runner, launch, timeout_s=300, talk=Talk((given,)))
    assert ended.status == 0, ended
    return ended.stdout


def worst_f32(platform: Platform, chosen: Mapping[str, int], step: int, *flags: str) -> tuple[float, str]:
    """The largest distance in ulp over every step-th f32, and the float that has it in hexadecimal."""
    worst, where = _run(platform, "f32", chosen, EVERY, (f"-DSTEP={step}", *flags)).decode().split()
    return float(worst), where


def worst_f64(platform: Platform, chosen: Mapping[str, int], count: int, *flags: str) -> tuple[float, str]:
    """The same over `count` f64: dense where results are finite, and around the ends of that."""
    rng = np.random.default_rng(1)
    ends = np.array([709.782712893384, -708.3964185322641, -744.4400719213812, -745.1332191019412, 0.0, 710.0, -746.0])
    special = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1e308, -1e308, 5e-324, -5e-324])
    spread = rng.standard_normal(count // 4) * np.exp2(rng.uniform(-60, 9, count // 4))
    near = rng.choice(ends, count // 4) + rng.standard_normal(count // 4) * np.exp2(rng.uniform(-40, 1, count // 4))
    given = np.concatenate([rng.uniform(-746, 710, count // 2), spread, near, special])
    found = np.frombuffer(_run(platform, "f64", chosen, STREAM, flags, given.tobytes()), np.float64)
    assert found.size == given.size
    far = [Exact.of(x).exp().distance(float(y), "f64") for x, y in zip(given, found, strict=True)]
    at = int(np.argmax(far))
    return far[at], float(given[at]).hex()
