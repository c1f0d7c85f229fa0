"""The board model's lanes: the same numbers in each of them, however a compiler and a processor hold them."""

import subprocess

import pytest

from tensorop.measure.board import _FLAGS, LANES
from tensorop.paths import native_dir

PROGRAM = """
#include <stdio.h>
#include "lanes.h"
static vec held = {0};
int main(void) {
    union { vec v; float f[LANES]; } a, b, r[7];
    for (int i = 0; i < LANES; i++) {
        a.f[i] = 1.5f * (float)i - 7;
        b.f[i] = 20.25f - (float)i;
    }
    held = vset(3);
    r[0].v = vmax(a.v, b.v);
    r[1].v = vmin(a.v, b.v);
    r[2].v = vadd(a.v, held);
    r[3].v = vsub(a.v, b.v);
    r[4].v = vmul(a.v, b.v);
    r[5].v = vfloor(a.v);
    r[6].v = vceil(b.v);
    for (int k = 0; k < 7; k++)
        for (int i = 0; i < LANES; i++)
            printf("%g ", (double)r[k].f[i]);
    printf("%g", (double)first(r[3].v));
    return 0;
}
"""
NO_VECTORS = tuple(f"-U__{name}__" for name in ("AVX512F", "AVX", "SSE4_1", "SSE", "ARM_NEON"))


@pytest.mark.one_in(2)
@pytest.mark.parametrize("how", [("-march=native",), (), NO_VECTORS], ids=["native", "plain", "without"])
def test_lanes(how, tmp_path) -> None:
    source = tmp_path / "lanes.c"
    source.write_text(PROGRAM)
    for lanes in (1, 8, *LANES[-2:]):
        command = ["cc", *(flag for flag in _FLAGS if flag != "-shared"), *how, f"-DLANES={lanes}"]
        made = [*command, "-I", str(native_dir() / "plugin"), str(source), "-lm", "-o", str(tmp_path / "lanes")]
        subprocess.run(made, check=True)
        told = subprocess.run([str(tmp_path / "lanes")], check=True, capture_output=True, text=True).stdout.split()
        a, b = ([1.5 * i - 7 for i in range(lanes)], [20.25 - i for i in range(lanes)])
        pairs = list(zip(a, b, strict=True))
        wanted = [*map(max, pairs), *map(min, pairs), *(x + 3 for x in a), *(x - y for x, y in pairs)]
        wanted += [*(x * y for x, y in pairs), *(x // 1 for x in a), *(-(-x // 1) for x in b), a[0] - b[0]]
        assert list(map(float, told)) == pytest.approx(wanted, rel=1e-5)
